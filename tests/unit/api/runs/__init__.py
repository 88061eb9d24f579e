"""Requests about runs: history, summaries, cancelling, backfills, dead letters, reports."""
