"""Where a schedule's occurrences are placed: wheel slots, jitter windows."""
