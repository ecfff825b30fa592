"""Loadstone finds out what load a database really holds."""

__version__ = "0.1.0"
