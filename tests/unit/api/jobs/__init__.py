"""Requests about jobs: made, read, changed, paused, deleted, handed over."""
