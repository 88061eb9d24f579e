"""Previews, forecasts and calendars."""
