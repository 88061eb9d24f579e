"""The Lambda functions; none imports another."""
