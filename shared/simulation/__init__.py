"""Deterministic simulation: cooperative tasks under a virtual clock, and faults at every call.

No function imports this. `infra/simulation` deploys the functions into it, as `infra/local` deploys
them to an emulator.
"""
