"""When jobs fire: calendars, catch-up, ends, zones, pauses."""
