"""A control connection to QuestDB by PostgreSQL's wire protocol; it outlives a restart of the server."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
import pyarrow as pa
from psycopg.rows import dict_row

from loadstone.engine.connecting import arguments
from loadstone.engine.driver import Named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from loadstone.engine.control import Control, Result
    from loadstone.model import Connection

_BATCH_ROWS = 10_000
_ARROW = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int16(), 23: pa.int32(), 700: pa.float32(), 701: pa.float64(),
    1082: pa.date32(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", tz="UTC"),
}  # fmt: skip
"""Types of answers by PostgreSQL's numbers of them; all others are texts."""


class Reached(Named, Protocol):
    """A server that connections go to."""

    @property
    def server(self) -> Connection:
        """How it is reached; another after it was started anew."""


class QuestControl:
    """A control connection; psycopg's own is opened when it is first needed, and anew when it was lost."""

    def __init__(self, database: Reached, name: str) -> None:
        self.name = name
        self.database = database
        self._closed = False
        self._busy = threading.Lock()
        self._own: psycopg.Connection[dict[str, Any]] | None = None

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    def execute(self, query: str | bytes, params: Mapping[str, Any] | None = None, /) -> Result:
        """Run one statement to its end; parameters are written `%(name)s`."""
        text = query.encode() if isinstance(query, str) else query
        found: Result = self._with(lambda own: own.execute(text, params))
        return found

    def table(self, sql: str) -> pa.Table:
        """Run a query and return its whole answer as Arrow."""
        return self._with(lambda own: _table(own, sql))

    def put(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row, in one transaction; values are written `%s`."""

        def work(own: psycopg.Connection[dict[str, Any]]) -> None:
            with own.transaction(), own.cursor() as cursor:
                cursor.executemany(sql.encode(), rows)

        self._with(work)

    def text(self, sql: str) -> list[list[str | None]]:
        """Run a query and return its whole answer as the server writes it."""

        def work(own: psycopg.Connection[dict[str, Any]]) -> list[list[str | None]]:
            found = own.execute(sql.encode()).pgresult
            if found is None:
                return []
            values = [
                [found.get_value(row, column) for column in range(found.nfields)]
                for row in range(found.ntuples)
            ]
            return [[None if v is None else v.decode(errors="replace") for v in row] for row in values]

        told: list[list[str | None]] = self._with(work)
        return told

    def interrupt(self, limit_s: float = 2.0) -> None:
        """Make the statement that another thread runs here fail: asked first, then cut off."""
        own = self._own
        if own is None or not self._busy.locked():
            return
        with contextlib.suppress(psycopg.Error, OSError):
            own.cancel_safe(timeout=limit_s)
        if self._busy.acquire(timeout=limit_s):
            self._busy.release()
            return
        with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(own.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End it; may be called again."""
        self._closed = True
        self.drop()

    def drop(self) -> None:
        """Let go of psycopg's connection; the next statement opens another."""
        own, self._own = self._own, None
        if own is not None:
            own.close()

    def _with(self, work: Callable[[psycopg.Connection[dict[str, Any]]], Any]) -> Any:
        if self._closed:
            raise psycopg.OperationalError("the connection is closed")
        with self._busy:
            if self._own is None or self._own.closed:
                self._own = self._opened()
            return work(self._own)

    def _opened(self) -> psycopg.Connection[dict[str, Any]]:
        opened: psycopg.Connection[dict[str, Any]] = psycopg.Connection.connect(
            **arguments(self.database.server), autocommit=True, row_factory=dict_row
        )
        opened.prepare_threshold = None
        return opened


def _table(own: psycopg.Connection[Any], sql: str) -> pa.Table:
    with own.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.execute(sql.encode())
        described = cursor.description
        if described is None:
            raise psycopg.ProgrammingError("the statement gave no rows")
        kinds = [_ARROW.get(column.type_code, pa.string()) for column in described]
        pieces: list[list[pa.Array]] = [[] for _ in described]
        for rows in _rows(cursor):
            for place, (kind, values) in enumerate(zip(kinds, zip(*rows, strict=True), strict=True)):
                pieces[place].append(_array(values, kind))
        columns = [pa.chunked_array(found, kind) for found, kind in zip(pieces, kinds, strict=True)]
        return pa.table(columns, names=[column.name for column in described])


def _rows(cursor: psycopg.Cursor[Any]) -> Iterator[Sequence[tuple[Any, ...]]]:
    while rows := cursor.fetchmany(_BATCH_ROWS):
        yield rows


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_string(kind):
        return pa.array([None if value is None else str(value) for value in values], kind)
    return pa.array(values, kind)


def quest(connection: Control) -> QuestControl:
    """Return a control connection as QuestDB's, for what only it can do."""
    if not isinstance(connection, QuestControl):
        raise TypeError(f"QuestDB was given a {type(connection).__name__} for a connection")
    return connection
