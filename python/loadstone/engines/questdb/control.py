"""A control connection to QuestDB by PostgreSQL's wire protocol; it outlives a restart of the server."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
import pyarrow as pa
from psycopg.rows import dict_row

from loadstone.engine.library.engine import Named
from loadstone.engine.library.links import LinkControl
from loadstone.engine.postgres.connections import arguments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from loadstone.engine.control import Control, Result
    from loadstone.model import Connection

_BATCH_ROWS = 10_000
_ARROW = {
    16: pa.bool_(), 20: pa.int64(), 21: pa.int16(), 23: pa.int32(), 700: pa.float32(), 701: pa.float64(),
    1082: pa.date32(), 1114: pa.timestamp("us"), 1184: pa.timestamp("us", tz="UTC"),
}  # fmt: skip
"""Types of answers by PostgreSQL's numbers of them; all others are texts."""


Own = psycopg.Connection[dict[str, Any]]


class QuestServer(Named, Protocol):
    """A server that connections go to."""

    @property
    def server(self) -> Connection:
        """How it is reached; another after it was started again."""


class QuestControl(LinkControl[Own]):
    """A control connection; its link is psycopg's own."""

    title = "QuestDB"
    errors = psycopg.Error

    def __init__(self, database: QuestServer, name: str) -> None:
        super().__init__(name)
        self.database = database

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> Result:
        """Run one statement to its end; parameters are written `%(name)s`."""
        found: Result = self.call(lambda own: own.execute(query.encode(), params))
        return found

    def table(self, sql: str) -> pa.Table:
        """Run a query and return its whole answer as Arrow."""
        return self.call(lambda own: _table(own, sql))

    def put(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row, in one transaction; values are written `%s`."""

        def work(own: Own) -> None:
            with own.transaction(), own.cursor() as cursor:
                cursor.executemany(sql.encode(), rows)

        self.call(work)

    def text(self, sql: str) -> list[list[str | None]]:
        """Run a query and return its whole answer as the server writes it."""

        def work(own: Own) -> list[list[str | None]]:
            found = own.execute(sql.encode()).pgresult
            if found is None:
                return []
            values = [
                [found.get_value(row, column) for column in range(found.nfields)]
                for row in range(found.ntuples)
            ]
            return [[None if v is None else v.decode(errors="replace") for v in row] for row in values]

        told: list[list[str | None]] = self.call(work)
        return told

    def dial(self) -> Own:
        """Open a connection."""
        opened: Own = psycopg.Connection.connect(
            **arguments(self.database.server), autocommit=True, row_factory=dict_row
        )
        opened.prepare_threshold = None
        return opened

    def tell(self, link: Own, limit_s: float) -> None:
        """Cancel what the connection does; no answer does not mean that it was not heard."""
        with contextlib.suppress(psycopg.Error, OSError):
            link.cancel_safe(timeout=limit_s)

    def probe(self) -> None:
        """Open and close another connection."""
        psycopg.connect(**arguments(self.database.server)).close()

    def cut(self, link: Own) -> None:
        """End the connection's socket."""
        with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(link.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    def hang_up(self, link: Own) -> None:
        """Close the connection."""
        link.close()

    def lost(self, words: str) -> psycopg.OperationalError:
        """Return the error of a connection that is gone."""
        return psycopg.OperationalError(words)

    def spoilt(self, link: Own, error: BaseException) -> bool:
        """Ask psycopg, which closes a connection that is broken."""
        del error
        return link.closed


def _table(own: psycopg.Connection[Any], sql: str) -> pa.Table:
    with own.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.execute(sql.encode())
        described = cursor.description
        if described is None:
            raise psycopg.ProgrammingError("the statement returned no rows")
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
