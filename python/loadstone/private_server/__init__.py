"""Private servers: a PostgreSQL of our own, started for one run and removed with all its traces."""

from loadstone.private_server.adoption import Adoption, adopt
from loadstone.private_server.builds import (
    NEWEST,
    PINNED,
    Build,
    check_short_name,
    find_build,
    is_short_name,
    short_names,
)
from loadstone.private_server.folder import PrivateFolder
from loadstone.private_server.provision import Provision
from loadstone.private_server.server import EmbeddedServer, Limits, ServerSpec, reap_orphans

__all__ = [
    "NEWEST",
    "PINNED",
    "Adoption",
    "Build",
    "EmbeddedServer",
    "Limits",
    "PrivateFolder",
    "Provision",
    "ServerSpec",
    "adopt",
    "check_short_name",
    "find_build",
    "is_short_name",
    "reap_orphans",
    "short_names",
]
