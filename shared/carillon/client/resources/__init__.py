"""The parts of the API, each with its methods."""
