"""The template, without deploying it: see tests/infra/conftest.py."""
