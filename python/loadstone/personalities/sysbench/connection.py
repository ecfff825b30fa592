"""Where to connect: the options of the two drivers, and what their client libraries would add."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine.postgres.conninfo import resolve, resolve_values
from loadstone.engine.postgres.plain_conninfo import plain_parameters
from loadstone.model import Connection
from loadstone.personalities.sysbench.complaint import ComplaintError
from loadstone.results.redact import remember

if TYPE_CHECKING:
    from loadstone.personalities.sysbench.settings import Settings

SOCKETS = (Path("/run/mysqld/mysqld.sock"), Path("/var/lib/mysql/mysql.sock"), Path("/tmp/mysql.sock"))  # noqa: S108
"""Where servers of MySQL's family put their sockets."""
_PORT, _PORT_MAX = 3306, 65535


@dataclass(frozen=True, slots=True)
class Server:
    """One of the servers that connections take in turns."""

    host: str
    """Its name, or the path of its socket."""
    port: int
    named: str
    """The host as it was given."""

    @property
    def place(self) -> str:
        """How messages of MySQL's client name it."""
        if self.host.startswith("/"):
            return f"socket '{self.host}'"
        return f"host '{self.named}', port {self.port}"


def connection_of(settings: Settings, driver: str) -> Connection:
    """Return how to reach the server, of several the first; raises LoadstoneError."""
    return _mysql(settings) if driver == "mysql" else _pgsql(settings)


def servers_of(settings: Settings, driver: str) -> tuple[Server, ...]:
    """Return the servers in the order in which connections take them; raises LoadstoneError.

    As in sysbench: sockets if there are any, else each host with all ports.
    """
    if driver == "pgsql":
        return (Server("", _PORT, settings.string("pgsql-host") or ""),)
    if sockets := settings.listed("mysql-socket"):
        return tuple(Server(socket, _PORT, "localhost") for socket in sockets)
    ports = [_port(text) for text in _some(settings, "mysql-port", "ports")]
    hosts = _some(settings, "mysql-host", "hosts")
    return tuple(Server(_place(host), port, host) for host in hosts for port in ports)


def _pgsql(settings: Settings) -> Connection:
    names = {
        "host": "pgsql-host",
        "port": "pgsql-port",
        "user": "pgsql-user",
        "password": "pgsql-password",
        "dbname": "pgsql-db",
    }
    given = {key: settings.string(name) or "" for key, name in names.items()}
    plain = plain_parameters("", given)
    if plain is not None:
        return resolve_values(plain).connection
    from psycopg import conninfo as libpq  # noqa: PLC0415 - takes long, and few connections need it

    return resolve(
        libpq.make_conninfo("", **{key: value for key, value in given.items() if value})
    ).connection


def _mysql(settings: Settings) -> Connection:
    password = settings.string("mysql-password")
    servers = servers_of(settings, "mysql")
    remember(password, tuple(server.named for server in servers))
    return Connection(
        host=servers[0].host,
        port=servers[0].port,
        user=settings.string("mysql-user") or "",
        database=settings.string("mysql-db") or "",
        password=password,
        sslmode="require" if settings.flag("mysql-ssl") else "disable",
        protocol="mysql",
    )


def _some(settings: Settings, name: str, what: str) -> list[str]:
    parts = settings.listed(name)
    if not parts:
        raise ComplaintError(f"No MySQL {what} specified, aborting", fatal=True)
    return parts


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _PORT_MAX:
        raise ComplaintError(f"Invalid value for the 'mysql_port' option: '{text}'")
    return int(text)


def _place(host: str) -> str:
    """Return the socket for the local host, as MySQL's client library does, where there is one."""
    if host != "localhost":
        return host
    return next((str(path) for path in SOCKETS if path.is_socket()), host)
