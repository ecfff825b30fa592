"""How databases write what their SQL does not have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from loadstone.engines import all_engines
from loadstone.engines import engine as engine_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine import Engine


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """What TSBS's queries need of a database beside standard SQL."""

    name: str
    bucket: Callable[[str, str], str]
    """Width (`10 minutes`) and column → the start of the bucket that the column's time is in."""
    exact: bool = False
    """TSBS's own texts, with those that no database can run left as they are."""
    integer_division: str = "/"
    offset: str = " +0000"
    """How a time literal says that it is in UTC."""
    contains: str = '{column} @> \'{{"{key}": "{value}"}}\''
    """Whether a JSON column holds this text under this key."""
    mean_age: str = "avg(age({}, {}))"
    """The mean of the spans from the second of two times to the first."""
    texts: str = ""
    """The folder of `texts` with those that this dialect writes otherwise."""


def _time_bucket(width: str, column: str) -> str:
    return f"time_bucket('{width}', {column})"


TIMESCALEDB = Dialect("timescaledb", _time_bucket, exact=True)

_PECULIAR: dict[str, dict[str, str]] = {
    "duckdb": {
        "integer_division": "//",
        "offset": "+00",
        "contains": 'json_contains({column}, \'{{"{key}": "{value}"}}\')',
    },
    "mariadb": {
        "integer_division": "div",
        "offset": "",
        "contains": "json_value({column}, '$.{key}') = '{value}'",
        "mean_age": "sec_to_time(avg(timestampdiff(microsecond, {1}, {0})) / 1000000)",
        "texts": "mysql",
    },
}
"""What differs from PostgreSQL beside the bucket, by the engine's name."""


def dialect_of(engine: Engine) -> Dialect:
    """Return the dialect that an engine understands: PostgreSQL's with the engine's own time buckets."""
    return _named(engine.name)


def dialects() -> tuple[Dialect, ...]:
    """Return all dialects, TSBS's own first."""
    return (TIMESCALEDB, *(_named(name) for name in all_engines() if name != TIMESCALEDB.name))


@cache
def _named(name: str) -> Dialect:
    if name == TIMESCALEDB.name:
        return TIMESCALEDB
    bucket = engine_named(name).series.bucket
    # TSBS abbreviates the unit in one of its texts.
    return Dialect(
        name,
        lambda width, column: bucket(width.replace("mins", "minutes"), column),
        **_PECULIAR.get(name, {}),  # type: ignore[arg-type]
    )
