"""The placement of a schedule's occurrences: wheel slots, jitter windows."""
