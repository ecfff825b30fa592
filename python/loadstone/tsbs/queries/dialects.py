"""How databases write what their SQL does not have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine import Engine


@dataclass(frozen=True, slots=True)
class Dialect:
    """What TSBS's queries need of a database beside standard SQL."""

    name: str
    bucket: Callable[[str, str], str]
    """Width (`10 minutes`) and column → the start of the bucket that the column's time lies in."""
    exact: bool = False
    """TSBS's own texts, with those that no database can run left as they are."""
    integer_division: str = "/"
    offset: str = "+0000"
    """How a time literal says that it is in UTC."""
    contains: str = '{column} @> \'{{"{key}": "{value}"}}\''
    """Whether a JSON column holds this text under this key."""


def _time_bucket(width: str, column: str) -> str:
    return f"time_bucket('{width}', {column})"


def _interval_bucket(width: str, column: str) -> str:
    return f"time_bucket(interval '{width}', {column})"


def _epoch_bucket(width: str, column: str) -> str:
    return (
        f"to_timestamp(floor(extract(epoch from {column}) / extract(epoch from interval '{width}'))"
        f" * extract(epoch from interval '{width}'))"
    )


TIMESCALEDB = Dialect("timescaledb", _time_bucket, exact=True)
POSTGRESQL = Dialect("postgres", _epoch_bucket)
DUCKDB = Dialect(
    "duckdb",
    _interval_bucket,
    integer_division="//",
    offset="+00",
    contains='json_contains({column}, \'{{"{key}": "{value}"}}\')',
)

NAMED = {dialect.name: dialect for dialect in (TIMESCALEDB, POSTGRESQL, DUCKDB)}


def dialect_of(engine: Engine) -> Dialect:
    """Return the dialect that an engine understands: PostgreSQL's, unless it has one of its own."""
    return NAMED.get(engine.name, POSTGRESQL)
