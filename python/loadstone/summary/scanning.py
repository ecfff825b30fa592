"""How fast a query goes through its table, in rows and bytes, beside what memory and disk give."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.summary.reading import Json, TargetFiles

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

    rows: int | None
    bytes: int | None
    """On disk."""
    widths: Mapping[str, float | None] = field(default_factory=dict)
    """Mean bytes of a value, by column; None where they are not known."""


def limits_of(environment: Json) -> Limits:
    """Return the bandwidths that environment.json holds."""
    found = environment.get("bandwidth") or {}
    disks = [disk.get("bytes_per_s") for disk in (found.get("disks") or {}).values()]
    known = [float(rate) for rate in disks if rate]
    return Limits((found.get("memory") or {}).get("bytes_per_s"), min(known, default=None))


def widths_of(target: TargetFiles) -> dict[str, float | None]:
    """Return the mean bytes of a value of each column of what was loaded last; empty where nothing tells."""
    tables = [((phase.drive or {}).get("load") or {}).get("table") or {} for phase in target.phases]
    columns = [table["columns"] for table in tables if table.get("columns")]
    return {
        column["name"].lower(): column.get("text_bytes", WIDTHS.get(column.get("type")))
        for column in (columns[-1] if columns else [])
    }


def scan(table: Table, limits: Limits, sql: str | None, times: tuple[float | None, float | None]) -> Json:
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
    beyond = {
        "warm": _beyond(warm, limits.memory),
        "cold": _beyond(cold, limits.disk),
        "named": _beyond(values, limits.memory),
    }
    values = None if beyond["named"] else values
    return {
        "rows_per_s": _over(table.rows, warm_s),
        "bytes_per_s": None if beyond["warm"] else warm,
        "cold_bytes_per_s": None if beyond["cold"] else cold,
        "not_all_read": beyond,
        "named_columns": named,
        "named_bytes_per_s": values,
        "named_of_memory": _over(values, limits.memory),
    }


def named_columns(sql: str, columns: Mapping[str, object]) -> list[str]:
    """Return the columns that a query names, in the order of the table; texts in quotes name none."""
    words = set(_NAME.findall(_TEXT.sub(" ", sql).lower()))
    return [name for name in columns if name in words]


def _beyond(rate: float | None, limit: float | None) -> bool:
    return rate is not None and limit is not None and rate > limit


def _over(amount: float | None, unit: float | None) -> float | None:
    return amount / unit if amount is not None and unit else None
