"""The HTTP API: jobs, runs, schedules and status of one owner at a time."""
