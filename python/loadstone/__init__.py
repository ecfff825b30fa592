"""Loadstone measures how much load a database can handle."""

__version__ = "0.1.0"
