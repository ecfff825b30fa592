"""Control connections: from `model.Connection` to psycopg, and libpq's complaints into words with a mend."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import pq, waiting

from loadstone.engine import waits
from loadstone.engine.postgres import sessions, statements
from loadstone.engine.rows import AnswerCursor, answer_row
from loadstone.errors import LoadstoneError, ServerStartingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg.abc import Params, PQGen, Query

    from loadstone import model
    from loadstone.engine.control import Control, Row
    from loadstone.engine.postgres.sessions import Needs

R = TypeVar("R")

_HINTS = (
    ("password authentication failed", "wrong password", "Check the user and password of the target."),
    ("no password supplied", "a password is needed", "Set it in the URL, in PGPASSWORD or in ~/.pgpass."),
    (
        "no pg_hba.conf entry",
        "the server does not accept this connection",
        ("Ask the administrator for a line in the server's pg_hba.conf."),
    ),
    (
        "peer authentication failed",
        "the server requires the operating-system user of the same name",
        ("Connect by TCP or as that user."),
    ),
    ("too many clients", "all connections are in use", "Raise max_connections, or close other clients."),
    (
        "remaining connection slots",
        "all connections are in use",
        ("Raise max_connections, or close clients."),
    ),
    (
        "server does not support SSL",
        "the server does not support TLS",
        "Use sslmode=prefer, or turn on ssl in the server.",
    ),
    ("SSL error", "TLS failed", "Check sslmode and sslrootcert against the server's certificate."),
    ("certificate", "TLS failed", "Check sslmode and sslrootcert against the server's certificate."),
    ("Connection refused", "connection refused", ("Check that the server is running on that host and port.")),
    (
        "No such file or directory",
        "there is no such socket",
        "Check that the server is running with that socket folder.",
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
_KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 4,
    "tcp_user_timeout": round(waits.SILENCE_S * 1000),
}
"""A host that is gone answers nothing: the system ends connections to it after a minute."""
_REFUSED = re.compile(r"\w+:  ")
"""What the server itself says comes with its severity, in whatever language."""
_STARTING = ("starting up", "in recovery mode", "not yet accepting connections")


class WatchedConnection(psycopg.Connection[dict[str, Any]]):
    """psycopg's connection, none of whose waits is silent for long or lasts for ever."""

    origin: model.Connection | None = None
    """How it was made; None until that is over."""
    server_pid: int | None = None
    """The server's process that serves it."""

    def execute(
        self,
        query: Query | str,
        params: Params | None = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> psycopg.Cursor[dict[str, Any]]:
        """Run one statement; text of any origin goes as UTF-8."""
        text: Any = query.encode() if isinstance(query, str) else query
        return super().execute(text, params, prepare=prepare, binary=binary)

    def wait(self, gen: PQGen[R], interval: float = 0.1, timeout: float | None = None) -> R:
        """Wait as psycopg does: all that this connection waits for, it waits for in here."""
        wait = waits.Wait(self._look, lambda: cut(self))
        try:
            with wait.watched():
                return waiting.wait(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except KeyboardInterrupt:
            self._leave(gen)
            raise
        except psycopg.OperationalError as error:
            if wait.verdict is None:
                raise
            said = f"{wait.verdict.words}\n{wait.verdict.hint}".strip()
            raise psycopg.OperationalError(said) from error

    def _leave(self, gen: PQGen[R]) -> None:
        """Have the server end the statement in flight; leave a server that does not."""
        if self.pgconn.transaction_status != pq.TransactionStatus.ACTIVE:
            return
        try:
            self.cancel_safe(timeout=waits.LEAVE_S)
            waiting.wait(gen, self.pgconn.socket, interval=0.1, timeout=waits.LEAVE_S)
        except psycopg.errors.QueryCanceled:
            pass
        except BaseException as error:
            self.pgconn.finish()
            if not isinstance(error, Exception):
                raise  # a second signal

    def _look(self) -> waits.Seen:
        if self.origin is None:
            return waits.Seen()  # the log-in has a limit of its own
        return look(self.origin, self.server_pid)


PostgresControl = WatchedConnection
"""The control connection of PostgreSQL's family; rows are dictionaries."""


def dial(connection: model.Connection) -> WatchedConnection:
    """Open a connection, and ask nothing."""
    # Our own statements come once each: no point in preparing them on the server.
    return WatchedConnection.connect(
        **arguments(connection),
        autocommit=True,
        row_factory=answer_row,
        cursor_factory=AnswerCursor,
        prepare_threshold=None,
    )


def connect(
    connection: model.Connection, *, autocommit: bool = True, needs: Needs = "session"
) -> PostgresControl:
    """Open a control connection whose session is the one that was requested.

    Raises LoadstoneError with what is wrong and what to do.
    """
    try:
        opened = dial(connection)
    except psycopg.OperationalError as error:
        raise _explain(connection, error) from error
    try:
        opened.server_pid = _asked(opened, connection, needs)
    except BaseException:
        opened.close()
        raise
    opened.origin = connection
    opened.autocommit = autocommit
    return opened


def _asked(opened: WatchedConnection, connection: model.Connection, needs: Needs) -> int | None:
    """Ask what session this is, and return the process that serves it; one that is silent is refused."""
    where, limit_s = place(connection), connection.connect_timeout_s
    begun_s = time.monotonic()
    try:
        with within(opened, limit_s):
            return sessions.refuse_other(opened, connection, where, lambda: dial(connection), needs)
    except psycopg.Error as error:
        said = str(error).strip()
        if time.monotonic() - begun_s < limit_s:
            raise LoadstoneError(
                f"{where} accepted the connection, but its session cannot be checked: {said}",
                "Try again. If it happens again, check what is between Loadstone and the server, such "
                "as a pooler.",
            ) from error
        raise LoadstoneError(
            f"{where} accepted the connection, but did not answer a query within {limit_s:g} s: {said}",
            "Check whether the server is frozen, or a pooler has no free connection to it. Otherwise "
            "raise connect_timeout.",
        ) from error


def look(origin: model.Connection, pid: int | None) -> waits.Seen:
    """Ask on another connection what the session that the server's process `pid` serves waits for."""
    other = replace(origin, application_name="loadstone watch", connect_timeout_s=waits.ASK_S)
    try:
        with dial(other) as asked, within(asked, waits.ASK_S):
            rows = asked.execute(statements.WAITING, {"pid": pid}).fetchall()
    except psycopg.OperationalError as error:
        if _REFUSED.search(str(error)):
            return waits.Seen()  # it lives, though it lets nobody in
        words = f"{place(other)} does not answer, not even on another connection"
        return waits.Seen(
            words, waits.SILENCE_S, "Check that the server and its machine are running and not frozen."
        )
    except psycopg.Error:
        return waits.Seen()  # a relative that does not show its sessions, but answers
    return _seen(other, pid, rows)


@contextlib.contextmanager
def within(connection: psycopg.Connection[Any], limit_s: float) -> Iterator[None]:
    """Cut the connection after a while: libpq itself waits for ever for a server that is stuck."""
    if connection.closed:
        yield  # whoever uses it is told so by psycopg
        return
    with waits.DEADLINES.within(limit_s, lambda: cut(connection)):
        yield


def cut(connection: psycopg.Connection[Any]) -> None:
    """End the connection's socket, whichever thread waits at it."""
    with (
        contextlib.suppress(psycopg.Error, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


def _seen(connection: model.Connection, pid: int | None, rows: list[Row]) -> waits.Seen:
    """Return what the server's view of its sessions says of ours."""
    where, row = place(connection), rows[0] if rows else None
    if row is None:
        words, hint = f"{where} no longer has our session", ("The connection was lost on the network.")
        return waits.Seen(words, waits.SILENCE_S, hint)
    if row["holder"] is not None:
        who = [f"process {row['holder']}"]
        who += [f'application "{row["application"]}"'] if row["application"] else []
        who += [f"user {row['holder_user']}"] if row["holder_user"] else []
        who += [f"its statement began at {row['since']}"] if row["since"] else []
        words = f"{where}: a lock on {row['locked'] or 'what we need'} is held by {', '.join(who)}"
        hint = f"Wait until it ends, or end that session: select pg_terminate_backend({row['holder']})"
        return waits.Seen(f"{words}. {hint}", waits.LOCK_S)
    if _is_stopped(connection.host, pid):
        return waits.Seen(
            f"{where}: the server's process {pid} is stopped", waits.SILENCE_S, f"kill -CONT {pid}"
        )
    if str(row["state"]).startswith("idle"):
        words = f"{where} is idle: a statement or its answer was lost on the network"
        return waits.Seen(words, waits.SILENCE_S)
    return waits.Seen()


def _is_stopped(host: str, pid: int | None) -> bool:
    """Return whether a server's process on this machine was stopped by a signal."""
    if pid is None or not (host.startswith("/") or host in ("127.0.0.1", "::1", "localhost")):
        return False
    import psutil  # noqa: PLC0415 - only waits that last need it

    try:
        process = psutil.Process(pid)
        return "postgres" in process.name() and process.status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def psycopgs(connection: Control) -> PostgresControl:
    """Return a control connection as the driver's own, for what only psycopg can do."""
    if not isinstance(connection, WatchedConnection):
        kind = type(connection).__name__
        raise TypeError(f"an engine of PostgreSQL's family was given a {kind} for a connection")
    return connection


def place(connection: model.Connection) -> str:
    """Name the server in a sentence: socket file or host and port."""
    if connection.host.startswith("/"):
        return f"{connection.host}/.s.PGSQL.{connection.port}"
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    return f"{host}:{connection.port}"


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
        **_KEEPALIVE,
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
            f"the database '{connection.database}' does not exist on {place(connection)}",
            "Use one that exists, or create it first.",
        )
    if any(sign in said for sign in _STARTING):
        problem = f"cannot connect to {where}: the server is still starting ({said})"
        return ServerStartingError(problem, "Try again in a moment.")
    for sign, problem, hint in _HINTS:
        if sign in said:
            return LoadstoneError(f"cannot connect to {where}: {problem} ({said})", hint)
    return LoadstoneError(f"cannot connect to {where}: {said}", "Check the target's parameters.")
