"""What every route has in common: requests, problems, routing."""
