"""Manifests and stacks: what an apply makes of jobs."""
