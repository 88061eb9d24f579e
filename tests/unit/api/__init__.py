"""The API through its real resolver, on memory stores."""
