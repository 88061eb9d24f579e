"""What owners do: operations, handing over."""
