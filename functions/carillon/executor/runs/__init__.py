"""One run, from its message to what follows it."""
