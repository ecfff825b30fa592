"""What a bulk load is to load: its rows as the core is told of them, and the table that they fit."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadstone import _core
from loadstone.engine.dialect.tables import TableDialect, TableFacts
from loadstone.errors import LoadstoneError
from loadstone.workload.load.first_lines import Lines, fields_of, refuse_header, refuse_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.engine.dialect.tables import RowTable
    from loadstone.model import BulkLoad, Rows

FILE_TABLE = "rows"
"""What the core calls the one table of files."""

_SAMPLE_ROWS = 1000
_SLICES = 4
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


def look(bulk: BulkLoad, answers: TableDialect | None = None) -> Content:
    """Look at the rows of a bulk load and at its options; touches no database.

    Raises LoadstoneError for rows that cannot be made or read, and for options that contradict them or each
    other; `answers` are those of the engine, else PostgreSQL's.
    """
    _refuse_numbers(bulk)
    if bulk.rows.files:
        # Whether the options fit hangs on the table that may be there for them.
        return _files(bulk.rows)
    content = _generated(bulk.rows)
    where = TableFacts(first=content.first, rows=content.rows)
    if answers is None:
        # Which forms there are is the engine's to say.
        TableDialect().refuse_options(content.table, replace(bulk.table, form="default"), where)
    else:
        answers.refuse_options(content.table, bulk.table, where)
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
            raise LoadstoneError(f"{name} cannot be {value}", "Use a whole number from 1.")


def _generated(rows: Rows) -> Content:
    if rows.rows < 1:
        raise LoadstoneError(f"{rows.rows} is not a number of rows to generate", "Use a number from 1.")
    data = _made(rows, rows.first, rows.rows)
    table, widths = _looked_at(data, min(rows.rows, _SAMPLE_ROWS))
    table["text_row_bytes"] = _text_row_bytes(data)
    return Content(data, table, widths, rows.rows, rows.first, data)


def _made(rows: Rows, first: int, count: int) -> dict[str, Any]:
    """Return the core's document of rows that are made."""
    return {
        "kind": "rows",
        "set": rows.set,
        "seed": rows.seed,
        "first": first,
        "rows": count,
        "options": {name: _word(value) for name, value in rows.options.items()},
    }


def _looked_at(data: Mapping[str, Any], rows: int) -> tuple[RowTable, tuple[float, ...]]:
    """Return the table of rows that are values, and how many bytes a value has in the first of them.

    Raises LoadstoneError for what the core refuses.
    """
    try:
        stream = _core.DataStream(json.dumps(data), fingerprints=False)
        table: RowTable = json.loads(stream.dataset())["tables"][0]
        sample = stream.read(rows) or []
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    if not sample:
        raise LoadstoneError("the files contain no rows", "Use files that contain rows.")
    first = pa.record_batch(sample[0])
    for column, values, field in zip(table["columns"], first.columns, first.schema, strict=True):
        column["nulls"] = field.nullable
        if column["type"] == "text":
            column["repeats"] = _repeats(values)
            column["text_bytes"] = _width(values)
    return table, tuple(_width(column) for column in first.columns)


def _text_row_bytes(data: Mapping[str, Any]) -> float:
    """Return how many bytes a row has as COPY's text: of slices that are spread evenly over all rows."""
    rows = int(data["rows"])
    each = min(_SAMPLE_ROWS, rows)
    places = sorted({(rows - each) * slice_ // (_SLICES - 1) for slice_ in range(_SLICES)})
    made = [_made_as_text({**data, "first": data["first"] + place, "rows": each}) for place in places]
    return sum(made) / (each * len(made))


def _made_as_text(data: Mapping[str, Any]) -> int:
    """Return the bytes of some rows as COPY's text."""
    with Path(os.devnull).open("wb") as nowhere:
        output = {"fd": nowhere.fileno()}
        specification = {"data": data, "format": "copy_text", "output": output, "threads": 1}
        generation = _core.Generation(json.dumps(specification))
        generation.start()
        while (account := generation.wait(1.0)) is None:
            pass
    return int(json.loads(account)["plain_bytes"])


def _repeats(texts: pa.Array) -> bool:
    """Return whether half of the texts or fewer are different: they repeat within the first rows."""
    return bool(2 * pc.count_distinct(texts).as_py() <= len(texts))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _width(column: pa.Array) -> float:
    """Return how many bytes a value has on average."""
    if pa.types.is_string(column.type):
        # Not by fill_null: whatever becomes a scalar has Arrow import pandas, where there is one.
        return float((pc.sum(pc.binary_length(column)).as_py() or 0) / max(1, len(column)))
    return max(1.0, float(column.type.bit_width) / 8)


def _files(rows: Rows) -> Content:
    paths = [Path(name) for name in rows.files]
    if rows.format == "parquet":
        return _parquet(rows, paths)
    begins = [_begin_of(path) for path in paths]
    names = _columns_of(rows, paths[0], begins[0].text)
    for path, begin in zip(paths[1:], begins[1:], strict=True):
        if _columns_of(rows, path, begin.text) != names:
            raise LoadstoneError(
                f"'{path}' has other columns than '{paths[0]}', or in another order",
                "Use files with the same columns, or load them one after the other.",
            )
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
        "text_row_bytes": None if rows.format == "binary" else row_bytes,
    }
    widths = tuple(row_bytes / len(names) for _ in names)
    content = Content(data, table, widths, rows.rows, 0, _about(rows, sizes, begins), round(plain))
    return _as_set(content, _set_table(rows), f"the set {rows.set}") if rows.set else content


def _about(rows: Rows, sizes: list[int], begins: list[_Begin]) -> dict[str, Any]:
    return {
        "kind": "files",
        "format": rows.format,
        "header": rows.header,
        "bytes": sizes,
        "begin": [hashlib.sha256(begin.text).hexdigest()[:16] for begin in begins],
        "rows": rows.rows,
    }


def _set_table(rows: Rows) -> RowTable:
    """Return the table of a set whose rows are in files."""
    return _looked_at(_made(replace(rows, seed=1), 0, _SAMPLE_ROWS), _SAMPLE_ROWS)[0]


def _as_set(content: Content, table: RowTable, owner: str) -> Content:
    """Return files' content as rows of a set. Raises LoadstoneError for other columns or values."""
    _refuse_lines(content, table["columns"], refuse_header)
    _refuse_columns(content, table["columns"], owner)
    _refuse_lines(content, table["columns"], refuse_values)
    fitting: RowTable = {
        **content.table,
        "columns": table["columns"],
        "usual_indexes": table["usual_indexes"],
    }
    return replace(content, table=fitting)


def _refuse_lines(
    content: Content,
    columns: Sequence[Mapping[str, Any]],
    refuse: Callable[[Lines, Sequence[Mapping[str, Any]]], None],
) -> None:
    """Raise LoadstoneError when the first lines of a file cannot be rows of these columns."""
    data = content.data
    if data["format"] == "binary":
        return
    for path in map(Path, data["paths"]):
        begin = _begin_of(path)
        refuse(Lines(path, begin.text, data["format"], data["header"], begin.whole), columns)


def _refuse_columns(content: Content, columns: Sequence[Mapping[str, Any]], owner: str) -> None:
    """Raise LoadstoneError when rows of other columns are in the files, naming the first that differs."""
    file = Path(content.data["paths"][0]).name
    if not content.data["header"]:
        _refuse_count(content, columns, owner)
        return
    given = [column["name"] for column in content.table["columns"]]
    asked = [column["name"] for column in columns]
    unknown = ", ".join(name for name in given if name not in asked)
    missing = ", ".join(name for name in asked if name not in given)
    if unknown or missing:
        words = [f"has {unknown}"] if unknown else []
        words += [f"does not have {missing}"] if missing else []
        raise LoadstoneError(
            f"the columns of {file} are not those of {owner}: it {' and '.join(words)}",
            "Use files with these columns: " + ", ".join(asked) + ".",
        )
    pairs = zip(content.table["columns"], columns, strict=True)
    for number, (found, wanted) in enumerate(pairs, start=1):
        if found["name"] != wanted["name"]:
            raise LoadstoneError(
                f"column {number} of {file} is '{found['name']}' by its header, but that of {owner} is "
                f"'{wanted['name']}'",
                "Use files with the table's columns in its order: they are sent unchanged.",
            )


def _refuse_count(content: Content, columns: Sequence[Mapping[str, Any]], owner: str) -> None:
    if len(columns) != content.data["columns"]:
        raise LoadstoneError(
            f"the rows in the files have {content.data['columns']} columns, but {owner} has {len(columns)}",
            "Use files with the columns of the table.",
        )


def _parquet(rows: Rows, paths: list[Path]) -> Content:
    from pyarrow import parquet  # noqa: PLC0415 - for files only

    begins = [_begin_of(path) for path in paths]
    made = _set_table(rows) if rows.set else None
    data = {
        "kind": "parquet",
        "paths": [str(path.absolute()) for path in paths],
        "columns": _named(made["columns"]) if made is not None else [],
    }
    table, widths = _looked_at(data, _SAMPLE_ROWS)
    counted = sum(parquet.read_metadata(path).num_rows for path in paths)
    table |= {"row_bytes": sum(widths), "text_row_bytes": None}
    if made is not None:
        table |= {"columns": made["columns"], "usual_indexes": made["usual_indexes"]}
    sizes = [path.stat().st_size for path in paths]
    count = min(counted, rows.rows) if rows.rows else counted
    return Content(data, table, widths, count, 0, _about(rows, sizes, begins), round(counted * sum(widths)))


def _named(columns: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"name": column["name"], "type": column["type"]} for column in columns]


@dataclass(frozen=True, slots=True)
class _Begin:
    """The first bytes of a file, unpacked."""

    text: bytes
    factor: float
    """How many times longer they are than in the file."""
    whole: bool
    """Whether there are no more."""


def _begin_of(path: Path) -> _Begin:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
        packed = next((name for name, sign in _PACKED.items() if magic.startswith(sign)), None)
        with pa.OSFile(str(path)) as file:
            stream = file if packed is None else pa.CompressedInputStream(file, packed)
            text = stream.read(_LOOK_BYTES)
            factor = len(text) / max(1, file.tell()) if packed is not None else 1.0
            whole = not stream.read(1)
    except OSError as error:
        why = error.strerror or str(error)
        raise LoadstoneError(f"'{path}' cannot be read: {why}", "Use files that can be read.") from error
    if not text:
        raise LoadstoneError(f"'{path}' is empty", "Use files that contain rows.")
    return _Begin(text, factor, whole)


def _columns_of(rows: Rows, path: Path, begin: bytes) -> list[str]:
    """Return names for the columns of files: those of the header, else numbers."""
    if rows.format == "binary":
        return _numbered(_binary_fields(path, begin))
    try:
        line = begin.partition(b"\n")[0].decode()
    except UnicodeDecodeError as error:
        raise LoadstoneError(
            f"'{path}' is not UTF-8: byte {error.start}", "Use text in UTF-8, or uncompress the file first."
        ) from error
    if rows.format == "text":
        return _numbered(line.count("\t") + 1)
    fields = fields_of(line)
    if not rows.header:
        return _numbered(len(fields))
    if not begin[len(line.encode()) :].strip():
        raise LoadstoneError(
            f"'{path}' contains only the names of its columns", "Use files that contain rows."
        )
    twice = sorted({name for name in fields if fields.count(name) > 1 or not name})
    if twice:
        raise LoadstoneError(
            f"in the header of '{path}', '{twice[0]}' is not the name of one column",
            "Name each column once; if its first line contains values, set header=false.",
        )
    return fields


def _binary_fields(path: Path, begin: bytes) -> int:
    head = len(_BINARY)
    if not begin.startswith(_BINARY) or len(begin) < head + _BINARY_HEAD.size:
        raise LoadstoneError(
            f"'{path}' does not begin like a file in COPY's binary format",
            "Use a file that COPY … (format binary) wrote.",
        )
    _, extension = _BINARY_HEAD.unpack_from(begin, head)
    at = head + _BINARY_HEAD.size + extension
    fields = _BINARY_FIELDS.unpack_from(begin, at)[0] if len(begin) >= at + _BINARY_FIELDS.size else -1
    if fields < 1:
        raise LoadstoneError(f"'{path}' contains no rows", "Use files that contain rows.")
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

    Raises LoadstoneError when rows of other columns, or values that these cannot hold, are in the files.
    """
    named = _named(columns)
    data = dict(content.data)
    if data["kind"] == "parquet":
        data["columns"] = named
        _looked_at(data, 1)
    else:
        _refuse_lines(content, named, refuse_header)
        _refuse_count(content, named, "the table")
        same = {column["name"] for column in content.table["columns"]} == {c["name"] for c in named}
        if same:
            # A header of other names is nobody's mistake, one in another order is.
            _refuse_columns(content, named, "the table")
        _refuse_lines(content, named, refuse_values)
    names = [column["name"] for column in named]
    table = {**content.table, "columns": named, "usual_indexes": names}
    return replace(content, data=data, table=table)  # type: ignore[arg-type]
