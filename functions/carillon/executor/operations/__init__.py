"""The steps of long-running operations."""
