"""Control connections: from `model.Connection` to psycopg, and libpq's complaints into words with a mend."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.rows import dict_row

from loadstone.errors import LoadstoneError, ServerStartingError

if TYPE_CHECKING:
    from loadstone import model
    from loadstone.engine.control import Control

PostgresControl = psycopg.Connection[dict[str, Any]]
"""psycopg's own connection is the control connection; rows are dictionaries."""

_HINTS = (
    ("password authentication failed", "wrong password", "Check user and password of the target."),
    ("no password supplied", "a password is needed", "Give it in the URL, in PGPASSWORD or in ~/.pgpass."),
    ("no pg_hba.conf entry", "the server does not let us in", "Ask for a line in the server's pg_hba.conf."),
    ("peer authentication failed", "the server wants the system's user", "Connect by TCP or as that user."),
    ("too many clients", "all connections are taken", "Raise max_connections or close other clients."),
    ("remaining connection slots", "all connections are taken", "Raise max_connections or close clients."),
    ("server does not support SSL", "TLS is refused", "Use sslmode=prefer or turn on ssl in the server."),
    ("SSL error", "TLS failed", "Check sslmode and sslrootcert against the server's certificate."),
    ("certificate", "TLS failed", "Check sslmode and sslrootcert against the server's certificate."),
    ("Connection refused", "connection refused", "Is the server running, on that host and port?"),
    (
        "No such file or directory",
        "there is no such socket",
        "Is the server running, with that socket folder?",
    ),
    ("translate host name", "the host is unknown", "Check the host's name."),
    ("failed to resolve host", "the host is unknown", "Check the host's name."),
    (
        "timeout expired",
        "the server does not answer",
        "Check host, port and firewall, or raise connect_timeout.",
    ),
    ("shutting down", "the server is stopping", "Start it again."),
)
_STARTING = ("starting up", "in recovery mode", "not yet accepting connections")
_PAUSE_S = 0.25
_RECOVERY_S = 600.0
"""Longest wait for a server that says that it is on its way: it may have much WAL to read after a crash."""


class Patience:
    """Goes on trying to reach a server that was lost: longer while it says that it is on its way."""

    def __init__(self, away_s: float) -> None:
        """Begin; `away_s` is how long the server may be away."""
        self._away_s = away_s
        self._begun = self._there = time.monotonic()

    def pause(self, error: Exception) -> bool:
        """Wait for a moment before the next try; False when it was tried long enough."""
        now = time.monotonic()
        if isinstance(error, ServerStartingError):
            self._there = now
        if now - self._there > self._away_s or now - self._begun > max(_RECOVERY_S, self._away_s):
            return False
        time.sleep(_PAUSE_S)
        return True


def connect(connection: model.Connection, *, autocommit: bool = True) -> PostgresControl:
    """Open a control connection; raises LoadstoneError with what is wrong and what to do."""
    try:
        opened: PostgresControl = psycopg.Connection.connect(
            **arguments(connection), autocommit=autocommit, row_factory=dict_row
        )
    except psycopg.OperationalError as error:
        raise _explain(connection, error) from error
    # Our own statements come once each: no point in preparing them on the server.
    opened.prepare_threshold = None
    return opened


def psycopgs(connection: Control) -> PostgresControl:
    """Return a control connection as the driver's own, for what only psycopg can do."""
    if not isinstance(connection, psycopg.Connection):
        kind = type(connection).__name__
        raise TypeError(f"an engine of PostgreSQL's family was given a {kind} for a connection")
    return connection


def place(connection: model.Connection) -> str:
    """Name the server in a sentence: socket file or host and port."""
    if connection.host.startswith("/"):
        return f"{connection.host}/.s.PGSQL.{connection.port}"
    return f"{connection.host}:{connection.port}"


def arguments(connection: model.Connection) -> dict[str, Any]:
    """Return psycopg's arguments, all of them: none is left to PG* variables of the environment."""
    given: dict[str, Any] = {
        "host": connection.host,
        "hostaddr": "",
        "port": connection.port,
        "user": connection.user,
        "dbname": connection.database,
        "sslmode": connection.sslmode,
        "channel_binding": connection.channel_binding,
        "connect_timeout": max(2, round(connection.connect_timeout_s)),
        "application_name": connection.application_name,
        "target_session_attrs": "any",
        "options": _options(connection),
    }
    optional = {
        "password": connection.password,
        "sslrootcert": connection.sslrootcert,
        "sslcert": connection.sslcert,
        "sslkey": connection.sslkey,
        "client_encoding": connection.parameters.get("client_encoding"),
    }
    return given | {name: value for name, value in optional.items() if value is not None}


def option(name: str, value: str) -> str:
    """Write one setting for the start-up parameter `options`; white space and backslashes are escaped."""
    escaped = "".join(f"\\{letter}" if letter in " \t\n\\" else letter for letter in value)
    return f"-c {name}={escaped}"


def _options(connection: model.Connection) -> str:
    # libpq sends no start-up parameters but its own; all others travel in `options`.
    parameters = {name: value for name, value in connection.parameters.items() if name != "client_encoding"}
    given = parameters.pop("options", "")
    return " ".join(filter(None, [given, *(option(name, value) for name, value in parameters.items())]))


def _explain(connection: model.Connection, error: psycopg.OperationalError) -> LoadstoneError:
    said = " ".join(str(error).split())
    where = f"{place(connection)} (database {connection.database}, user {connection.user})"
    if "database" in said and "does not exist" in said:
        return LoadstoneError(
            f'there is no database "{connection.database}" on {place(connection)}',
            "Name one that exists, or create it first.",
        )
    if any(sign in said for sign in _STARTING):
        problem = f"cannot connect to {where}: the server is still starting ({said})"
        return ServerStartingError(problem, "Try again in a moment.")
    for sign, problem, hint in _HINTS:
        if sign in said:
            return LoadstoneError(f"cannot connect to {where}: {problem} ({said})", hint)
    return LoadstoneError(f"cannot connect to {where}: {said}", "Check the target's parameters.")
