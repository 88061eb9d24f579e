"""The parts of the stack."""
