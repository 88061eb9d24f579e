"""Real handlers on emulated tables and queues, in one process."""
