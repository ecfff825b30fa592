"""Batches of Arrow rows into DuckDB: one cursor a worker, one transaction a batch."""

# ruff: noqa: S608 - identifiers were written by `quoted`
from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from loadstone.engine.library.client import Client, Library
from loadstone.engines.duckdb.database import duck, run
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone._core import RowBatch, TableBatch
    from loadstone.engine.control import Control
    from loadstone.engines.duckdb.database import DuckControl
    from loadstone.sqltext import Qualified

_INCOMING = "loadstone_incoming"
_CLIENTS = "loadstone load"


class DuckLoader(Library):
    """What DuckDB brings to a load."""

    errors = (duckdb.Error,)

    def __init__(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> None:
        """Take a drive's document with its `load`."""
        self.load: Mapping[str, Any] = document["load"]
        self._connect = connect

    def connect(self, number: int) -> DuckSession:
        """Open the connection of one client."""
        del number
        return DuckSession(duck(self._connect(_CLIENTS)), self.load)

    def finish(self) -> None:
        """Write into the file what is only in the WAL."""
        with contextlib.closing(self._connect("loadstone")) as control:
            control.execute("checkpoint")


class DuckSession(Client):
    """One worker's cursor."""

    def __init__(self, control: DuckControl, load: Mapping[str, Any]) -> None:
        self._control = control
        self._cursor = control.cursor
        self._load = load
        self.mode = "insert" if load["method"] == "insert" else "arrow"
        self._insert = self._by_values if self.mode == "insert" else self._by_arrow
        self._mark: Callable[[int], None] | None = None

    def send(self, batch: RowBatch, mark: Callable[[int], None] | None = None) -> None:
        """Put a batch into the database in one transaction."""
        self._mark = mark
        run(self._cursor, "begin")
        try:
            for tags in batch.tags:
                self._put_tags(tags)
            for rows in batch.tables:
                self._put_rows(rows)
            ledger: Qualified | None = self._load["ledger"]
            if ledger:
                text = f"insert into {ledger} (batch, rows) values ({batch.number}, {batch.rows})"
                run(self._cursor, text)
            run(self._cursor, "commit")
        except duckdb.Error:
            with contextlib.suppress(duckdb.Error):
                run(self._cursor, "rollback")
            raise

    def interrupt(self) -> None:
        """Make `send`, which another thread is in, fail."""
        self._control.interrupt()

    def close(self) -> None:
        """End it."""
        self._control.close()

    def _put_tags(self, batch: TableBatch) -> None:
        rows = pa.record_batch(batch)
        where = self._load["tables"]["tags"]
        if not self._load["jsonb_tags"]:
            self._insert(where["name"], where["columns"], where["columns"], rows)
            return
        pairs = ", ".join(f"{literal(name)}, {quoted(name)}" for name in rows.schema.names[1:])
        made = [where["columns"][0], f"json_object({pairs})"]
        self._by_arrow(where["name"], where["columns"], made, rows)

    def _put_rows(self, batch: TableBatch) -> None:
        rows = pa.record_batch(batch)
        where = self._load["tables"][batch.table]
        if self._load["in_table_tag"]:
            # The core puts the device's first tag before the other columns.
            rows = rows.rename_columns([column.strip('"') for column in where["columns"]])
        self._insert(where["name"], where["columns"], where["columns"], rows)

    def _by_arrow(self, table: Qualified, columns: Sequence[str], values: Sequence[str], rows: Any) -> None:
        # A view of rows that stay where they are: no value is copied before DuckDB reads it.
        self._cursor.register(_INCOMING, pa.Table.from_batches([rows]))
        try:
            text = f"insert into {table} ({', '.join(columns)}) select {', '.join(values)} from {_INCOMING}"
            run(self._cursor, text)
        finally:
            # After an error the transaction refuses this too, and the first error is the one that tells.
            with contextlib.suppress(duckdb.Error):
                self._cursor.unregister(_INCOMING)

    def _by_values(self, table: Qualified, columns: Sequence[str], values: Sequence[str], rows: Any) -> None:
        """Write one INSERT with all rows as text, as other engines get it."""
        taken = [rows.column(name.strip('"')) for name in values]
        if self._mark is not None:
            self._one_by_one(table, columns, taken)
            return
        texts = [_texts(column) for column in taken]
        lines = ",\n".join(f"({', '.join(row)})" for row in zip(*texts, strict=True))
        run(self._cursor, f"insert into {table} ({', '.join(columns)}) values {lines}")

    def _one_by_one(self, table: Qualified, columns: Sequence[str], taken: Sequence[Any]) -> None:
        """Write one INSERT a row: parsed once, and run for each row of the stretch between two marks."""
        length, places = self._load["transaction"]["mark_rows"], ", ".join("?" * len(columns))
        text = f"insert into {table} ({', '.join(columns)}) values ({places})"
        count = len(taken[0])
        for begin in range(0, count, length):
            parts = [column.slice(begin, length).to_pylist() for column in taken]
            self._cursor.executemany(text, list(zip(*parts, strict=True)))
            if self._mark is not None:
                self._mark(min(begin + length, count))


def _texts(column: pa.Array) -> list[str]:
    """Write a column's values as SQL does."""
    if pa.types.is_timestamp(column.type):
        micros = pc.cast(column, pa.timestamp("us", tz="UTC"), safe=False)
        return [f"'{value}+00'" for value in pc.strftime(micros, "%Y-%m-%d %H:%M:%S").to_pylist()]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return ["null" if value is None else literal(value) for value in column.to_pylist()]
    return ["null" if value is None else repr(value) for value in column.to_pylist()]
