"""What jobs, runs and segments are, and every decision about them: pure, no I/O, no clock."""
