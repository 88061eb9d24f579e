"""The look of what commands write: tables, words for people, progress, charts."""
