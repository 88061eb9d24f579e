"""Notifications: events open windows, and windows end."""
