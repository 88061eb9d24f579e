"""What tick, executor and API have in common, over the ports of the stores."""
