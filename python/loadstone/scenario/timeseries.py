"""Time-series phases of a scenario: [[phase]] with `data`, `tables` and `queries` → Load, QueryMix."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from loadstone.model import Load, Pace, QueryMix, Series, SeriesTables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CAUTIOUS_ROWS_PER_S = 50_000
"""Rows that a load sends in a second when nothing holds it back, for estimates: most set-ups do more."""
_ROWS_PER_EPOCH = {"iot": 2, "devops": 9}
"""Rows that a device writes at each of its times, where it is not one."""
_LOAD = ("batch_rows", "workers", "hash_workers", "timeout_s")


def load_of(table: Mapping[str, Any], seed: int) -> Load:
    """Return the load that a phase's table, filled in, asks for."""
    return Load(
        data=series_of(table["data"]),
        method=table.get("method", "best"),
        pace=_pace(table),
        tables=SeriesTables(**table.get("tables", {})),
        seed=seed,
        **{key: table[key] for key in _LOAD if key in table},
    )


def queries_of(table: Mapping[str, Any], seed: int) -> QueryMix:
    """Return the query mix of a phase's table, filled in."""
    queries = table["queries"]
    return QueryMix(
        series=series_of(table["data"]),
        kinds=tuple(queries["kinds"]),
        seed=seed,
        pace=_pace(queries),
        **{key: queries[key] for key in ("count", "workers", "duration_s") if key in queries},
        **{key: table[key] for key in ("timeout_s",) if key in table},
    )


def series_of(data: Mapping[str, Any]) -> Series:
    """Return the data set that a `data` table, filled in, describes."""
    given = dict(data)
    span_s = given.pop("span_s", None)
    if span_s is not None:
        given["end"] = _later(given["start"], float(span_s))
    return Series(**given)


def needs(load: Load | None, query: QueryMix | None) -> Iterator[str]:
    """Yield the capabilities that a target must have to load and to query."""
    if load is not None:
        yield "load" if load.method == "best" else f"load:{load.method}"
    if query is not None:
        yield "query"
    if load is not None or query is not None:
        yield "time series"


def rows_of(load: Load) -> int | None:
    """Return about how many rows a load has, on the high side; None for a text that nobody has read yet."""
    series = load.data
    if isinstance(series, str):
        return None
    span_s = (datetime.fromisoformat(series.end) - datetime.fromisoformat(series.start)).total_seconds()
    devices = series.scale * _ROWS_PER_EPOCH.get(series.use_case, 1) / series.slice[1]
    rows = math.ceil(span_s / series.interval_s) * devices
    limits = [limit for limit in (series.max_points, load.limit_rows) if limit]
    return round(min([rows, *limits]))


def seconds_of(load: Load | None, query: QueryMix | None) -> float:
    """Return about how long a phase loads, or queries; queries without pace or duration count with 0."""
    if load is not None:
        rate = load.pace.rate_per_s
        return (rows_of(load) or 0) / (rate * load.batch_rows if rate else CAUTIOUS_ROWS_PER_S)
    if query is None:
        return 0.0
    if query.duration_s is not None:
        return query.duration_s
    return len(query.kinds) * query.count / query.pace.rate_per_s if query.pace.rate_per_s else 0.0


def _later(start: str, span_s: float) -> str:
    """Return the RFC 3339 time a span after another, to the whole second."""
    end = datetime.fromisoformat(start) + timedelta(seconds=round(span_s))
    return end.isoformat().replace("+00:00", "Z")


def _pace(table: Mapping[str, Any]) -> Pace:
    return Pace(table.get("pace", "closed"), table.get("rate_per_s"))
