"""Previews and forecasts of schedules over HTTP."""
