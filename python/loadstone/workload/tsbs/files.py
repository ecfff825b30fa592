"""Data sets as folders of files that pyarrow writes: Parquet and Arrow IPC, one file a table."""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import ipc, parquet

from loadstone import _core
from loadstone.errors import LoadstoneError, RunFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.signals import Signals

    Writer = Any
    Open = Callable[[Path, pa.Schema, str], Writer]

_READ_ROWS = 1 << 16
"""Rows read at a time, over all tables."""
_GROUP_ROWS = 1 << 17
"""Rows of one table that are written together: a row group of Parquet."""
_TYPES = {
    "timestamp": pa.timestamp("ns", tz="+00:00"),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "text": pa.string(),
    "bool": pa.bool_(),
}


def _parquet(path: Path, schema: pa.Schema, compress: str) -> Writer:
    return parquet.ParquetWriter(path, schema, compression=compress or "snappy")


def _arrow(path: Path, schema: pa.Schema, compress: str) -> Writer:
    if compress == "gzip":
        raise LoadstoneError("Arrow files cannot be compressed with gzip", "Choose --compress=zstd.")
    return ipc.new_file(path, schema, options=ipc.IpcWriteOptions(compression=compress or None))


_OPENERS: dict[str, Open] = {"parquet": _parquet, "arrow": _arrow}


def write_tables(
    document: Mapping[str, Any],
    format_: str,
    folder: str,
    signals: Signals,
    *,
    compress: str = "",
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write the tables of a DATA document into a new folder, one file a table; return the account.

    The folder is complete or not there. Raises LoadstoneError when it cannot begin, RunFailedError later,
    InterruptedRun after a signal, which is looked for between two batches of rows.
    """
    begun = time.monotonic()
    try:
        stream = _core.DataStream(json.dumps(document), fingerprints=False)
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    tables = _tables(stream, format_)
    path = Path(folder)
    _refuse_existing(path, list(tables), overwrite=overwrite)
    try:
        # A signal is left to `Signals.check`: raised between two steps, it would leave a new folder behind.
        with signals.calling(lambda: None), _new_folder(path) as part:
            _write(stream, tables, format_, part, compress, signals)
            size = sum(found.stat().st_size for found in part.iterdir())
    except _core.DriveError as error:
        raise RunFailedError(*error.args) from error
    except OSError as error:
        raise RunFailedError(
            f"writing {folder}: {error.strerror or error}",
            "Check that the disk has enough space; the incomplete folder was removed.",
        ) from error
    return {
        "state": "complete",
        "rows": stream.rows,
        "metrics": stream.metrics,
        "bytes": size,
        "duration_ns": int((time.monotonic() - begun) * 1e9),
    }


def _tables(stream: _core.DataStream, format_: str) -> dict[str, Mapping[str, Any]]:
    """Return the tables by the names of their files."""
    dataset = json.loads(stream.dataset())
    tables = [*([dataset["tags"]] if dataset["tags"] else []), *dataset["tables"]]
    return {f"{table['name']}.{format_}": table for table in tables}


def _refuse_existing(path: Path, names: list[str], *, overwrite: bool) -> None:
    if not overwrite and path.exists():
        raise LoadstoneError(f"'{path}' already exists", "Choose a new folder, or add --overwrite.")
    if path.exists() and not path.is_dir():
        raise LoadstoneError(f"'{path}' is not a folder", "Choose a new one.")
    others = [found for found in path.iterdir() if found.name not in names] if path.exists() else []
    if others:
        raise LoadstoneError(
            f"'{others[0]}' is not a file of this data set",
            "Choose a new folder: one with other files in it is not replaced.",
        )


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    part = path.with_name(path.name + ".part")
    try:
        part.mkdir()
    except FileExistsError:
        raise LoadstoneError(
            f"'{part}' exists: another process is writing it, or one was killed",
            "Remove it, or choose another folder.",
        ) from None
    try:
        yield part
        for written in part.iterdir():
            _to_disk(written)
        if path.exists():
            shutil.rmtree(path)  # it holds nothing but an older data set
        part.rename(path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _write(
    stream: _core.DataStream,
    tables: Mapping[str, Mapping[str, Any]],
    format_: str,
    part: Path,
    compress: str,
    signals: Signals,
) -> None:
    with ExitStack() as opened:
        files = {}
        for name, table in tables.items():
            writer = _OPENERS[format_](part / name, _schema(table), compress)
            opened.callback(writer.close)
            files[table["name"]] = _TableFile(writer, _schema(table))
        while (batches := stream.read(_READ_ROWS)) is not None:
            signals.check()
            for batch in batches:
                files[batch.table].add(pa.record_batch(batch))
        for file in files.values():
            file.flush()


class _TableFile:
    """One table's file, with the rows that wait for a whole group."""

    def __init__(self, writer: Writer, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch.cast(self._schema))
        self._rows += batch.num_rows
        if self._rows >= _GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema).combine_chunks())
        self._waiting, self._rows = [], 0


def _schema(table: Mapping[str, Any]) -> pa.Schema:
    return pa.schema([(column["name"], _TYPES[column["type"]]) for column in table["columns"]])
