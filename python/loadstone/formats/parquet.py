"""Rows of Parquet files, checked against the columns of the table that they are for."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import parquet

from loadstone.errors import LoadstoneError
from loadstone.formats.casts import UnfitError, asked, cast, fits, loaded, shown, stored, word_of, zone

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_READ_BYTES = 1 << 16
"""Of each column at a time."""
_BROKEN = (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError, KeyError)
"""What pyarrow raises for files that are damaged."""
_TYPES = "write it as a 16, 32 or 64 bit integer, a float, text, a boolean, a date or a timestamp"
_MEND = "correct that value, or remove its row"


class ParquetRows:
    """Rows of several files, one after the other, in the columns of `schema`."""

    def __init__(self, paths: Sequence[str], schema: pa.Schema) -> None:
        """Nothing is read yet."""
        self.schema = schema
        self._paths = paths
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._rest: pa.RecordBatch | None = None

    def read(self, rows: int) -> pa.RecordBatch | None:
        """Return the next `rows` rows, fewer at the end, or None when there are no more.

        Raises LoadstoneError for a file that is damaged and for a value that its column cannot hold.
        """
        if self._batches is None:
            self._batches = self._read_all(rows)
        parts: list[pa.RecordBatch] = []
        while rows > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            if batch is None:
                break
            parts.append(batch.slice(0, rows))
            self._rest = batch.slice(rows) if len(batch) > rows else None
            rows -= len(parts[-1])
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def _read_all(self, rows: int) -> Iterator[pa.RecordBatch]:
        for path in self._paths:
            first = 0
            with _refused_as(f"{path}: {{}}"), _open(path) as file:
                order, unlike = self._plan(path, file.schema_arrow)
                for batch in file.iter_batches(rows, use_threads=False):
                    found = batch.columns
                    columns = [found[at] for at in order]
                    for number in unlike:
                        columns[number] = _fitted(path, first, columns[number], self.schema.field(number))
                    first += len(batch)
                    fitted = pa.RecordBatch.from_arrays(columns, schema=self.schema)
                    fitted.validate(full=True)  # that texts are UTF-8, which the core relies on
                    if len(fitted):
                        yield fitted

    def _plan(self, path: str, found: pa.Schema) -> tuple[list[int], list[int]]:
        """Return where each column is in the file, and which are of another type there."""
        order = [found.get_field_index(name) for name in self.schema.names]
        kinds = [found.field(at).type if at >= 0 else pa.null() for at in order]
        unlike = [number for number, kind in enumerate(kinds) if kind != self.schema.field(number).type]
        if not all(fits(stored(kinds[number]), self.schema.field(number).type) for number in unlike):
            raise LoadstoneError(f"{path}: the file was changed while it was read")
        return order, unlike


def _fitted(path: str, first: int, column: pa.Array, field: pa.Field) -> pa.Array:
    """Return values of a file, the first of which is in row `first`, as those of a column."""
    try:
        return cast(column, field.type)
    except UnfitError as error:
        words = _unfit(field, shown(column[error.row]))
        raise LoadstoneError(f"{path}: row {first + error.row + 1}: {words}", _MEND) from None


def open_rows(paths: Sequence[str], columns: Sequence[tuple[str, str]]) -> ParquetRows:
    """Check all files, and return their rows.

    Each file must have `columns` (name and type as in a data set's description), in any order; those of the
    first file when there are none. Raises LoadstoneError for a file that is not Parquet, for other columns,
    and for values that do not fit as far as the files' own statistics tell.
    """
    schema: pa.Schema | None = None
    for path in paths:
        with (
            _refused_as(f"{path} is not a Parquet file: {{}}", "use a complete Parquet file"),
            _open(path) as file,
        ):
            found = pa.schema([pa.field(field.name, stored(field.type)) for field in file.schema_arrow])
            schema = _schema(path, found, columns) if schema is None else schema
            _check_columns(path, found, schema)
            _check_bounds(path, file, found, schema)
    return ParquetRows(paths, schema if schema is not None else pa.schema([]))


@contextmanager
def _refused_as(words: str, hint: str = "") -> Iterator[None]:
    """Raise what pyarrow says of a damaged file as a LoadstoneError; `words` has a place for it."""
    try:
        yield
    except _BROKEN as error:
        raise LoadstoneError(words.format(error), hint) from error


def _open(path: str) -> parquet.ParquetFile:
    """Open a file so that pages are read as they are needed, not whole row groups."""
    try:
        return parquet.ParquetFile(path, pre_buffer=False, buffer_size=_READ_BYTES)
    except FileNotFoundError as error:
        raise LoadstoneError(f"opening {path}: {error}", "use files that can be read") from error


def _schema(path: str, found: pa.Schema, columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """Return the columns as they are handed on. Raises LoadstoneError for a type that is not loaded."""
    fields = []
    for name, word in columns or [(field.name, "") for field in found]:
        at = found.names.index(name) if name in found.names else None
        kind = found.field(at).type if at is not None else None
        wanted = asked(word, kind) if word else loaded(kind)
        if wanted is None:
            what = f"cannot be {word}" if word else f"is of the type {kind}, which cannot be loaded"
            raise LoadstoneError(f"{path}: column {_quoted(name)} {what}", _TYPES)
        fields.append(pa.field(name, wanted))
    return pa.schema(fields)


def _check_columns(path: str, found: pa.Schema, wanted: pa.Schema) -> None:
    """Raise LoadstoneError for a file of other columns, naming the first that differs."""
    for field in wanted:
        _check_column(path, found, field)
    other = next((name for name in found.names if name not in wanted.names), None)
    if other is not None:
        raise LoadstoneError(f"{path}: the table has no column {_quoted(other)}", "remove it from the file")
    if len(found) != len(wanted):
        raise LoadstoneError(f"{path}: two columns have the same name", "name each column once")


def _check_column(path: str, found: pa.Schema, field: pa.Field) -> None:
    if field.name not in found.names:
        raise LoadstoneError(
            f"{path}: the column {_quoted(field.name)} is missing", "use a file with all columns of the table"
        )
    kind = found.field(found.names.index(field.name)).type
    if not fits(kind, field.type):
        raise LoadstoneError(
            f"{path}: column {_quoted(field.name)} is {word_of(kind)}, but {word_of(field.type)} is needed",
            "write the file again with that type",
        )
    if zone(kind) != zone(field.type):
        raise LoadstoneError(
            f"{path}: times in column {_quoted(field.name)} have another time zone than in the first file",
            "write all files with the same time zone, or all without",
        )


def _check_bounds(path: str, file: parquet.ParquetFile, found: pa.Schema, wanted: pa.Schema) -> None:
    """Raise LoadstoneError when a file's own statistics say that a value does not fit its column.

    Where a file has none, only reading tells.
    """
    # Of long texts bounds are cut, perhaps in the middle of a character.
    fields = [wanted.field(field.name) for field in found]
    unlike = [at for at, to in enumerate(fields) if to.type not in (pa.string(), found.field(at).type)]
    before = 0
    for number in range(file.metadata.num_row_groups if unlike else 0):
        # pyarrow ends the process on damaged statistics, and refuses to read columns that have them.
        next(file.iter_batches(1, [number], [found.names[at] for at in unlike]), None)
        group = file.metadata.row_group(number)
        for at in unlike:
            bounds = _bounds(group.column(at).statistics, found.field(at).type)
            try:
                cast(bounds, fields[at].type)
            except UnfitError as error:
                words = _unfit(fields[at], shown(bounds[error.row]))
                rows = f"rows {before + 1} to {before + group.num_rows}"
                raise LoadstoneError(f"{path}: {rows}: {words}", _MEND) from None
        before += group.num_rows


def _bounds(statistics: parquet.Statistics | None, kind: pa.DataType) -> pa.Array:
    """Return the least and the greatest value of a group of rows; nothing where the file does not say."""
    if statistics is None or not statistics.has_min_max:
        return pa.array([], kind)
    if not pa.types.is_temporal(kind):
        return pa.array([statistics.min, statistics.max], kind)
    raw = pa.array([statistics.min_raw, statistics.max_raw], pa.int64())
    return raw.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else raw.cast(kind)


def _unfit(field: pa.Field, value: str) -> str:
    return f"column {_quoted(field.name)} has {value}, which does not fit into {word_of(field.type)}"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
