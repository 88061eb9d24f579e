"""Commands about all that an owner has."""
