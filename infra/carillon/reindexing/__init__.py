"""Puts jobs on the wheel anew: where its table was lost or restored, or in other segments."""
