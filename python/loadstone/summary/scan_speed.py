"""How fast a query goes through its table, in rows and bytes, beside what memory and disk give."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.results.documents.run import Bandwidths
from loadstone.results.documents.summary import Beyond

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.results.documents import Environment
    from loadstone.results.documents.drive import Column
    from loadstone.summary.run_files import TargetFiles

WIDTHS = {
    "bool": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float32": 4,
    "float64": 8,
    "date": 4,
    "timestamp": 8,
}
"""Bytes of a value, of types whose values all have the same."""
_TEXT = re.compile(r"'(?:[^']|'')*'")
_NAME = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes a second of memory and of the slowest disk, measured before the run; None where not."""

    memory: float | None
    disk: float | None


@dataclass(frozen=True, slots=True)
class Table:
    """What a target's queries go through."""

    rows: float | None
    bytes: float | None
    """On disk."""
    widths: Mapping[str, float | None] = field(default_factory=dict)
    """Mean bytes of a value, by column; None where they are not known."""


def limits_of(environment: Environment) -> Limits:
    """Return the bandwidths that environment.json holds."""
    found = environment.bandwidth or Bandwidths()
    known = [float(disk.bytes_per_s) for disk in (found.disks or {}).values() if disk.bytes_per_s]
    return Limits(found.memory and found.memory.bytes_per_s, min(known, default=None))


def widths_of(target: TargetFiles) -> dict[str, float | None]:
    """Return the mean bytes of a value of each column of what was loaded last; empty where nothing tells."""
    loads = (phase.drive.load for phase in target.phases if phase.drive and phase.drive.load)
    tables = [load.table.columns for load in loads if load.table and load.table.columns]
    return {column.name.lower(): _width(column) for column in (tables[-1] if tables else [])}


def _width(column: Column) -> float | None:
    return WIDTHS.get(column.type or "") if column.text_bytes is None else column.text_bytes


@dataclass(frozen=True, slots=True)
class Scan:
    """How fast a query goes through its table: as summary.json has it of the query."""

    rows_per_s: float | None
    bytes_per_s: float | None
    cold_bytes_per_s: float | None
    not_all_read: Beyond
    named_columns: list[str]
    named_bytes_per_s: float | None
    named_of_memory: float | None


def scan(table: Table, limits: Limits, sql: str | None, times: tuple[float | None, float | None]) -> Scan:
    """Return the rates of a query whose warm and cold median are `times`, in seconds.

    A rate above what the machine gives shows that not all of those bytes were read: it is None, and said to
    be so in `not_all_read`, of the whole table (warm, cold) and of the named columns.
    """
    warm_s, cold_s = times
    warm, cold = _over(table.bytes, warm_s), _over(table.bytes, cold_s)
    named = named_columns(sql or "", table.widths)
    widths = [table.widths[name] for name in named]
    known = [width for width in widths if width is not None]
    value_bytes = table.rows * sum(known) if table.rows and known and len(known) == len(widths) else None
    values = _over(value_bytes, warm_s)
    beyond = Beyond(
        warm=_beyond(warm, limits.memory),
        cold=_beyond(cold, limits.disk),
        named=_beyond(values, limits.memory),
    )
    values = None if beyond.named else values
    return Scan(
        rows_per_s=_over(table.rows, warm_s),
        bytes_per_s=None if beyond.warm else warm,
        cold_bytes_per_s=None if beyond.cold else cold,
        not_all_read=beyond,
        named_columns=named,
        named_bytes_per_s=values,
        named_of_memory=_over(values, limits.memory),
    )


def named_columns(sql: str, columns: Mapping[str, object]) -> list[str]:
    """Return the columns that a query names, in the order of the table; texts in quotes name none."""
    words = set(_NAME.findall(_TEXT.sub(" ", sql).lower()))
    return [name for name in columns if name in words]


def _beyond(rate: float | None, limit: float | None) -> bool:
    return rate is not None and limit is not None and rate > limit


def _over(amount: float | None, unit: float | None) -> float | None:
    return amount / unit if amount is not None and unit else None
