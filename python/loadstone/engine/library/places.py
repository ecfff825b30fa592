"""Servers of the user's own behind a Python driver: their URLs, and their process when it is here."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import psutil

from loadstone.engine.answers import ServerProcesses
from loadstone.engine.library.engine import Place
from loadstone.errors import LoadstoneError
from loadstone.model import Connection
from loadstone.results.redact import remember

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_SSL_MODES = ("disable", "require", "verify-full")
_KNOWN = frozenset({"sslmode", "sslrootcert"})
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def server_place(scheme: str, text: str, *, port: int, user: str, database: str, variable: str) -> Place:
    """Understand what follows `scheme:`; what it leaves out is as given, the password from a variable.

    Raises LoadstoneError that says what could have been written.
    """
    parts = urlsplit(f"{scheme}:{text}")
    named = dict(parse_qsl(parts.query, keep_blank_values=True))
    asked = _port_of(parts)
    form = f"{scheme}://user@host:{port}/{database}"
    if not text.startswith("//") or not parts.hostname or asked is None or "/" in parts.path.strip("/"):
        raise LoadstoneError(f"'{scheme}:' is not followed by a server", f"Write {form}.")
    unknown = sorted(set(named) - _KNOWN)
    if unknown or named.get("sslmode", "disable") not in _SSL_MODES:
        raise LoadstoneError(
            f"{scheme} does not support {(unknown[0] if unknown else 'sslmode ' + named['sslmode'])}",
            f"Write {form}, with the parameters sslmode ({', '.join(_SSL_MODES)}) and sslrootcert (a "
            "file) after it.",
        )
    secret = parts.password
    server = Connection(
        host=parts.hostname,
        port=asked or port,
        user=unquote(parts.username) if parts.username else user,
        database=unquote(parts.path.strip("/")) or database,
        password=unquote(secret) if secret is not None else os.environ.get(variable),
        sslmode=named.get("sslmode", "disable"),
        sslrootcert=_certificate(named.get("sslrootcert")),
    )
    remember(server.password, (server.host, server.user, server.database))
    shown = f"[{server.host}]" if ":" in server.host else server.host
    given = {"sslmode": server.sslmode} if server.sslmode != "disable" else {}
    given |= {"sslrootcert": server.sslrootcert} if server.sslrootcert else {}
    more = f"?{urlencode(given)}" if given else ""
    url = f"{scheme}://{server.user}@{shown}:{server.port}/{server.database}{more}"
    return Place(f"{scheme}-{server.host}", f"{shown}:{server.port}", url, server=server)


def listener(server: Connection) -> ServerProcesses:
    """Find the process that listens at a server's port, when its host is this machine."""
    if not _is_here(server.host):
        return ServerProcesses(None, "the server is not on this machine")
    try:
        found = psutil.net_connections("tcp")
    except psutil.Error as error:
        return ServerProcesses(
            None, f"the process that listens on port {server.port} is not visible: {error}"
        )
    pids = {
        entry.pid
        for entry in found
        if entry.status == psutil.CONN_LISTEN
        and entry.laddr
        and entry.laddr.port == server.port
        and entry.pid is not None
    }
    if len(pids) != 1:
        return ServerProcesses(
            None, f"the process that listens on port {server.port} is not visible: run as root"
        )
    return ServerProcesses(pids.pop())


def _is_here(host: str) -> bool:
    if host in _LOOPBACK:
        return True
    try:
        addresses: set[Any] = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    ours = {entry.address for entries in psutil.net_if_addrs().values() for entry in entries}
    return bool(addresses & ours)


def _port_of(parts: SplitResult) -> int | None:
    """Return the port of a URL, 0 where it names none; None where it names what is none."""
    try:
        return parts.port or 0
    except ValueError:
        return None


def _certificate(path: str | None) -> str | None:
    if path is None:
        return None
    file = Path(path).expanduser()
    if not file.is_file():
        raise LoadstoneError(
            f"the file '{file}' does not exist", "Name the certificate of the authority (PEM)."
        )
    return str(file)
