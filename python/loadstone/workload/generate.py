"""Rows of a built-in data set as files, for `psql` and others to load as our own loads do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import parquet

from loadstone import _core
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.signals import InterruptedRun
from loadstone.workload.tsbs.generation import make

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.model import Compression, FileFormat, Rows
    from loadstone.signals import Signals

STANDARD_OUTPUT = "-"
_CORE_FORMATS = {"text": "copy_text", "csv": "csv", "binary": "copy_binary"}
_GROUP_BYTES = 32 << 20
"""About so much is read, and written as a row group of Parquet, at once."""


@dataclass(frozen=True, slots=True)
class Files:
    """What rows become, and where."""

    out: str
    """A new file, with steps a new folder; `-` is standard output."""
    format: FileFormat = "text"
    compress: Compression = "none"
    step_rows: int = 0
    """Rows of one file; 0: all rows are one file."""
    header: bool = False
    """Each CSV file begins with a line of the columns' names."""
    overwrite: bool = False
    threads: int = 0
    """Threads that make rows; 0: one a core."""


def document(rows: Rows) -> dict[str, Any]:
    """Return the DATA document of generated rows."""
    options = {name: str(value) for name, value in rows.options.items()}
    return {
        "kind": "rows",
        "set": rows.set,
        "seed": rows.seed,
        "first": rows.first,
        "rows": rows.rows,
        "options": options,
    }


def generate(
    rows: Rows,
    files: Files,
    signals: Signals | None = None,
    show: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Make the files and return the account: `state`, `rows`, `plain_bytes`, `bytes`, `duration_ns`.

    A file or folder is complete or not there. Raises LoadstoneError when it cannot begin, RunFailedError when
    it cannot go on, InterruptedRun when a signal has ended it.
    """
    if rows.rows < 1:
        raise LoadstoneError("the number of rows is missing", "Set it: --rows N.")
    _check(files)
    files = replace(files, out=files.out.rstrip("/") or files.out)  # as shells complete the name of a folder
    if files.format == "parquet":
        return _write_parquet(rows, files, signals)
    output: dict[str, Any] = {"path": files.out, "overwrite": files.overwrite}
    if files.out == STANDARD_OUTPUT:
        sys.stdout.flush()
        output = {"fd": sys.stdout.fileno()}
    specification = {
        "data": document(rows),
        "format": _CORE_FORMATS[files.format],
        "output": output,
        "compress": files.compress,
        "threads": files.threads or None,
        "step_rows": files.step_rows,
        "header": files.header,
    }
    account = make(specification, signals, show)
    if account["state"] == "interrupted":
        raise InterruptedRun((signals and signals.received) or signal.SIGINT)
    return account


def _check(files: Files) -> None:
    if files.header and files.format != "csv":
        raise LoadstoneError(
            f"only CSV files have a header, not {files.format}", "Remove --header, or choose --format csv."
        )
    if files.out.endswith("/") and not files.step_rows:
        raise LoadstoneError(
            f"'{files.out}' is a folder, but all rows are written to one file",
            "Choose a new file, or add --step-rows N to write a folder of files.",
        )
    if files.out != STANDARD_OUTPUT:
        return
    if files.step_rows:
        raise LoadstoneError(
            "each step is a file of its own, which standard output cannot contain",
            "Choose a new folder: --out FOLDER.",
        )
    if files.format == "parquet":
        raise LoadstoneError("Parquet cannot be written to standard output", "Choose a new file: --out FILE.")
    if sys.stdout.isatty() and (files.format == "binary" or files.compress != "none"):
        raise LoadstoneError(
            "binary data cannot be written to a terminal", "Redirect it to a file or a pipe."
        )


def _write_parquet(rows: Rows, files: Files, signals: Signals | None) -> dict[str, Any]:
    try:
        stream = _core.DataStream(json.dumps(document(rows)), fingerprints=False)
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    (table,) = json.loads(stream.dataset())["tables"]
    began_ns = time.monotonic_ns()
    try:
        with _new(files) as part:
            sizes = _Parquet(stream, table, files, signals).write(part, rows.rows)
    except OSError as error:
        raise RunFailedError(
            f"'{files.out}' cannot be written: {error.strerror or error}",
            "Check that the disk has enough space; the incomplete output was removed.",
        ) from error
    duration_ns = time.monotonic_ns() - began_ns
    return {
        "state": "complete",
        "rows": stream.rows,
        "plain_bytes": sizes,
        "bytes": sizes,
        "duration_ns": duration_ns,
    }


class _Parquet:
    """Files of Parquet from one stream of rows."""

    def __init__(
        self, stream: _core.DataStream, table: dict[str, Any], files: Files, signals: Signals | None
    ) -> None:
        self._stream, self._files, self._signals = stream, files, signals
        self._name = table["name"]
        self._group = max(1, int(_GROUP_BYTES / max(1.0, table["row_bytes"])))

    def write(self, part: Path, rows: int) -> int:
        """Write all files and return their bytes."""
        step_rows = self._files.step_rows
        if not step_rows:
            self._write_file(part, rows)
            return part.stat().st_size
        for number, first in enumerate(range(0, rows, step_rows), 1):
            self._write_file(part / f"{self._name}-{number:06}.parquet", min(step_rows, rows - first))
        return sum(path.stat().st_size for path in part.iterdir())

    def _write_file(self, path: Path, rows: int) -> None:
        writer: parquet.ParquetWriter | None = None
        try:
            left = rows
            while left and (batches := self._stream.read(min(left, self._group))):
                if self._signals is not None:
                    self._signals.check()
                batch = pa.record_batch(batches[0])
                writer = writer or self._open(path, batch.schema)
                writer.write_batch(batch)
                left -= batch.num_rows
        finally:
            if writer is not None:
                writer.close()
        with path.open("rb") as file:
            os.fsync(file.fileno())

    def _open(self, path: Path, schema: pa.Schema) -> parquet.ParquetWriter:
        return parquet.ParquetWriter(path, schema.remove_metadata(), compression=self._files.compress)


@contextmanager
def _new(files: Files) -> Iterator[Path]:
    """Give a path to write at; it gets its name when it is complete."""
    path = Path(files.out)
    part = path.with_name(path.name + ".part")
    if path.exists() and not files.overwrite:
        raise LoadstoneError(f"'{path}' already exists", "Choose a new one, or add --overwrite.")
    if path.is_dir() != bool(files.step_rows) and path.exists():
        raise LoadstoneError(f"'{path}' is of another type", "Choose a new one.")
    _refuse_others(path)
    if part.exists():
        raise LoadstoneError(
            f"'{part}' exists: another process is writing it, or one was killed",
            "Remove it, or choose another name.",
        )
    try:
        if files.step_rows:
            part.mkdir()
        yield part
        if path.is_dir():
            shutil.rmtree(path)  # it holds nothing but older files of rows
        part.replace(path)
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


def _refuse_others(path: Path) -> None:
    others = [found for found in path.iterdir() if found.suffix != ".parquet"] if path.is_dir() else []
    if others:
        raise LoadstoneError(
            f"'{others[0]}' is not a file of this data set",
            "Choose a new folder: one with other files in it is not replaced.",
        )
