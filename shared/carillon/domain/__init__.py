"""Jobs, runs and segments, and every decision about them: pure, no I/O, no clock."""
