"""Columns of users' files as the types of a table, as far as no value changes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_PLAIN = {
    "bool": pa.bool_(),
    "date": pa.date32(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "text": pa.string(),
    "json": pa.string(),
}
_STORED = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    **{pa.duration(unit): pa.int64() for unit in ("s", "ms", "us", "ns")},
}
_INT64_END = 2.0**63


class UnfitError(Exception):
    """A value that a column cannot hold; `row` is its place, counted from 0."""

    def __init__(self, row: int) -> None:
        """Keep the row."""
        super().__init__(row)
        self.row = row


def stored(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, whichever program wrote them: one type for all texts."""
    if isinstance(kind, pa.BaseExtensionType):
        return stored(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return stored(kind.value_type)
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, "UTC")
    return _STORED.get(kind, kind)


def loaded(kind: pa.DataType) -> pa.DataType | None:
    """Return the type as which values of a stored type are loaded; None for a type that is not."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return kind if kind in _PLAIN.values() else None


def asked(word: str, found: pa.DataType | None) -> pa.DataType | None:
    """Return the type of a data set's word (`int16`, `text`); times have the zone that was found."""
    if word == "timestamp":
        return pa.timestamp("us", zone(found) if found is not None else None)
    return _PLAIN.get(word)


def zone(kind: pa.DataType) -> str | None:
    """Return the time zone of a type; None for one without."""
    return kind.tz if pa.types.is_timestamp(kind) else None


def word_of(kind: pa.DataType) -> str:
    """Return a data set's word for a type, or Arrow's where there is none."""
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return next((word for word, plain in _PLAIN.items() if plain == kind), str(kind))


def fits(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether values of a stored type can be those of the other, as far as each of them fits."""
    if kind == to:
        return True
    whole, real = pa.types.is_integer(kind), kind in (pa.float32(), pa.float64())
    if pa.types.is_integer(to):
        return bool(whole or real or pa.types.is_boolean(kind))
    if pa.types.is_floating(to):
        return bool(whole or real)
    if pa.types.is_temporal(to):
        return bool(pa.types.is_timestamp(kind) or pa.types.is_date32(kind))
    return bool(to == pa.string() and kind == pa.binary())


def cast(column: pa.Array, to: pa.DataType) -> pa.Array:
    """Return a column as another type, which `fits` its stored type.

    Whole numbers, also among floats, become integers; a double becomes the nearest float; times become
    microseconds, midnights dates; bytes in UTF-8 text. Raises UnfitError for the first value that would
    change.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if column.type != (kind := stored(column.type)):
        column = column.cast(kind)
    if kind == to:
        return column
    try:
        return _cast(column, to)
    except pa.ArrowInvalid:
        raise UnfitError(_first_unfit(column, to)) from None


def _cast(column: pa.Array, to: pa.DataType) -> pa.Array:
    """Return a column as another type. Raises ArrowInvalid when a value would change."""
    if pa.types.is_floating(column.type) and to == pa.int64():
        _refuse(pc.greater_equal(column, _INT64_END))  # conversion may end in the greatest integer
    if to == pa.float32():
        return _nearest(column if column.type == pa.float64() else column.cast(pa.float64()))
    if to == pa.date32():
        times = column.cast(pa.timestamp("us", zone(column.type)))
        days = times.cast(to)
        _refuse(pc.not_equal(days.cast(times.type), times))
        return days
    return column.cast(to)


def _nearest(column: pa.Array) -> pa.Array:
    floats = column.cast(pa.float32())
    _refuse(pc.and_(pc.is_inf(floats), pc.is_finite(column)))
    return floats


def _refuse(wrong: pa.Array) -> None:
    if pc.any(wrong).as_py():
        raise pa.ArrowInvalid("the cast would change a value")


def _first_unfit(column: pa.Array, to: pa.DataType) -> int:
    """Return the first row of a column, one of which cannot be cast."""
    first, count = 0, len(column)
    while count > 1:
        half = count // 2
        try:
            _cast(column.slice(first, half), to)
        except pa.ArrowInvalid:
            count = half
        else:
            first, count = first + half, count - half
    return first


def shown(value: pa.Scalar) -> str:
    """Return a value of a stored type in words, for an error."""
    if pa.types.is_temporal(value.type):
        text = str(pc.cast(value, pa.string())).removesuffix("Z")
        return text.rstrip("0").removesuffix(".") if "." in text else text
    if pa.types.is_binary(value.type):
        return "bytes that are not UTF-8"
    return repr(value.as_py())
