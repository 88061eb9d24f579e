"""What all requests have in common, and what the API tells of itself."""
