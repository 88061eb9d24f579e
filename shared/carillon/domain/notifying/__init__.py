"""Notifications: who is told of what, the windows that keep them few, and their texts."""
