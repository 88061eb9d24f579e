"""Puts jobs on the wheel anew: for operators whose wheel table was lost or restored."""
