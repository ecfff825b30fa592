"""A data set as the core is told of it: RFC 3339 times, Go's durations, and the document of a series."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone import model

Document = dict[str, Any]

_SECOND_NS = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"(?P<base>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d+))?(?:Z|(?P<zone>[+-]\d\d:\d\d))"
)
# Go knows both letters for micro.
_UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
}
_PART = re.compile(r"(?P<whole>\d*)(?:\.(?P<fraction>\d*))?(?P<unit>[^\d.]+)")
_INT64_MAX = 2**63 - 1


def parse_time(text: str) -> int:
    """Return the nanoseconds since 1970 UTC of an RFC 3339 time; raises LoadstoneError."""
    found = _TIME.fullmatch(text)
    hint = "Write it as 2016-01-01T00:00:00Z."
    if found is None:
        raise LoadstoneError(f"{text!r} is not a time of RFC 3339", hint)
    try:
        moment = datetime.fromisoformat(found["base"]).replace(tzinfo=_zone(found["zone"]))
    except ValueError as error:
        raise LoadstoneError(f"{text!r} is not a time: {error}", hint) from None
    since = moment - _EPOCH
    seconds = since.days * 86400 + since.seconds
    nanoseconds = seconds * _SECOND_NS + int((found["fraction"] or "0")[:9].ljust(9, "0"))
    if not -_INT64_MAX <= nanoseconds <= _INT64_MAX:
        raise LoadstoneError(f"{text} is outside the years 1678 to 2261, which fit into nanoseconds", hint)
    return nanoseconds


def _zone(text: str | None) -> timezone:
    if text is None:
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if text[0] == "-" else offset)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a duration as Go writes it, as `1h30m`; raises LoadstoneError."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return 0
    total, at = 0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part["whole"] or part["fraction"]):
            raise _not_a_duration(text)
        unit_ns = _UNITS_NS.get(part["unit"])
        if unit_ns is None:
            raise _not_a_duration(text)
        fraction = part["fraction"] or ""
        total += int(part["whole"] or "0") * unit_ns
        total += int(fraction or "0") * unit_ns // 10 ** len(fraction)
        at = part.end()
    if not rest or total > _INT64_MAX:
        raise _not_a_duration(text)
    return sign * total


def _not_a_duration(text: str) -> LoadstoneError:
    return LoadstoneError(f"{text!r} is not a duration", "Write a number with its unit: 10s, 1h30m, 500ms.")


def range_of(series: model.Series) -> tuple[int, int]:
    """Return the first moment of a series and its end, which is no longer part of it, in nanoseconds."""
    return parse_time(series.start), parse_time(series.end)


def data_document(data: model.Series | str) -> Document:
    """Return how the core is told of the rows; a text is the path of a file in TSBS's format."""
    if isinstance(data, str):
        return text_document(data)
    start_ns, end_ns = range_of(data)
    common = {
        "use_case": data.use_case,
        "seed": data.seed,
        "scale": data.scale,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "interval_ns": round(data.interval_s * _SECOND_NS),
    }
    if data.native:
        return {"kind": "native", **common, "slice": list(data.slice)}
    if data.slice != (0, 1):
        raise LoadstoneError(
            "only native data can be generated in slices", "Choose native data, or remove the slice."
        )
    return {
        "kind": "tsbs",
        **common,
        "initial_scale": data.initial_scale,
        "max_points": data.max_points,
        "max_metrics": data.max_metrics,
    }


def text_document(path: str) -> Document:
    """Return how the core is told of TSBS's text in a file; "-" is standard input."""
    return {"kind": "text", "fd": 0} if path == "-" else {"kind": "text", "path": path}
