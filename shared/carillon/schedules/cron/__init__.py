"""Cron expressions, in local time only."""
