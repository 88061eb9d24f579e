"""APScheduler 3: its jobs, read from a database or a module and mapped."""
