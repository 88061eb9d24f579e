"""The policies that admit a run: overlap, limits, and the rows that hold their state."""
