"""Looks at a deployment for what would hurt it, and says what to do: reads only."""
