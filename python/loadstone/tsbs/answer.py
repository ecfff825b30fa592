"""A query's answer as a small value by which engines can be compared: the digest, of a Python driver's rows.

The twin of the core's (`crates/drive/src/answer.rs`, where definition and rationale stand): the same rows
give the same digest here and there, up to the last digit of a sum.
"""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Kind = Literal["number", "span", "time", "text"]
Digest = dict[str, Any]

_MODULUS = 1 << 64
_GOLDEN = 0.6180339887498949
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (all times are made naive, in UTC, before they meet it)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH_DAY = _EPOCH.toordinal()
_DAY_US = 86_400_000_000
_NULL = b"\xff"
_SUM_TOLERANCE = 1e-9
_WEIGHTED_TOLERANCE = 1e-8
_VALUE_TOLERANCE = 1e-12
_SPAN_TOLERANCE_US = 0.5
_WEIGHT_MAX = 3.0


def digest(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Digest:
    """Return the digest of an answer; `rows` are read once and not kept."""
    parts = [_Column(name, number) for number, name in enumerate(columns)]
    total = keys = 0
    for row in rows:
        key, mix, numbers = bytearray(), 0.0, []
        for column, value in zip(parts, row, strict=True):
            if value is None:
                key += _NULL
                continue
            number = column.read(value, key)
            if number is not None:
                if column.kind == "number":
                    mix += column.factor * _bent_log2(number)
                numbers.append((column, number))
        crc = crc32(key)
        total += 1
        keys += crc
        weight = 1.0 + crc / 4294967296.0 + abs(mix - 2.0 * math.floor(mix / 2.0) - 1.0)
        for column, number in numbers:
            column.add(number, weight)
    return {"rows": total, "keys": keys % _MODULUS, "columns": [column.document() for column in parts]}


class _Sum:
    """A sum that keeps what rounding would lose (Neumaier)."""

    def __init__(self) -> None:
        self.sum = self.lost = 0.0

    def add(self, value: float) -> None:
        total = self.sum + value
        if abs(self.sum) >= abs(value):
            self.lost += (self.sum - total) + value
        else:
            self.lost += (value - total) + self.sum
        self.sum = total

    def total(self) -> float:
        total = self.sum + self.lost
        largest = 1.7976931348623157e308
        return largest if math.isnan(total) else max(-largest, min(largest, total))


class _Column:
    """What a column adds up to."""

    def __init__(self, name: str, number: int) -> None:
        turns = (number + 1) * _GOLDEN
        self.name = name.lower()
        self.factor = 0.5 + (turns - math.floor(turns))
        self.kind: Kind | None = None
        self.count = self.crc = self.nan = self.inf = self.neg_inf = 0
        self.least, self.greatest = _MODULUS, -_MODULUS
        self.sum, self.abs, self.weighted = _Sum(), _Sum(), _Sum()

    def read(self, value: object, key: bytearray) -> float | None:
        """Book what is exact in a value; return it when it is a finite number or span."""
        kind, read = _plain(value)
        self.kind = self.kind or kind
        self.count += 1
        plain = read(value)
        if isinstance(plain, bytes):
            self.crc += crc32(plain)
            key += plain + b"\0"
            return None
        if isinstance(plain, int):
            encoded = plain.to_bytes(8, "little", signed=True)
            self.crc += crc32(encoded)
            self.least, self.greatest = min(plain, self.least), max(plain, self.greatest)
            key += encoded
            return None
        if math.isfinite(plain):
            return plain
        self.nan += math.isnan(plain)
        self.inf += plain == math.inf
        self.neg_inf += plain == -math.inf
        return None

    def add(self, number: float, weight: float) -> None:
        self.sum.add(number)
        self.abs.add(abs(number))
        self.weighted.add(number * weight)

    def document(self) -> Digest:
        # Without a value nothing tells the kind; a comparison does not ask for it then.
        kind = self.kind or "text"
        document: Digest = {"name": self.name, "kind": kind, "count": self.count}
        if kind == "text":
            return document | {"crc": self.crc % _MODULUS}
        if kind == "time":
            times = {"min_us": self.least, "max_us": self.greatest}
            return document | {"crc": self.crc % _MODULUS} | times
        sums = {"sum": self.sum.total(), "abs": self.abs.total(), "weighted": self.weighted.total()}
        return document | sums | {"nan": self.nan, "inf": self.inf, "neg_inf": self.neg_inf}


def _time_us(value: datetime) -> int:
    naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return (naive - _EPOCH) // _MICROSECOND


def _clock_us(value: time) -> float:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return float(seconds * 1_000_000 + value.microsecond)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _float(value: float | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all doubles
        return math.inf if value > 0 else -math.inf


# What is digested of a value: text as bytes, time as an integer, all else as a float. Subclasses come before
# their bases.
_PLAIN: dict[type, tuple[Kind, Callable[[Any], bytes | int | float]]] = {
    float: ("number", float),
    str: ("text", str.encode),
    int: ("number", _float),  # and bool
    datetime: ("time", _time_us),
    Decimal: ("number", _float),
    date: ("time", lambda value: (value.toordinal() - _EPOCH_DAY) * _DAY_US),
    timedelta: ("span", lambda value: float(value // _MICROSECOND)),
    time: ("span", _clock_us),
    bytes: ("text", bytes),
    bytearray: ("text", bytes),
    memoryview: ("text", bytes),
    dict: ("text", _json),
    list: ("text", _json),
}


def _plain(value: object) -> tuple[Kind, Callable[[Any], bytes | int | float]]:
    """Return the kind of a value, and how it is read."""
    known = _PLAIN.get(type(value))
    if known is None:
        bases = (plain for base, plain in _PLAIN.items() if isinstance(value, base))
        known = next(bases, ("text", lambda other: str(other).encode()))
    return known


def _bent_log2(value: float) -> float:
    """Logarithm to base 2 of 1 + |value|, with straight lines between powers of two, and the value's sign."""
    (bits,) = struct.unpack("<q", struct.pack("<d", 1.0 + abs(value)))
    bent = float(bits - (1023 << 52)) / 4503599627370496.0
    return -bent if value < 0 else bent


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
