"""What is deployed, under Lambda's own runtime interface client: see tests/packaged/conftest.py."""
