"""The wheel: segments, slots and entries, and what a tick sends for them."""
