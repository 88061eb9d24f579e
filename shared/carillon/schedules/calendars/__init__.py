"""Schedules under calendars of closed days."""
