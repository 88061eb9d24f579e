"""Drives a deployed stack through its API, and says what became of it: deploys nothing."""
