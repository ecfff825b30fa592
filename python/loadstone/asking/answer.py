"""A query's answer as a small value by which engines can be compared: its digest, and the comparison.

The definition and its rationale stand with the core (`crates/drive/src/answer.rs`), which digests what comes
over the wire; here is the digest of an answer that a Python driver gives as Arrow.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Doubles = NDArray[np.float64]
    Flags = NDArray[np.bool_]

Digest = dict[str, Any]
"""DIGEST of docs/run-folder.md."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (for display: UTC is said beside it)
_DAY_US = 86_400_000_000
_MONTH_DAYS = 30
_GOLDEN = 0.6180339887498949
_BIAS = np.int64(1023 << 52)
_SUM_TOLERANCE = 1e-9
_WEIGHTED_TOLERANCE = 1e-8
_VALUE_TOLERANCE = 1e-12
_SPAN_TOLERANCE_US = 0.5
_WEIGHT_MAX = 3.0
_NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
_TIMES = (pa.types.is_timestamp, pa.types.is_date)
_SPANS = (pa.types.is_duration, pa.types.is_interval, pa.types.is_time)

Kind = Literal["number", "span", "time", "text"]


@dataclass(frozen=True, slots=True)
class _Column:
    """One column with what its kind needs: doubles for numbers and spans, integers for times, bytes."""

    name: str
    kind: Kind
    present: Flags
    doubles: Doubles | None = None
    times: NDArray[np.int64] | None = None
    texts: Sequence[bytes] | None = None


def digest(table: pa.Table) -> Digest:
    """Return the digest of an answer that came as Arrow."""
    pairs = zip(table.column_names, table.columns, strict=True)
    columns = [_column(name.lower(), values) for name, values in pairs]
    crcs = np.fromiter(map(zlib.crc32, _keys(columns, table.num_rows)), np.int64, table.num_rows)
    weights = 1.0 + crcs / 2.0**32 + _wave(columns, table.num_rows)
    return {
        "rows": table.num_rows,
        "keys": int(crcs.sum()) % 2**64,
        "columns": [_share(column, weights) for column in columns],
    }


def _column(name: str, values: pa.ChunkedArray) -> _Column:
    kind = values.type
    present: Flags = np.asarray(pc.is_valid(values).to_numpy(), dtype=np.bool_)
    if pa.types.is_null(kind):
        return _Column(name, "text", present, texts=[b""] * len(values))
    if any(belongs(kind) for belongs in _NUMERIC):
        return _Column(name, "number", present, doubles=_doubles(values))
    if any(belongs(kind) for belongs in _SPANS):
        return _Column(name, "span", present, doubles=_spans(values))
    if any(belongs(kind) for belongs in _TIMES):
        return _Column(name, "time", present, times=_times(values))
    return _Column(name, "text", present, texts=[_bytes(value) for value in values.to_pylist()])


def _doubles(values: pa.ChunkedArray) -> Doubles:
    kind = values.type
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.float64(), safe=False).fill_null(0.0).to_numpy(), dtype=np.float64)


def _spans(values: pa.ChunkedArray) -> Doubles:
    if pa.types.is_interval(values.type):
        return np.array([_interval_us(value) for value in values.to_pylist()], dtype=np.float64)
    kind = pa.duration("us") if pa.types.is_duration(values.type) else pa.time64("us")
    return _doubles(values.cast(kind, safe=False).cast(pa.int64()))


def _interval_us(value: Any) -> float:
    if value is None:
        return 0.0
    return float((value.months * _MONTH_DAYS + value.days) * _DAY_US + value.nanoseconds / 1e3)


def _times(values: pa.ChunkedArray) -> NDArray[np.int64]:
    whole = values.cast(pa.timestamp("us", tz=getattr(values.type, "tz", None)), safe=False)
    return np.asarray(whole.cast(pa.int64()).fill_null(0).to_numpy(), dtype=np.int64)


def _bytes(value: object) -> bytes:
    if value is None:
        return b""
    return value if isinstance(value, bytes) else str(value).encode()


def _keys(columns: Sequence[_Column], rows: int) -> Iterator[bytes]:
    parts = [found for column in columns if (found := _key_parts(column)) is not None]
    if not parts:
        return iter([b""] * rows)
    return (b"".join(row) for row in zip(*parts, strict=True))


def _key_parts(column: _Column) -> list[bytes] | None:
    present = column.present.tolist()
    if column.texts is not None:
        return [text + b"\0" if there else b"\xff" for text, there in zip(column.texts, present, strict=True)]
    if column.times is not None:
        raw = column.times.astype("<i8").tobytes()
        return [raw[8 * i : 8 * i + 8] if there else b"\xff" for i, there in enumerate(present)]
    if column.present.all():
        return None
    return [b"" if there else b"\xff" for there in present]


def _wave(columns: Sequence[_Column], rows: int) -> Doubles:
    """Return the part of each row's weight that comes from its numbers."""
    mix = np.zeros(rows)
    for number, column in enumerate(columns):
        if column.kind != "number" or column.doubles is None:
            continue
        turns = (number + 1) * _GOLDEN
        usual = column.present & np.isfinite(column.doubles)
        value = np.where(usual, column.doubles, 0.0)
        bent = ((1.0 + np.abs(value)).view(np.int64) - _BIAS) / 2.0**52
        mix += np.where(usual, (0.5 + (turns - math.floor(turns))) * np.copysign(bent, value), 0.0)
    wave: Doubles = np.abs(mix - 2.0 * np.floor(mix / 2.0) - 1.0)
    return wave


def _share(column: _Column, weights: Doubles) -> Digest:
    found: Digest = {"name": column.name, "kind": column.kind, "count": int(column.present.sum())}
    if column.texts is not None:
        texts = (text for text, there in zip(column.texts, column.present, strict=True) if there)
        return found | {"crc": sum(map(zlib.crc32, texts)) % 2**64}
    if column.times is not None:
        times = column.times[column.present]
        crc = sum(zlib.crc32(time.tobytes()) for time in times.astype("<i8")) % 2**64
        ends = (int(times.min()), int(times.max())) if len(times) else (None, None)
        return found | {"crc": crc, "min_us": ends[0], "max_us": ends[1]}
    assert column.doubles is not None, "a number or a span"  # noqa: S101
    values, held = column.doubles[column.present], weights[column.present]
    usual = np.isfinite(values)
    values, held = values[usual], held[usual]
    unusual = column.doubles[column.present][~usual]
    return found | {
        "sum": math.fsum(values),
        "abs": math.fsum(np.abs(values)),
        "weighted": math.fsum(values * held),
        "nan": int(np.isnan(unusual).sum()),
        "inf": int(np.isposinf(unusual).sum()),
        "neg_inf": int(np.isneginf(unusual).sum()),
    }


def compare(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    """Return what differs between two digests (“here” is `a`), in words; None when the answers agree."""
    if a["rows"] != b["rows"]:
        return f"row count {a['rows']} here, {b['rows']} there"
    here, there = a["columns"], b["columns"]
    if len(here) != len(there):
        return f"column count {len(here)} here, {len(there)} there"
    if words := _first(here, there, _exact_difference):
        return words
    if a["keys"] != b["keys"]:
        return "texts, times or NULLs stand in other rows"
    # All sums before all weighted ones: a changed number changes its row's weight, and so every other column.
    return _first(here, there, _sum_difference) or _first(here, there, _weighted_difference)


def _first(
    here: Sequence[Mapping[str, Any]],
    there: Sequence[Mapping[str, Any]],
    differs: Callable[[Mapping[str, Any], Mapping[str, Any]], str | None],
) -> str | None:
    """Return the first difference between columns, with its place."""
    for number, one, other in zip(count(1), here, there, strict=False):
        if words := differs(one, other):
            return f"column {number} ({one['name']}): {words}"
    return None


_COUNTS = {
    "count": "count of values that are not NULL",
    "nan": "count of NaN",
    "inf": "count of infinities",
    "neg_inf": "count of negative infinities",
}


def _exact_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    if a["kind"] != b["kind"] and a["count"] and b["count"]:
        return f"a {a['kind']} here, a {b['kind']} there"
    for key, words in _COUNTS.items():
        here, there = a.get(key, 0), b.get(key, 0)
        if here != there:
            return f"{words} {here} here, {there} there"
    if a.get("crc", 0) == b.get("crc", 0):
        return None
    oid = a.get("type_oid") or b.get("type_oid")
    if oid:
        return f"texts differ, or the binary form of type {oid} is not known: compare in text format"
    here, there = _range(a), _range(b)
    if a["kind"] == "time" and here != there:
        return f"times differ: {here} here, {there} there"
    return f"{a['kind']}s differ"


def _range(column: Mapping[str, Any]) -> str:
    return f"{_utc(column.get('min_us'))} to {_utc(column.get('max_us'))}"


def _utc(us: int | None) -> str:
    try:
        moment = _EPOCH + timedelta(microseconds=us or 0)
    except OverflowError:
        return "infinity" if (us or 0) > 0 else "-infinity"
    return moment.isoformat() + "Z"


def _sum_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    size, free = _size(a, b)
    apart = abs(a.get("sum", 0.0) - b.get("sum", 0.0))
    return f"sums differ by {apart / size:.1e}" if apart > _SUM_TOLERANCE * size + free else None


def _weighted_difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    size, free = _size(a, b)
    apart = abs(a.get("weighted", 0.0) - b.get("weighted", 0.0))
    return "values stand in other rows" if apart > _WEIGHTED_TOLERANCE * size + _WEIGHT_MAX * free else None


def _size(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[float, float]:
    """Return the sum of absolute values, and what sums may differ by in any case."""
    each = _SPAN_TOLERANCE_US if a["kind"] == "span" else _VALUE_TOLERANCE
    return max(a.get("abs", 0.0), b.get("abs", 0.0)), each * a["count"]
