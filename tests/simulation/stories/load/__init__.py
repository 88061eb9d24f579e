"""Policies of load: permits, rates, quotas, lane slow."""
