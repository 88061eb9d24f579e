"""The activity of jobs: results of attempts, and their sums."""
