"""What several layers of tests build their cases from."""
