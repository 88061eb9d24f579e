"""EventBridge Scheduler: its schedules, read from AWS and mapped."""
