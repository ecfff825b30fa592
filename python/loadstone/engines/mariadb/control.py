"""A control connection to MariaDB or MySQL, through the core: it knows the protocol and every log-in."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from loadstone import _core
from loadstone.engine import waits
from loadstone.engine.control import WholeResult
from loadstone.engine.waits import Seen, Wait
from loadstone.engines.mariadb.url import place
from loadstone.errors import LoadstoneError, ServerStartingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine.control import Control, Result, Row
    from loadstone.model import Connection

_SLICE_S = 0.05
_PROBE_S = 2.0
_WHOLE = re.compile(r"-?\d+")
_UNKNOWN_DATABASE = re.compile(r"Unknown database")
_HINTS = (
    ("Access denied", "Check user and password, and that the user may come from this host."),
    ("Too many connections", "Raise max_connections, or close other clients."),
    ("TLS", "Check sslmode and sslrootcert against the server's certificate."),
)
_STARTING = ("Connection refused", "No such file or directory", "Lost connection")
Texts = list[list[str | None]]


class ServerError(Exception):
    """What the server says of a statement, or that the connection is lost; `state` is its SQLSTATE."""

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state


class PrivateServer(Protocol):
    """A private server, as far as its connections know it."""

    @property
    def pid(self) -> int | None:
        """Its process."""

    def restart(self) -> None:
        """Stop it and start it on the same data, with empty caches; its connections are closed."""


class MariaControl:
    """One connection, one statement at a time; statements of several threads wait for each other."""

    def __init__(self, opened: _core.Conversation, origin: Connection) -> None:
        """Use a conversation that is logged in as `origin` says."""
        self._opened = opened
        self.origin = origin
        self._busy = threading.Lock()
        self._closed = False
        self._until_s: float | None = None
        self.server: PrivateServer | None = None
        """The private server that it goes to."""

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> Result:
        """Run one statement, whose values are in its text. Raises ServerError."""
        if params:
            raise TypeError("statements for MariaDB contain their values in their text")
        reply = self._reply(query)
        columns = reply["columns"]
        return WholeResult([_row(columns, row) for row in reply["rows"]])

    def texts(self, query: str) -> Texts:
        """Run one statement; returns its rows as the server writes them. Raises ServerError."""
        rows: Texts = self._reply(query)["rows"]
        return rows

    def close(self) -> None:
        """End it; may be called again."""
        self._closed = True
        self._opened.close()

    @contextlib.contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Make what runs in here fail after a while."""
        before, self._until_s = self._until_s, time.monotonic() + limit_s
        try:
            yield
        finally:
            self._until_s = before

    def _reply(self, query: str) -> dict[str, Any]:
        if self._closed:
            raise ServerError("the connection is closed")
        with self._busy:
            try:
                self._opened.ask(query)
                reply: dict[str, Any] = json.loads(self._waited())
            except _core.DriveError as error:
                self.close()
                raise ServerError(f"the connection was lost: {error.args[0]}") from error
        if reply["error"] is not None:
            raise ServerError(reply["error"]["message"], reply["error"]["state"])
        return reply

    def _waited(self) -> str:
        wait = Wait(self._look, lambda: None)
        try:
            with wait.watched():
                while wait.verdict is None:
                    if (text := self._opened.wait(_SLICE_S)) is not None:
                        return text
                    self._look_at_time()
        except BaseException as error:
            if not isinstance(error, Exception):  # a signal
                self._leave()
            raise
        self.close()
        raise ServerError(f"{wait.verdict.words}\n{wait.verdict.hint}".strip())

    def _look_at_time(self) -> None:
        if self._until_s is not None and time.monotonic() > self._until_s:
            self._leave()
            raise ServerError("the statement took too long and was cancelled")

    def _leave(self) -> None:
        """Have the server end the statement; leave a server that does not."""
        self._opened.cancel()
        with contextlib.suppress(_core.DriveError):
            if self._opened.wait(waits.LEAVE_S) is not None:
                return
        self.close()

    def _look(self) -> Seen:
        """Tell a server that works from one that is silent: a refusal is a sign of life as well."""
        try:
            other = replace(self.origin, connect_timeout_s=_PROBE_S, database="")
            _core.Conversation(json.dumps(other.document()), _PROBE_S).close()
        except _core.DriveError as error:
            if "too long" in str(error.args[0]):
                words = f"{place(self.origin)} does not answer, not even on another connection"
                return Seen(words, waits.SILENCE_S, "Check that the server is running and not frozen.")
        return Seen()


def connect(connection: Connection) -> MariaControl:
    """Open a control connection. Raises LoadstoneError with what is wrong and how to mend it."""
    try:
        opened = _core.Conversation(json.dumps(connection.document()), connection.connect_timeout_s)
    except _core.DriveError as error:
        raise _explained(connection, *error.args) from error
    return MariaControl(opened, connection)


def connect_where_possible(connection: Connection) -> MariaControl:
    """Open a control connection in its database, or in none where there is no such database yet."""
    try:
        return connect(connection)
    except LoadstoneError as error:
        if not _UNKNOWN_DATABASE.search(error.message):
            raise
    return connect(replace(connection, database=""))


def mariadbs(connection: Control) -> MariaControl:
    """Return a control connection as MariaDB's, for what only it can do."""
    if not isinstance(connection, MariaControl):
        raise TypeError(f"MariaDB was given a {type(connection).__name__} for a connection")
    return connection


class MariaRow(dict[str, Any]):
    """One row: column name -> value; a proxy may answer with other columns than were asked for."""

    def __missing__(self, name: str) -> NoReturn:
        """Say that the answer is another than was requested."""
        raise ServerError(f"the server's answer has no column '{name}'")


def _row(columns: list[dict[str, Any]], values: list[str | None]) -> Row:
    try:
        return MariaRow(
            (column["name"], _number(value) if column["numeric"] and value is not None else value)
            for column, value in zip(columns, values, strict=True)
        )
    except ValueError as error:
        raise ServerError(f"the server's answer cannot be read: {error}") from error


def _number(text: str) -> int | float:
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _explained(connection: Connection, message: str, hint: str = "") -> LoadstoneError:
    said = " ".join(str(message).split()).removeprefix(f"cannot connect to {place(connection)}: ")
    who = f"{place(connection)} (user {connection.user})"
    if any(sign in said for sign in _STARTING):
        found = f"cannot connect to {who}: {said}"
        return ServerStartingError(found, "Check that the server is running there.")
    own = next((mend for sign, mend in _HINTS if sign in said), "Check the target's parameters.")
    return LoadstoneError(f"cannot connect to {who}: {said}", hint or own)
