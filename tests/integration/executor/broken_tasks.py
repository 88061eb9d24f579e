"""A task module that cannot be imported."""

raise ImportError("a library is missing")
