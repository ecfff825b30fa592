"""Private servers: a PostgreSQL of our own, started for one run and removed with all its traces."""

from loadstone.embedded.adoption import Adoption, adopt
from loadstone.embedded.builds import (
    NEWEST,
    PINNED,
    Build,
    check_short_name,
    find_build,
    is_short_name,
    short_names,
)
from loadstone.embedded.folder import PrivateFolder
from loadstone.embedded.server import EmbeddedServer, Limits, Order, reap_orphans

__all__ = [
    "NEWEST",
    "PINNED",
    "Adoption",
    "Build",
    "EmbeddedServer",
    "Limits",
    "Order",
    "PrivateFolder",
    "adopt",
    "check_short_name",
    "find_build",
    "is_short_name",
    "reap_orphans",
    "short_names",
]
