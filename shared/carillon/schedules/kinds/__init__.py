"""The kinds of schedule."""
