"""Where to connect: the options of the two drivers, and what their client libraries would add."""

from __future__ import annotations

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
_PORT_MAX = 65535


def connection_of(settings: Settings, driver: str) -> Connection:
    """Return how to reach the server; raises LoadstoneError."""
    return _mysql(settings) if driver == "mysql" else _pgsql(settings)


def place_of(settings: Settings, driver: str) -> dict[str, str]:
    """Return how messages of MySQL's client name the server (`place`), and its host."""
    if driver == "pgsql":
        return {"host": settings.string("pgsql-host") or ""}
    host, port = settings.string("mysql-host") or "localhost", settings.string("mysql-port") or "3306"
    reached = _place(host, _single(settings, "mysql-socket"))
    place = f"socket '{reached}'" if reached.startswith("/") else f"host '{host}', port {port}"
    return {"host": host, "place": place}


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
    host = _single(settings, "mysql-host") or "localhost"
    remember(password, (host,))
    return Connection(
        host=_place(host, _single(settings, "mysql-socket")),
        port=_port(_single(settings, "mysql-port") or "3306"),
        user=settings.string("mysql-user") or "",
        database=settings.string("mysql-db") or "",
        password=password,
        sslmode="require" if settings.flag("mysql-ssl") else "disable",
        protocol="mysql",
    )


def _single(settings: Settings, name: str) -> str | None:
    parts = settings.listed(name)
    if len(parts) > 1:
        raise ComplaintError(
            f"--{name} names {len(parts)} servers",
            "A run has one server here: start one run for each, or name a proxy.",
            fatal=True,
        )
    return parts[0] if parts else None


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _PORT_MAX:
        raise ComplaintError(f"Invalid value for the 'mysql_port' option: '{text}'")
    return int(text)


def _place(host: str, socket: str | None) -> str:
    """Return the socket for the local host, as MySQL's client library does, where there is one."""
    if host != "localhost":
        return host
    if socket:
        return socket
    return next((str(path) for path in SOCKETS if path.is_socket()), host)
