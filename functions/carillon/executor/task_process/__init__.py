"""The child processes in which Python tasks run."""
