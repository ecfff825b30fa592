"""The shapes of an engine's answers: what the run folder and the report are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

RELATIONS_MAX = 200
"""Relations that are listed one by one; the rest are summed."""


class Setting(TypedDict):
    """One entry of target.json's `settings`."""

    name: str
    value: str
    source: str


class Durability(TypedDict):
    """One line of target.json's `durability`."""

    setting: str
    value: str
    durable: bool
    why: str


class Identity(TypedDict):
    """What the server says it is. `version_number` orders versions: 170004 is 17.4."""

    version: str
    version_text: str
    version_number: int
    standby: bool


class Caches(TypedDict):
    """What emptying the caches came to."""

    emptied: bool
    note: str
    restart_would_help: NotRequired[bool]


class RelationSize(TypedDict):
    """One entry of SIZES' `relations`."""

    name: str
    kind: str
    table: str
    bytes: int
    rows_estimate: int | None


class Sizes(TypedDict):
    """SIZES of docs/run-folder.md."""

    database_bytes: int | None
    wal_lsn_bytes: int | None
    relations: list[RelationSize]
    relations_left_out: int


class EnginePart(TypedDict):
    """The object `engine` of one line of monitor.jsonl."""

    counters: dict[str, float | int | None] | None
    gauges: dict[str, float | int | None] | None
    waits: dict[str, float | int | None] | None
    machine: NotRequired[dict[str, Any] | None]
    """What a server that is not on this machine says of its own."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read; `values` is None when nothing could be, and `reason` says why."""

    values: dict[str, float | int | None] | None
    reason: str | None = None


@dataclass(slots=True)
class Observed:
    """One look at the engine, with the reasons for what is missing."""

    part: EnginePart
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ServerProcesses:
    """Where the server runs when that can be told: its first process, parent of all the others."""

    pid: int | None
    reason: str | None = None


def version_number(version: str) -> int:
    """Return an Identity's `version_number` for a version of up to three parts: 2.10.1 is 21001."""
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    major, minor, patch = parts + [0] * (3 - len(parts))
    return major * 10000 + minor * 100 + patch


def sized(database_bytes: int | None, wal_bytes: int | None, relations: Sequence[RelationSize]) -> Sizes:
    """Make SIZES of relations in order of size, the largest first."""
    listed = list(relations[:RELATIONS_MAX])
    return {
        "database_bytes": database_bytes,
        "wal_lsn_bytes": wal_bytes,
        "relations": listed + _others(relations[RELATIONS_MAX:]),
        "relations_left_out": max(0, len(relations) - RELATIONS_MAX),
    }


def _others(relations: Sequence[RelationSize]) -> list[RelationSize]:
    summed: dict[str, RelationSize] = {}
    for relation in relations:
        kind = relation["kind"]
        empty: RelationSize = {
            "name": "(others)",
            "kind": kind,
            "table": "(others)",
            "bytes": 0,
            "rows_estimate": None,
        }
        summed.setdefault(kind, empty)["bytes"] += relation["bytes"]
    return list(summed.values())
