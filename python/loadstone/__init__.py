"""Loadstone finds out what load a database really holds."""
