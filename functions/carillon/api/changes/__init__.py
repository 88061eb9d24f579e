"""The API of changes."""
