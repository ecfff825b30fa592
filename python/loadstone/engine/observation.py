"""What a server says of itself while it works: counters, gauges, waits, sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

import psycopg

from loadstone.engine import statements

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import Connection

RELATIONS_MAX = 200


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read; `values` is None when nothing could be, and `reason` says why."""

    values: dict[str, float | int | None] | None
    reason: str | None = None


class EnginePart(TypedDict):
    """The object `engine` of one line of monitor.jsonl."""

    counters: dict[str, float | int | None] | None
    gauges: dict[str, float | int | None] | None
    waits: dict[str, float | int | None] | None


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


@dataclass(frozen=True, slots=True)
class ServerProcesses:
    """Where the server runs when that can be told: its first process, parent of all the others."""

    pid: int | None
    reason: str | None = None


@dataclass(slots=True)
class Observed:
    """One look at the engine, with the reasons for what is missing."""

    part: EnginePart
    reasons: list[str] = field(default_factory=list)


def observe(read: Callable[[], dict[str, Any] | None]) -> Observation:
    """Turn what a statement gave, or the server's refusal, into an observation."""
    try:
        row = read()
    except psycopg.errors.InsufficientPrivilege as error:
        return Observation(None, f"the server refuses: {error.diag.message_primary}")
    except psycopg.errors.UndefinedTable as error:
        return Observation(None, f"the server has no such view: {error.diag.message_primary}")
    if row is None:
        return Observation(None, "the server gave no answer")
    return Observation(row)


def sizes(connection: Connection[dict[str, Any]], schema: str) -> Sizes:
    """Read the sizes of the database and of every relation of the schema, largest first."""
    whole = connection.execute(statements.DATABASE_SIZE).fetchone() or {}
    rows = connection.execute(statements.RELATION_SIZES, {"schema": schema}).fetchall()
    names = {row["oid"]: row["name"] for row in rows}
    relations: list[RelationSize] = [
        {
            "name": row["name"],
            "kind": row["kind"],
            "table": names.get(row["table_oid"], row["name"]),
            "bytes": row["bytes"],
            "rows_estimate": row["rows_estimate"],
        }
        for row in rows
    ]
    return {
        "database_bytes": whole.get("database_bytes"),
        "wal_lsn_bytes": whole.get("wal_lsn_bytes"),
        "relations": relations[:RELATIONS_MAX] + _others(relations[RELATIONS_MAX:]),
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
