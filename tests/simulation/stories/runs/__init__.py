"""What becomes of runs: chunks, reports, stops, events, rows."""
