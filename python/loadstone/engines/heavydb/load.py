"""Batches of Arrow rows into HeavyDB: one session a worker, one import a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loadstone.engine.library.client import Client, Library
from loadstone.engines.heavydb.control import HeavyError, heavy
from loadstone.sqltext import own_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone._core import RowBatch
    from loadstone.engine.control import Control
    from loadstone.engines.heavydb.control import HeavyControl

_CLIENTS = "loadstone load"


class HeavyLoader(Library):
    """What HeavyDB brings to a load."""

    errors = (HeavyError,)

    def __init__(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> None:
        """Keep a drive's document with its `load`."""
        self._tables: Mapping[str, Any] = document["load"]["tables"]
        self._connect = connect

    def connect(self, number: int) -> HeavySession:
        """Open the connection of one client."""
        del number
        return HeavySession(heavy(self._connect(_CLIENTS)), self._tables)

    def finish(self) -> None:
        """Do nothing more: each import ends with a checkpoint, and is in the files when it is answered."""


class HeavySession(Client):
    """One worker's connection."""

    mode = "arrow"

    def __init__(self, control: HeavyControl, tables: Mapping[str, Any]) -> None:
        self._control = control
        self._tables = tables

    def send(self, batch: RowBatch, mark: Callable[[int], None] | None = None) -> None:
        """Import a batch: HeavyDB has no transactions, and an import is what is answered as one."""
        del mark
        for part in batch.tables:
            self._put(own_name(self._tables[part.table]["name"]), plain(pa.record_batch(part)))

    def _put(self, table: str, rows: pa.RecordBatch) -> None:
        self._control.call(lambda link: link.put(table, rows))

    def interrupt(self) -> None:
        """Make `send`, which another thread is in, fail."""
        self._control.interrupt()

    def close(self) -> None:
        """End it."""
        self._control.close()


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows in the types that HeavyDB's import takes: its server reads no other kind of text."""
    arrays = []
    for column in rows.columns:
        kind = column.type
        is_other_text = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
        is_other_text = is_other_text or pa.types.is_dictionary(kind)
        if is_other_text:
            arrays.append(column.cast(pa.string()))
        elif pa.types.is_timestamp(kind):
            # No zone: a time is what it is in UTC. `timestamp(6)` holds microseconds.
            arrays.append(column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us")))
        else:
            arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)
