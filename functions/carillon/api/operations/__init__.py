"""Long-running operations over HTTP."""
