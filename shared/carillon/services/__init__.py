"""Shared by tick, executor and API, over the ports of the stores."""
