"""Runs that exist, compared: are they comparable, what differs, how surely, and what that means."""
