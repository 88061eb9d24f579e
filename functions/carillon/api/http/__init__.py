"""Shared by all routes: requests, problems, routing."""
