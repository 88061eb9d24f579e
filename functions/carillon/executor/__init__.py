"""The executor: runs what is due, records how it went, and decides what follows."""
