"""Batches of Arrow rows into ClickHouse: one connection a worker, one insert a batch."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadstone.engine.dialect.names import SCHEMA
from loadstone.engine.library.client import Client, Library
from loadstone.engines.clickhouse.control import ClickError, click
from loadstone.sqltext import literal, own_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone._core import RowBatch
    from loadstone.engine.control import Control
    from loadstone.engines.clickhouse.control import ClickControl

_CLIENTS = "loadstone load"
_POLL_S = 0.05
_MERGES = """
select count() as merges from system.merges where database = {schema} and table in ({tables})
"""


class ClickLoader(Library):
    """What ClickHouse brings to a load."""

    errors = (ClickError,)

    def __init__(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> None:
        """Keep a drive's document with its `load`."""
        self._tables: Mapping[str, Any] = document["load"]["tables"]
        self._timeout_s = float(document["timeout_s"])
        self._connect = connect

    def connect(self, number: int) -> ClickSession:
        """Open the connection of one client."""
        del number
        return ClickSession(click(self._connect(_CLIENTS)), self._tables)

    def finish(self) -> None:
        """Wait for the merges that the inserts have set off; what is in is on the disk already."""
        names = ", ".join(literal(own_name(table["name"])) for table in self._tables.values())
        end = time.monotonic() + self._timeout_s
        with closing(self._connect("loadstone")) as control:
            statement = _MERGES.format(schema=literal(SCHEMA), tables=names)
            while time.monotonic() < end:
                row = control.execute(statement).fetchone() or {"merges": 0}
                if not row["merges"]:
                    return
                time.sleep(_POLL_S)


class ClickSession(Client):
    """One worker's connection."""

    mode = "arrow"

    def __init__(self, control: ClickControl, tables: Mapping[str, Any]) -> None:
        self._control = control
        self._tables = tables

    def send(self, batch: RowBatch, mark: Callable[[int], None] | None = None) -> None:
        """Insert a batch: as long as it is one block, it is in the table whole or not at all."""
        del mark
        for part in batch.tables:
            where = self._tables[part.table]
            rows = pa.Table.from_batches([pa.record_batch(part)])
            self._control.put(where["name"], where["columns"], rows)

    def interrupt(self) -> None:
        """Make `send`, which another thread is in, fail."""
        self._control.interrupt()

    def close(self) -> None:
        """End it."""
        self._control.close()
