"""One run, from its claim to its end, as pure functions."""
