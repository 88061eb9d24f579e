"""Drives a deployed stack through its API, and reports the results: deploys nothing."""
