"""A query's answer as a small value by which engines can be compared: its digest, and the comparison.

The definition and its rationale stand with the core (`crates/drive/src/answer.rs`), which computes it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from loadstone import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

Digest = dict[str, Any]
"""DIGEST of docs/run-folder.md."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (for display: UTC is said beside it)
_SUM_TOLERANCE = 1e-9
_WEIGHTED_TOLERANCE = 1e-8
_VALUE_TOLERANCE = 1e-12
_SPAN_TOLERANCE_US = 0.5
_WEIGHT_MAX = 3.0


def digest(table: pa.Table) -> Digest:
    """Return the digest of an answer that came as Arrow."""
    found: Digest = json.loads(_core.answer_digest(table))
    return found


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
        return "texts, times or NULLs are in other rows"
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
        return f"texts differ, or the binary form of type {oid} is unknown: compare in text format"
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
    return "values are in other rows" if apart > _WEIGHTED_TOLERANCE * size + _WEIGHT_MAX * free else None


def _size(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[float, float]:
    """Return the sum of absolute values, and what sums may differ by in any case."""
    each = _SPAN_TOLERANCE_US if a["kind"] == "span" else _VALUE_TOLERANCE
    return max(a.get("abs", 0.0), b.get("abs", 0.0)), each * a["count"]
