"""Who may do what, of whose, and how often."""
