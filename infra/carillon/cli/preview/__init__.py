"""`carillon preview`."""
