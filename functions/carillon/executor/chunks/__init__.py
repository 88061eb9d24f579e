"""Chunks: many runs under one claim and one finish (docs/architecture.md#chunks)."""
