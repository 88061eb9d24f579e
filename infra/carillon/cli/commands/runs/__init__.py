"""Commands about runs: lists, logs, dead letters, operations, reports."""
