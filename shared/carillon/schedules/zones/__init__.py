"""Time zones: offsets, transitions and local times."""
