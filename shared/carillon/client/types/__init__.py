"""The bodies of requests and answers as TypedDicts, generated (`make client-types`)."""
