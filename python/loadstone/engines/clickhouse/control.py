"""A control connection to ClickHouse, by whichever line its statements travel."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.engine import SCHEMA
from loadstone.engine.control import WholeResult
from loadstone.engine.library.links import LinkControl
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.engine.control import Control
    from loadstone.sqltext import Qualified

SESSION = {
    # Aggregates over nothing and the missing side of a join are NULL, as the SQL standard has it.
    "aggregate_functions_null_for_empty": "1",
    "join_use_nulls": "1",
    "union_default_mode": "'DISTINCT'",
    # A batch is a large insert: it goes into the table itself, not into a buffer first.
    "async_insert": "0",
}
"""Settings of every session of ours, as SQL writes their values."""


class ClickError(Exception):
    """What ClickHouse said when it refused a statement, or that it is gone."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code

    @property
    def sqlstate(self) -> str:
        """ClickHouse's own number of the error, for it has no SQLSTATEs."""
        return "lost" if self.code is None else f"code {self.code}"


class Line(Protocol):
    """One connection's way to the engine; one statement at a time."""

    def ask(self, sql: str) -> pa.Table | None:
        """Run one statement to its end and return its whole answer, None when it has none.

        Raises ClickError.
        """

    def put(self, table: Qualified, columns: Sequence[str], rows: pa.Table) -> None:
        """Insert rows into a table, named as SQL writes it. Raises ClickError."""

    def close(self) -> None:
        """End it, with what it still does; may be called again."""


class ClickDatabase(Protocol):
    """A database of ClickHouse's that is open."""

    @property
    def data_directory(self) -> Path | None:
        """Where its files lie."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the user sets for each session."""

    @property
    def pid(self) -> int | None:
        """The engine's process, where it is ours to know."""

    def line(self) -> Line:
        """Open a connection. Raises ClickError."""

    def probe(self) -> None:
        """Have the server answer something; do nothing where the engine is a process of ours."""

    def hang_up(self, line: Line) -> None:
        """End what a connection still does where asking for it did not help."""

    def connect(self, name: str) -> ClickControl:
        """Open a control connection of this name."""

    def named(self, name: str) -> Sequence[ClickControl]:
        """Return the open control connections of this name."""


class ClickControl(LinkControl[Line]):
    """A control connection; its link is a line.

    The statement after an error gets another line: chDB 26.9 answers the first one after a query that was
    cancelled with nothing.
    """

    title = "ClickHouse"
    errors = ClickError
    _numbers = count(1)

    def __init__(self, database: ClickDatabase, name: str) -> None:
        super().__init__(name)
        self.database = database
        self.mark = f"loadstone {next(self._numbers)}"
        """What tells this connection's statements from all others on the server."""

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> WholeResult:
        """Run one statement to its end; values are written into its text."""
        found = self.table(self._plain(query, params))
        return WholeResult(found.to_pylist() if found is not None else [])

    def table(self, sql: str) -> pa.Table | None:
        """Run one statement to its end and return its whole answer; None when it has none."""
        return self.call(lambda line: line.ask(sql))

    def put(self, table: Qualified, columns: Sequence[str], rows: pa.Table) -> None:
        """Insert rows."""
        self.call(lambda line: line.put(table, columns, rows))

    def use(self, database: str) -> None:
        """Make unqualified names mean what is in a database."""
        self.table(f"use {quoted(database)}")

    def dial(self) -> Line:
        """Open a line, with our settings and in our database if it is there."""
        line = self.database.line()
        try:
            self._set_up(line)
        except BaseException:
            line.close()
            raise
        return line

    def tell(self, link: Line, limit_s: float) -> None:
        """Kill what bears this connection's mark, by another line."""
        del link, limit_s
        with closing(self.database.line()) as other:
            other.ask(KILL.format(mark=literal(self.mark)))

    def probe(self) -> None:
        """Ask for a sign of life, as the database can."""
        self.database.probe()

    def cut(self, link: Line) -> None:
        """End what the line does as the database can: chDB's ends with all others."""
        self.database.hang_up(link)

    def hang_up(self, link: Line) -> None:
        """Close the line."""
        link.close()

    def lost(self, words: str) -> ClickError:
        """Return the error of a line that is gone."""
        return ClickError(words)

    def _set_up(self, line: Line) -> None:
        values = SESSION | {name: literal(value) for name, value in self.database.settings.items()}
        values |= {"log_comment": literal(self.mark)}
        line.ask("set " + ", ".join(f"{name} = {value}" for name, value in values.items()))
        if line.ask(HAS_DATABASE.format(name=literal(SCHEMA))):
            line.ask(f"use {quoted(SCHEMA)}")


KILL = "kill query where Settings['log_comment'] = {mark} async"
HAS_DATABASE = "select 1 as one from system.databases where name = {name}"


def click(connection: Control) -> ClickControl:
    """Return a control connection as ClickHouse's, for what only it can do."""
    if not isinstance(connection, ClickControl):
        raise TypeError(f"ClickHouse was given a {type(connection).__name__} for a connection")
    return connection
