"""Chunks: many occurrences under one claim and one finish (docs/architecture.md#chunks)."""
