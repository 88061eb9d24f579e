"""What admits a run: overlap, limits, and the rows that remember them."""
