"""Searches a deployment for faults, with a remedy for each: reads only."""
