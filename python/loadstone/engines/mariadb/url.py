"""URLs of MariaDB and MySQL servers: `mariadb://user:password@host:3306/database?sslmode=verify-full`."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from loadstone.errors import LoadstoneError
from loadstone.model import Connection
from loadstone.results.redact import remember

if TYPE_CHECKING:
    from urllib.parse import SplitResult

PORT = 3306
_FORM = "mariadb://user@host:3306/database"
_SOCKETS = ("/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/tmp/mysql.sock")  # noqa: S108
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_FILES = ("sslrootcert", "sslcert", "sslkey")
_KNOWN = frozenset({"socket", "sslmode", "connect_timeout", *_FILES})
_PASSWORD = "MYSQL_PWD"  # noqa: S105 - the name of a variable


def resolve(text: str) -> Connection:
    """Understand what follows the scheme of a URL, from its `//` on. Raises LoadstoneError.

    A password that it lacks is taken from MYSQL_PWD; without a host, the server's usual socket is meant.
    """
    parts = urlsplit(f"mariadb:{text}")
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    _refuse_unknown(given, parts)
    password = unquote(parts.password) if parts.password is not None else os.environ.get(_PASSWORD)
    files = {name: _file(given[name]) if name in given else None for name in _FILES}
    socket = given.get("socket") or ("" if parts.hostname else _usual_socket())
    connection = Connection(
        host=socket or str(parts.hostname),
        port=_port(parts) or PORT,
        user=unquote(parts.username) if parts.username else getpass.getuser(),
        database=unquote(parts.path.strip("/")),
        password=password,
        sslmode=given.get("sslmode", "prefer"),
        connect_timeout_s=_seconds(given.get("connect_timeout", "10")),
        protocol="mysql",
        sslrootcert=files["sslrootcert"],
        sslcert=files["sslcert"],
        sslkey=files["sslkey"],
    )
    remember(password, (connection.host, connection.user, connection.database))
    return connection


def url_of(connection: Connection, *, whole: bool) -> str:
    """Write a connection as a URL without its password; `whole`: with all that is not as usual."""
    query: dict[str, str] = {}
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    where = f"{host}:{connection.port}"
    if connection.host.startswith("/"):
        where, query["socket"] = "", connection.host
    elif connection.sslmode != "prefer":
        query["sslmode"] = connection.sslmode
    if whole:
        found = {name: getattr(connection, name) for name in _FILES}
        query |= {name: str(Path(path).absolute()) for name, path in found.items() if path}
        query["connect_timeout"] = f"{connection.connect_timeout_s:g}"
    user, database = quote(connection.user, safe=""), quote(connection.database, safe="")
    more = f"?{urlencode(query, safe='/')}" if query else ""
    return f"mariadb://{user}@{where}/{database}{more}"


def place(connection: Connection) -> str:
    """Name the server in a sentence: its socket, or host and port."""
    if connection.host.startswith("/"):
        return connection.host
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    return f"{host}:{connection.port}"


def _refuse_unknown(given: dict[str, str], parts: SplitResult) -> None:
    unknown = sorted(set(given) - _KNOWN)
    if unknown:
        raise LoadstoneError(
            f"a URL of MariaDB has no parameter '{unknown[0]}'", f"It has {', '.join(sorted(_KNOWN))}."
        )
    if given.get("sslmode", "prefer") not in _MODES:
        raise LoadstoneError(f"sslmode cannot be '{given['sslmode']}'", f"It is one of {', '.join(_MODES)}.")
    if "/" in parts.path.strip("/"):
        raise LoadstoneError("a URL of MariaDB names one database", f"Write {_FORM}.")
    if given.get("socket") and (parts.hostname or not given["socket"].startswith("/")):
        raise LoadstoneError(
            "'socket' needs the full path of a socket, and no host", "Write mariadb:///database?socket=/path."
        )


def _usual_socket() -> str:
    found = next((path for path in _SOCKETS if Path(path).exists()), None)
    if found is None:
        raise LoadstoneError(
            "the URL names no host, and none of MariaDB's usual sockets exists", f"Write {_FORM}."
        )
    return found


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise LoadstoneError("the port of a URL is a number up to 65535", f"Write {_FORM}.") from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:  # noqa: PLR2004 - any longer is for ever
        raise LoadstoneError(f"connect_timeout cannot be '{text}'", "Write a number of seconds.")
    return seconds


def _file(path: str) -> str:
    if path == "system":
        return path
    file = Path(path).expanduser()
    if not file.is_file():
        raise LoadstoneError(f"the file '{file}' does not exist", "Name a file in PEM format.")
    return str(file)
