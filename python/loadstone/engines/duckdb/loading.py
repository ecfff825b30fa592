"""Batches of Arrow rows into DuckDB: one cursor a worker, one transaction a batch."""

# ruff: noqa: S608 - identifiers were written by `quoted`
from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from loadstone.engine.names import literal, quoted
from loadstone.engines.duckdb.database import duck, run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone._core import TableBatch
    from loadstone.engine.control import Control
    from loadstone.engine.feeding import Batch
    from loadstone.engine.names import Qualified
    from loadstone.engines.duckdb.database import DuckControl

_INCOMING = "loadstone_incoming"
_CLIENTS = "loadstone load"


class DuckLoader:
    """What DuckDB brings to a load."""

    errors = (duckdb.Error,)

    def __init__(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> None:
        """Take a drive's document with its `load`."""
        self.load: Mapping[str, Any] = document["load"]
        self.devices = Devices()
        self._connect = connect

    def session(self) -> DuckSession:
        """Open a connection for one worker."""
        return DuckSession(duck(self._connect(_CLIENTS)), self.load, self.devices)

    def expect(self, tags: Sequence[TableBatch]) -> None:
        """Learn devices in the order of the stream: another worker may send their next rows first."""
        if self.load["in_table_tag"]:
            for part in tags:
                self.devices.learn(pa.record_batch(part))

    def sqlstate(self, error: Exception) -> str:
        """Return the kind of an error: DuckDB has no SQLSTATEs."""
        return type(error).__name__

    def finish(self) -> None:
        """Write into the file what is only in the WAL."""
        with contextlib.closing(self._connect("loadstone")) as control:
            control.execute("checkpoint")


class Devices:
    """The first tag of every device, by its id: for rows that hold it beside the id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: list[str | None] = [None]

    def learn(self, tags: pa.RecordBatch) -> None:
        """Take note of new rows of the table of devices."""
        ids, first = tags.column(0).to_pylist(), tags.column(1).to_pylist()
        with self._lock:
            self._first.extend([None] * (max(ids) + 1 - len(self._first)))
            for number, value in zip(ids, first, strict=True):
                self._first[number] = value

    def of(self, ids: pa.Array) -> pa.Array:
        """Return the first tag of each of these devices."""
        with self._lock:
            known = pa.array(self._first, pa.string())
        return known.take(ids)


class DuckSession:
    """One worker's cursor."""

    def __init__(self, control: DuckControl, load: Mapping[str, Any], devices: Devices) -> None:
        self._control = control
        self._cursor = control.cursor
        self._load = load
        self._devices = devices
        self.way = "insert" if load["method"] == "insert" else "arrow"
        self._insert = self._by_values if self.way == "insert" else self._by_arrow
        self._mark: Callable[[int], None] | None = None

    def send(self, batch: Batch, mark: Callable[[int], None] | None = None) -> None:
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
            wanted = (column.strip('"') for column in where["columns"])
            (device,) = (name for name in wanted if name not in rows.schema.names)
            rows = rows.append_column(device, self._devices.of(rows.column("tags_id")))
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
