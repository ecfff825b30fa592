"""What a server of PostgreSQL's family says of itself while it works: counters, gauges, waits, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from loadstone.engine.answers import Observation, RelationSize, Sizes, sized
from loadstone.engine.postgres import statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.engine.control import Control


def observe(read: Callable[[], dict[str, Any] | None]) -> Observation:
    """Turn what a statement gave, or the server's refusal, into an observation."""
    try:
        row = read()
    except psycopg.errors.InsufficientPrivilege as error:
        return Observation(None, f"the server refuses this query: {error.diag.message_primary}")
    except psycopg.errors.UndefinedTable as error:
        return Observation(None, f"the server does not have this view: {error.diag.message_primary}")
    if row is None:
        return Observation(None, "the server did not answer")
    return Observation(row)


def sizes(connection: Control, schema: str) -> Sizes:
    """Read the sizes of the database and of every relation of the schema, largest first."""
    whole = connection.execute(statements.DATABASE_SIZE).fetchone() or {}
    rows = connection.execute(statements.RELATION_SIZES, {"schema": schema}).fetchall()
    names = {row["oid"]: row["name"] for row in rows}
    relations: list[RelationSize] = [
        {
            "name": row["name"],
            "kind": row["kind"],
            "table": str(names.get(row["table_oid"], row["name"])),
            "bytes": row["bytes"],
            "rows_estimate": row["rows_estimate"],
        }
        for row in rows
    ]
    return sized(whole.get("database_bytes"), whole.get("wal_lsn_bytes"), relations)
