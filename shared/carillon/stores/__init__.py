"""The ports to the store and the queue, and their implementations."""
