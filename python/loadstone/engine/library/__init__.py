"""The base of engines behind a client library."""
