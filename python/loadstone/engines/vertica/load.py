"""Batches of rows into Vertica: one connection a worker, one COPY a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadstone.engine.library.client import Client, Library
from loadstone.engines.vertica.errors import VerticaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone._core import RowBatch
    from loadstone.engine.control import Control
    from loadstone.sqltext import Qualified

_CLIENTS = "loadstone load"
_NULL = "\x01"
"""Stands for NULL, so that an empty text stays one."""
_ESCAPED = ("\\", "\t", "\n", "\r", _NULL)
"""A backslash makes the character after it a plain one: Vertica's COPY, "Loading Delimited Data"."""


def statement(table: Qualified, columns: Sequence[str]) -> str:
    """Return the COPY for rows as `payload` writes them; nothing of a batch goes in when a row is refused."""
    return (
        f"copy {table} ({', '.join(columns)}) from stdin delimiter E'\\t' null E'\\001' escape as E'\\\\' "
        "enforcelength abort on error"
    )


def payload(rows: pa.RecordBatch) -> bytes:
    """Write rows as text: fields between tabulators, one row a line."""
    fields = [_texts(column) for column in rows.columns]
    lines = pc.binary_join_element_wise(*fields, "\t")
    return "\n".join([*lines.to_pylist(), ""]).encode()


def _texts(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us"))
    if pa.types.is_float32(kind):
        column = column.cast(pa.float64())  # its shortest text would be another double
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    texts = column.cast(pa.string())
    if is_text:
        for character in _ESCAPED:
            texts = pc.replace_substring(texts, character, f"\\{character}")
    return texts.fill_null(_NULL)


class VerticaLoader(Library):
    """What Vertica brings to a load."""

    errors = (VerticaError,)

    def __init__(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> None:
        """Keep a drive's document with its `load`."""
        self._tables: Mapping[str, Any] = document["load"]["tables"]
        self._connect = connect

    def connect(self, number: int) -> VerticaSession:
        """Open the connection of one client."""
        del number
        return VerticaSession(self._connect(_CLIENTS), self._tables)

    def finish(self) -> None:
        """Do nothing more: each COPY commits itself, and its rows are in files when it is answered."""


class VerticaSession(Client):
    """One worker's connection."""

    mode = "copy_text"

    def __init__(self, control: Any, tables: Mapping[str, Any]) -> None:
        self._control = control
        self._tables = tables

    def send(self, batch: RowBatch, mark: Callable[[int], None] | None = None) -> None:
        """Put a batch in by a COPY, which is a transaction."""
        del mark
        for part in batch.tables:
            where = self._tables[part.table]
            self._control.copy(statement(where["name"], where["columns"]), payload(pa.record_batch(part)))

    def interrupt(self) -> None:
        """Make `send`, which another thread is in, fail."""
        self._control.interrupt()

    def close(self) -> None:
        """End it."""
        self._control.close()
