"""What a bulk load is to load: its rows as the core is told of them, and the table that they fit."""

from __future__ import annotations

import csv
import hashlib
import json
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadstone import _core
from loadstone.engine.tables import Circumstances, TableAnswers
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.engine.tables import RowTable
    from loadstone.model import BulkLoad, Rows

FILE_TABLE = "rows"
"""What the core calls the one table of files."""

_SAMPLE_ROWS = 1000
_PACKED = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_LOOK_BYTES = 1 << 20
_BINARY = b"PGCOPY\n\xff\r\n\0"
_BINARY_HEAD = struct.Struct("!II")
_BINARY_FIELDS = struct.Struct("!h")
_LENGTH = struct.Struct("!i")


@dataclass(frozen=True, slots=True)
class Content:
    """Rows that have been looked at; none of them is used up."""

    data: Mapping[str, Any]
    """The core's specification."""
    table: RowTable
    """The columns. Of files: texts, or those of a table that is there already."""
    widths: tuple[float, ...]
    """About how many bytes the values of each column have; found by the first rows."""
    rows: int
    """How many; 0: only reading tells."""
    first: int
    about: Mapping[str, Any]
    """What tells these rows from others."""
    file_bytes: int = 0
    """Bytes of the files, about, once unpacked."""

    @property
    def generated(self) -> bool:
        """Whether the rows are made here, so that it is known what the table must hold."""
        return bool(self.data["kind"] == "rows")


def look(bulk: BulkLoad, answers: TableAnswers | None = None) -> Content:
    """Look at the rows of a bulk load and at its wishes; touches no database.

    Raises LoadstoneError for rows that cannot be made or read, and for wishes that contradict them or each
    other; `answers` are those of the engine, else PostgreSQL's.
    """
    _refuse_numbers(bulk)
    if bulk.rows.files:
        # Whether the wishes fit hangs on the table that may be there for them.
        return _files(bulk.rows)
    content = _generated(bulk.rows)
    where = Circumstances(first=content.first, rows=content.rows)
    if answers is None:
        # Which forms there are is the engine's to say.
        TableAnswers().refuse_wishes(content.table, replace(bulk.table, form="default"), where)
    else:
        answers.refuse_wishes(content.table, bulk.table, where)
    return content


def _refuse_numbers(bulk: BulkLoad) -> None:
    long = bulk.transactions
    wrong = [
        (bulk.batch_rows < 1, "batch_rows", bulk.batch_rows),
        (bulk.workers < 1, "workers", bulk.workers),
        (bulk.step_rows < 0, "step_rows", bulk.step_rows),
        (bulk.table.partition_rows < 0, "partition_rows", bulk.table.partition_rows),
        (long is not None and long.rows < 1, "transactions.rows", long.rows if long else 0),
        (long is not None and long.mark_rows < 1, "transactions.mark_rows", long.mark_rows if long else 0),
    ]
    for is_wrong, name, value in wrong:
        if is_wrong:
            raise LoadstoneError(f"{name} cannot be {value}", "Give a whole number from 1.")


def _generated(rows: Rows) -> Content:
    data = {
        "kind": "rows",
        "set": rows.set,
        "seed": rows.seed,
        "first": rows.first,
        "rows": rows.rows,
        "options": {name: _word(value) for name, value in rows.options.items()},
    }
    if rows.rows < 1:
        raise LoadstoneError(f"{rows.rows} rows are asked for", "Give a number from 1.")
    try:
        stream = _core.DataStream(json.dumps(data), fingerprints=False)
        (table,) = json.loads(stream.dataset())["tables"]
        sample = stream.read(min(rows.rows, _SAMPLE_ROWS)) or []
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    first = pa.record_batch(sample[0])
    for column, values, field in zip(table["columns"], first.columns, first.schema, strict=True):
        column |= {"nulls": field.nullable} | ({"repeats": _repeats(values)} if column["type"] == "text" else {})
    widths = tuple(_width(column) for column in first.columns)
    return Content(data, table, widths, rows.rows, rows.first, data)


def _repeats(texts: pa.Array) -> bool:
    """Tell whether half of the texts or fewer are different: so many come again in the first rows already."""
    return bool(2 * pc.count_distinct(texts).as_py() <= len(texts))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _width(column: pa.Array) -> float:
    """Return how many bytes a value has on average."""
    if pa.types.is_string(column.type):
        return float(pc.mean(pc.fill_null(pc.binary_length(column), 0)).as_py() or 0.0)
    return max(1.0, float(column.type.bit_width) / 8)


def _files(rows: Rows) -> Content:
    paths = [Path(name) for name in rows.files]
    begins = [_begin_of(path) for path in paths]
    names = _columns_of(rows, paths[0], begins[0].text)
    data = {
        "kind": "files",
        "format": rows.format,
        "paths": [str(path.absolute()) for path in paths],
        "header": rows.header,
        "columns": len(names),
    }
    sizes = [path.stat().st_size for path in paths]
    plain = sum(size * begin.factor for size, begin in zip(sizes, begins, strict=True))
    row_bytes = _row_bytes(rows, begins[0].text)
    table: RowTable = {
        "name": FILE_TABLE,
        "metrics": len(names),
        "columns": [{"name": name, "type": "text"} for name in names],
        "usual_indexes": names,
        "sequence": None,
        "sequence_first": None,
        "sequence_step": None,
        "row_bytes": row_bytes,
    }
    about = {
        "kind": "files",
        "format": rows.format,
        "header": rows.header,
        "bytes": sizes,
        "begin": [hashlib.sha256(begin.text).hexdigest()[:16] for begin in begins],
        "rows": rows.rows,
    }
    widths = tuple(row_bytes / len(names) for _ in names)
    return Content(data, table, widths, rows.rows, 0, about, round(plain))


@dataclass(frozen=True, slots=True)
class _Begin:
    """The first bytes of a file, unpacked."""

    text: bytes
    factor: float
    """How many times longer they are than in the file."""


def _begin_of(path: Path) -> _Begin:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        packed = next((name for name, sign in _PACKED.items() if magic.startswith(sign)), None)
        with pa.OSFile(str(path)) as file:
            stream = file if packed is None else pa.CompressedInputStream(file, packed)
            text = stream.read(_LOOK_BYTES)
            factor = len(text) / max(1, file.tell()) if packed is not None else 1.0
    except OSError as error:
        why = error.strerror or str(error)
        raise LoadstoneError(
            f"{path} cannot be read: {why}", "Name files of rows that can be read."
        ) from error
    if not text:
        raise LoadstoneError(f"{path} is empty", "Name files that hold rows.")
    return _Begin(text, factor)


def _columns_of(rows: Rows, path: Path, begin: bytes) -> list[str]:
    """Return names for the columns of files: those of the header, else numbers."""
    if rows.format == "binary":
        return _numbered(_binary_fields(path, begin))
    try:
        line = begin.partition(b"\n")[0].decode()
    except UnicodeDecodeError as error:
        raise LoadstoneError(
            f"{path} is not UTF-8: byte {error.start}", "Give text in UTF-8, or unpack the file first."
        ) from error
    if rows.format == "text":
        return _numbered(line.count("\t") + 1)
    fields = next(csv.reader([line.rstrip("\r")]))
    if not rows.header:
        return _numbered(len(fields))
    twice = sorted({name for name in fields if fields.count(name) > 1 or not name})
    if twice:
        raise LoadstoneError(
            f'{path} has a header in which "{twice[0]}" is no name of one column', "Name each column once."
        )
    return fields


def _binary_fields(path: Path, begin: bytes) -> int:
    head = len(_BINARY)
    if not begin.startswith(_BINARY) or len(begin) < head + _BINARY_HEAD.size:
        raise LoadstoneError(
            f"{path} does not begin as COPY's binary format does", "Give what COPY … (format binary) writes."
        )
    _, extension = _BINARY_HEAD.unpack_from(begin, head)
    at = head + _BINARY_HEAD.size + extension
    fields = _BINARY_FIELDS.unpack_from(begin, at)[0] if len(begin) >= at + _BINARY_FIELDS.size else -1
    if fields < 1:
        raise LoadstoneError(f"{path} holds no rows", "Name files that hold rows.")
    return int(fields)


def _numbered(count: int) -> list[str]:
    return [f"c{number}" for number in range(1, count + 1)]


def _row_bytes(rows: Rows, begin: bytes) -> float:
    """Return about how many bytes a row of a file has."""
    if rows.format == "binary":
        return _binary_row_bytes(begin)
    lines = begin.count(b"\n")
    return len(begin) / lines if lines else float(len(begin))


def _binary_row_bytes(begin: bytes) -> float:
    """Return about how many bytes a row takes in COPY's binary format, lengths included."""
    at = len(_BINARY) + _BINARY_HEAD.size
    first, rows = at, 0
    while (end := _row_end(begin, at)) is not None:
        at, rows = end, rows + 1
    return (at - first) / rows if rows else float(len(begin))


def _row_end(begin: bytes, at: int) -> int | None:
    """Return where the row that begins here ends; None when it is not whole, or none."""
    if at + _BINARY_FIELDS.size > len(begin):
        return None
    (fields,) = _BINARY_FIELDS.unpack_from(begin, at)
    at += _BINARY_FIELDS.size
    for _ in range(fields):
        if at + _LENGTH.size > len(begin):
            return None
        at += _LENGTH.size + max(0, _LENGTH.unpack_from(begin, at)[0])
    return at if fields >= 0 and at <= len(begin) else None


def fitted(content: Content, columns: Sequence[Mapping[str, Any]]) -> Content:
    """Return files' content with the columns of a table that is there already.

    Raises LoadstoneError when rows of another number of columns are in the files.
    """
    if len(columns) != content.data["columns"]:
        raise LoadstoneError(
            f"the rows in the files have {content.data['columns']} columns, and the table has {len(columns)}",
            "Give files of the table's shape.",
        )
    named = [{"name": column["name"], "type": column["type"]} for column in columns]
    names = [column["name"] for column in named]
    return replace(content, table={**content.table, "columns": named, "usual_indexes": names})  # type: ignore[typeddict-item]
