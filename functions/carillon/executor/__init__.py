"""The executor: runs what is due, records the outcome, and decides what follows."""
