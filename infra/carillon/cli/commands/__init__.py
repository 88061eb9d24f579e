"""The commands of `carillon`."""
