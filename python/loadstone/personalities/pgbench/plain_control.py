"""The connection that asks the server before a run, through the core: libpq's library takes long to load.

What goes wrong here before the first statement that changes anything is left to libpq (`libpq_control`),
which says it in the words that people look for.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Protocol, Self

from loadstone import _core
from loadstone.engine.postgres.session_checks import wanted
from loadstone.personalities.pgbench.complaint import LOST, ComplaintError
from loadstone.workload.drive import connection_document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.engine.waits import Seen
    from loadstone.model import Connection

    Rows = list[Sequence[str | None]]

OPEN_S = 1.0
"""Longest time to connect, in which no signal is looked at; libpq has the rest."""
_SLICE_S = 0.1
_SHORT_S = 0.5
"""Waits so short are not watched."""
_LEAVE_S = 2.0
"""Longest wait for the end of a statement that a signal has interrupted."""


class StatementError(Exception):
    """A statement failed, in libpq's words."""

    def __init__(self, text: str, *, is_undefined_table: bool = False) -> None:
        """Keep the words."""
        super().__init__(text)
        self.is_undefined_table = is_undefined_table


class Control(Protocol):
    """What the checks before a run need of a connection."""

    version: str

    def ask(self, sql: str) -> Rows:
        """Run a statement; returns its rows as texts. Raises StatementError, ComplaintError when lost."""


class PlainControl:
    """One connection of the core."""

    def __init__(self, opened: _core.Conversation, origin: Connection, err: Callable[[str], object]) -> None:
        """Show the server's remarks by `err`."""
        self.version = opened.parameter("server_version") or "unknown"
        self._opened = opened
        self._origin = origin
        self._err = err
        self._verdict = False

    def __enter__(self) -> Self:
        """Nothing more is needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self._opened.close()

    def ask(self, sql: str) -> Rows:
        """Run a statement; returns its rows as texts. Raises StatementError, ComplaintError when lost."""
        try:
            self._opened.ask(sql)
            reply = self._reply()
        except _core.DriveError as error:
            raise ComplaintError(f"{LOST}: {error.args[0]}") from error
        for notice in reply["notices"]:
            self._err(f"{notice['severity']}:  {notice['message']}\n")
        if reply["error"] is not None:
            raise StatementError(reply["error"]["text"])
        rows: Rows = reply["rows"]
        return rows

    def _reply(self) -> dict[str, Any]:
        try:
            text = self._within(_SHORT_S) or self._watched()
        except BaseException as error:
            if not isinstance(error, Exception):  # a signal
                self._opened.cancel()
                self._within(_LEAVE_S)
            raise
        reply: dict[str, Any] = json.loads(text)
        return reply

    def _within(self, limit_s: float) -> str | None:
        until_s = time.monotonic() + limit_s
        while time.monotonic() < until_s:
            if (text := self._opened.wait(_SLICE_S)) is not None:
                return text
        return None

    def _watched(self) -> str:
        """Wait as long as the server works; what it waits for is told, and has an end."""
        from loadstone.engine import waits  # noqa: PLC0415 - few waits are long

        wait = waits.Wait(self._look, lambda: None)
        with wait.watched():
            while wait.verdict is None:
                if (text := self._opened.wait(_SLICE_S)) is not None:
                    return text
        raise ComplaintError(f"{LOST}: {wait.verdict.words}", wait.verdict.hint)

    def _look(self) -> Seen:
        from loadstone.engine.postgres import connections  # noqa: PLC0415

        return connections.look(self._origin, self._opened.process_id)


def open_plain(connection: Connection, err: Callable[[str], object]) -> PlainControl | None:
    """Connect; None where that fails, or where the session needs a closer look: settings, a pooler."""
    if wanted(connection):
        return None
    limit_s = min(OPEN_S, connection.connect_timeout_s)
    try:
        opened = _core.Conversation(json.dumps(connection_document(connection)), limit_s)
        control = PlainControl(opened, connection, err)
        if control.ask("select pg_catalog.pg_backend_pid()") == [[str(opened.process_id)]]:
            return control
    except (_core.DriveError, StatementError, ComplaintError):
        return None
    control.__exit__()
    return None
