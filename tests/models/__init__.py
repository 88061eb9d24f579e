"""Models of the protocol of chunks, small enough to be explored whole.

A state holds what the stores and the queue hold, what each process has in hand, and the faults that
are left. A step is one conditional write, one strong read, or one call. What holds of a model holds
of no code: `tests/simulation/races` explores the code itself, with one change, and fewer faults.
"""
