"""Numbers for people: three significant digits, thousands separated, a unit always at hand."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

NONE = "–"
SMALL = 0.1
"""Ratios below this are easier read as parts."""
TWICE = 2
"""From here on a ratio says more as a multiple than in percent."""
_MILLION = 1e6
_THOUSAND = 1000
_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


_UNITS = {"tps": "tps", "rows_per_s": "rows/s", "metrics_per_s": "metrics/s"}


def unit(kind: str | None, headline: str) -> str:
    """Return the unit of the figure that is first in a phase of this kind."""
    return "queries/s" if kind == "queries" else _UNITS.get(headline, "tps")


def digits(value: float | None, significant: int = 3) -> str:
    """`value` with so many significant digits, never in scientific notation: 0.205, 27.7, 1,234."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    places = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def rate(value: float | None) -> str:
    """Return a rate per second: 1,234; from a million on 3.14 M."""
    if value is None:
        return NONE
    if abs(value) >= _MILLION:
        return f"{digits(value / _MILLION)} M"
    return digits(value) if abs(value) < _THOUSAND else f"{value:,.0f}"


class Rated(Protocol):
    """A rate with its interval."""

    @property
    def value(self) -> float | None:
        """The rate."""

    @property
    def low(self) -> float | None:
        """Where its interval begins."""

    @property
    def high(self) -> float | None:
        """Where its interval ends."""


def known(value: T | UnsetType) -> T | None:
    """Return None for a key that a document leaves out."""
    return None if value is UNSET else value


def stated(entry: Rated | None) -> str:
    """Return a rate with its interval's digits; without an interval it gets three, for more nobody knows."""
    if entry is None:
        return NONE
    return rate(entry.value) if entry.low is not None else about_rate(entry.value)


def about_rate(value: float | None) -> str:
    """Return a rate of which nobody knows more than three digits."""
    return rate(None if value is None else float(f"{value:.3g}"))


def milliseconds(value_ns: float | None) -> str:
    """Nanoseconds as milliseconds, without the unit."""
    return NONE if value_ns is None else digits(value_ns / 1e6)


def microseconds(value_ns: float | None) -> str:
    """Nanoseconds as microseconds, without the unit."""
    return NONE if value_ns is None else digits(value_ns / 1e3)


def thousandths(value_s: float | None) -> str:
    """Seconds as milliseconds, without the unit."""
    return NONE if value_s is None else digits(value_s * 1e3)


def size(value: float | None) -> str:
    """Bytes with a binary unit: 12.3 MiB, 0.34 B."""
    if value is None:
        return NONE
    sign, left, power = ("−" if value < 0 else ""), abs(value), 0
    while left >= 1024 and power < len(_BINARY) - 1:  # noqa: PLR2004 - KiB
        left /= 1024
        power += 1
    text = f"{left:,.0f}" if power == 0 and left == int(left) else digits(left)
    return f"{sign}{text} {_BINARY[power]}"


def decimal_size(value: float | None) -> str:
    """Bytes with a decimal unit, in which others publish them: 37 GB, 6.4 GB."""
    if value is None:
        return NONE
    left, power = float(value), 0
    while abs(left) >= _THOUSAND and power < len(_DECIMAL) - 1:
        left /= _THOUSAND
        power += 1
    return f"{float(f'{left:.3g}'):g} {_DECIMAL[power]}"


def count(value: float | None) -> str:
    """Return a whole number with thousands separated."""
    return NONE if value is None else f"{value:,.0f}"


def rows(value: float | None) -> str:
    """Return a number of rows: 950, 220,000, 2.2 M, 1.35 billion."""
    if value is None:
        return NONE
    for unit, word in ((1e9, "billion"), (_MILLION, "M")):
        if abs(value) >= unit:
            return f"{float(f'{value / unit:.3g}'):g} {word}"
    return f"{value:,.0f}"


def about_rows(value: float | None) -> str:
    """Return a number of rows that is an estimate, with three digits: 225,000, 2.2 M."""
    return rows(None if value is None else float(f"{value:.3g}"))


def percent(value: float | None) -> str:
    """Return a share of one as percent."""
    return NONE if value is None else f"{digits(value * 100, 2)} %"


def times(value: float | None) -> str:
    """Return a ratio: 0.82×, 1.15×, 0.0169×."""
    if value is None:
        return NONE
    return f"{digits(value, 3)}×"


def versus(value: float | None) -> str:
    """Return a ratio to another's figure, small ones as a part: 2.59, 0.445, 1/1,230."""
    if value is None:
        return NONE
    return digits(value) if value >= SMALL or value <= 0 else f"1/{digits(1 / value)}"


def part(share: float) -> str:
    """Return a share of one as a part of it: 33 %, and small ones as 1/122."""
    return percent(share) if share >= SMALL else versus(share)


def change(ratio: float | None) -> str:
    """Return a ratio as a change: −18 %, +3.1 %; beyond twice as a multiple: 15.2×."""
    if ratio is None:
        return NONE
    if ratio > TWICE:
        return times(ratio)
    moved = (ratio - 1) * 100
    return f"{'+' if moved >= 0 else '−'}{digits(abs(moved), 2)} %"


def duration(seconds: float | None) -> str:
    """Return a stretch of time: 12.5 s, 4 min 12 s, 10 h 3 min."""
    if seconds is None:
        return NONE
    if seconds < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{digits(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - minutes in an hour
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def moment(iso: str | None) -> str:
    """Return a wall-clock moment: 20 Nov 2026, 10:15 UTC; what is no such moment stays as it is."""
    if not iso:
        return NONE
    try:
        at = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    zone = at.strftime("%Z") or "UTC"
    return f"{at.day} {at:%b %Y, %H:%M} {zone}"


def interval(entry: Rated | None) -> str:
    """Return the spread of a rate as `± 1.6 %` (symmetric) or `low..high`; nothing where there is none."""
    if entry is None or entry.low is None or not entry.value:
        return ""
    value, low, high = entry.value, entry.low, entry.high or 0.0
    if math.isclose(high - value, value - low, rel_tol=0.01, abs_tol=value * 1e-6):
        return f"± {digits((high - low) / 2 / value * 100, 2)} %"
    return f"{rate(low)} … {rate(high)}"


def variant(values: Mapping[str, object]) -> str:
    """Return a variant in words: index = brin, clients = 8; what is empty means nothing special."""
    shown = {name: value for name, value in values.items() if value not in ("", None)}
    return ", ".join(f"{name} = {word(value)}" for name, value in shown.items())


def listed(words: Sequence[str]) -> str:
    """Return words as a list: a, b and c."""
    return " and ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def word(value: object) -> str:
    """Return a parameter's value as a user writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def fitted(labels: Sequence[str], letters: int) -> list[str]:
    """Cut labels in their middle to so many letters, or to as many as leave different ones different.

    Their ends say what tells them apart: a variant, the port of a server.
    """
    different = len(set(labels))
    while True:
        found = [_cut(label, letters) for label in labels]
        if len(set(found)) == different:
            return found
        letters += 1


def _cut(label: str, letters: int) -> str:
    if len(label) <= letters:
        return label
    head = (letters - 1) // 2
    return f"{label[:head]}…{label[head + 1 - letters :]}"
