"""Tables of a run as files: CSV and Parquet."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.results.json_files import write_bytes, write_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadstone.tables.results import RunResults

FORMATS = ("csv", "parquet")


def encoded(table: pa.Table, form: str) -> bytes:
    """Return a table in one of `FORMATS`."""
    out = io.BytesIO()
    if form == "csv":
        from pyarrow import csv  # noqa: PLC0415 - each format loads what it needs

        csv.write_csv(table, out)
    else:
        from pyarrow import parquet  # noqa: PLC0415 - as above

        parquet.write_table(table, out, compression="zstd")
    return out.getvalue()


def write_tables(run: RunResults, names: Sequence[str], form: str, folder: Path) -> list[Path]:
    """Write each table to a file of its name in a folder, which is made; return the paths.

    Raises LoadstoneError where the folder cannot be used, RunFailedError when the disk refuses.
    """
    if folder.exists() and not folder.is_dir():
        raise LoadstoneError(f"'{folder}' is not a folder", "Give a folder with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(folder, error) from error
    written = []
    for name in names:
        path = folder / f"{name}.{form}"
        write_bytes(path, encoded(run.table(name), form))
        written.append(path)
    return written
