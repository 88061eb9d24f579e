"""What operators do: reindexing, spreading."""
