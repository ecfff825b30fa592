"""The digest of an answer, row by row: the reference for `workload.queries.answer` and the core.

Written from the definition (`crates/drive/src/answer.rs`) with nothing but Python: the same rows give the
same digest in all three, up to the last digit of a sum.
"""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Kind = Literal["number", "span", "time", "text"]
Digest = dict[str, Any]

_MODULUS = 1 << 64
_GOLDEN = 0.6180339887498949
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (all times are made naive, in UTC, before they meet it)
_MICROSECOND = timedelta(microseconds=1)
_EPOCH_DAY = _EPOCH.toordinal()
_DAY_US = 86_400_000_000
_NULL = b"\xff"


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
