"""Judges what the tables of a deployment hold by what Carillon promises: `carillon admin audit`.

It knows the promises, not the protocol: of all that decides, it asks the recurrence engine alone.
The simulation's checker has the same rules, and more of them for what it sees besides the tables.
"""
