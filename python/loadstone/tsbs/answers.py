"""Answers of queries as values that engines can be compared by, and their comparison.

A digest says of each column how many values there are and what they sum to; the order of the rows and the
names of the columns do not matter, for engines differ in both. docs/run-folder.md describes it.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

Digest = dict[str, Any]
"""DIGEST of docs/run-folder.md."""

TOLERANCE = 1e-9
"""Of the sum of absolute values: engines add in different orders."""

_DAY_US = 86_400_000_000
_MONTH_DAYS = 30
_WEIGHT = 2.0**32
_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_TO_US = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


def digest(table: pa.Table) -> Digest:
    """Return the digest of an answer that came as Arrow."""
    numbers: dict[int, NDArray[np.float64]] = {}
    texts: dict[int, list[str | None]] = {}
    for place, column in enumerate(table.columns):
        found = _numbers(column)
        if found is None:
            texts[place] = _texts(column)
        else:
            numbers[place] = found
    weights = _weights(list(texts.values()), table.num_rows)
    names = [name.lower() for name in table.column_names]
    columns = [
        _number_column(names[place], numbers[place], table.columns[place], weights)
        if place in numbers
        else _text_column(names[place], texts[place])
        for place in range(table.num_columns)
    ]
    return {"rows": table.num_rows, "columns": columns}


def difference(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> str | None:
    """Say in words how two digests differ; None when they are of the same answer."""
    if expected["rows"] != actual["rows"]:
        return f"{actual['rows']} rows instead of {expected['rows']}"
    if len(expected["columns"]) != len(actual["columns"]):
        return f"{len(actual['columns'])} columns instead of {len(expected['columns'])}"
    pairs = zip(expected["columns"], actual["columns"], strict=True)
    for place, (one, other) in enumerate(pairs, 1):
        found = _column_difference(one, other)
        if found:
            return f"column {place} ({one['name']}): {found}"
    return None


def _column_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    if not one["count"] and not other["count"]:
        return None  # of nothing but nulls, engines do not agree what it is
    if one["kind"] != other["kind"]:
        return f"a {other['kind']} instead of a {one['kind']}"
    if one["count"] != other["count"]:
        return f"{other['count']} values that are not null instead of {one['count']}"
    if one["kind"] == "text":
        return None if int(one["crc"]) == int(other["crc"]) else "other texts"
    return _number_difference(one, other)


def _number_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    for apart in ("nan", "inf"):
        if one.get(apart, 0) != other.get(apart, 0):
            return f"{other.get(apart, 0)} values {apart} instead of {one.get(apart, 0)}"
    # Weights are below 2.
    allowed = 2 * TOLERANCE * max(one["abs"], other["abs"])
    for what in ("sum", "weighted"):
        if abs(one[what] - other[what]) > allowed:
            return f"{what} {other[what]!r} instead of {one[what]!r}"
    return None


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64] | None:
    """Return a column's values as numbers, NaN for null; None when they are no numbers."""
    kind = column.type
    if pa.types.is_interval(kind):
        return np.array([_interval_us(value) for value in column.to_pylist()], dtype=np.float64)
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return _doubles(column.cast(pa.int64())) * _TO_US[kind.unit]
    if pa.types.is_date32(kind):
        return _doubles(column.cast(pa.int32())) * _DAY_US
    if pa.types.is_boolean(kind):
        return _doubles(column.cast(pa.int8()))
    return _doubles(column) if any(is_kind(kind) for is_kind in _NUMERIC) else None


def _doubles(column: pa.ChunkedArray) -> NDArray[np.float64]:
    values = column.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(values, dtype=np.float64)


def _interval_us(value: Any) -> float:
    if value is None:
        return float("nan")
    return float((value.months * _MONTH_DAYS + value.days) * _DAY_US + value.nanoseconds / 1e3)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found: list[str | None] = column.to_pylist()
        return found
    return [None if value is None else _as_text(value) for value in column.to_pylist()]


def _as_text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _weights(texts: Sequence[Sequence[str | None]], rows: int) -> NDArray[np.float64]:
    if not texts:
        crcs = np.zeros(rows)
    else:
        joined = (
            b"".join((value or "").encode() + b"\0" for value in row) for row in zip(*texts, strict=True)
        )
        crcs = np.fromiter((zlib.crc32(row) for row in joined), dtype=np.float64, count=rows)
    return 1.0 + crcs / _WEIGHT


def _number_column(
    name: str, values: NDArray[np.float64], column: pa.ChunkedArray, weights: NDArray[np.float64]
) -> Digest:
    present = np.asarray(pc.is_valid(column).to_numpy(), dtype=bool)
    usual = present & np.isfinite(values)
    kept = values[usual]
    return {
        "name": name,
        "kind": "number",
        "count": int(present.sum()),
        "sum": float(kept.sum()),
        "weighted": float((kept * weights[usual]).sum()),
        "abs": float(np.abs(kept).sum()),
        "nan": int(np.isnan(values[present]).sum()),
        "inf": int(np.isinf(values[present]).sum()),
    }


def _text_column(name: str, values: Sequence[str | None]) -> Digest:
    present = [value for value in values if value is not None]
    crc = sum(zlib.crc32(value.encode()) for value in present) % 2**64
    return {"name": name, "kind": "text", "count": len(present), "crc": crc}
