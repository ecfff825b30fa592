"""The database that a run makes, marks and drops: `loadstone`, whose mark is the comment of a table in it.

A lock of the server excludes two runs at a time; it ends with the session that has it.
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.engine import MARK
from loadstone.engines.mariadb.control import ServerError
from loadstone.engines.mariadb.session import MARK_TABLE, name_lock
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, qualified, quoted

if TYPE_CHECKING:
    from loadstone.engines.mariadb.control import MariaControl

_RUN = re.compile(r"\(run \w+, clients ([^)]*)\)")
_DENIED = ("42000", "28000")


def claim(control: MariaControl, schema: str, mark: str) -> bool:
    """Take the database for this run. Raises LoadstoneError that says which session has it."""
    row = control.execute(_taking(schema)).fetchone() or {}
    if row.get("taken") != 1:
        raise LoadstoneError(
            f"another run of Loadstone uses the database '{schema}': session {row.get('holder')}",
            f"Wait until it ends. If no run is active, end that session: kill {row.get('holder')}",
        )
    found = _mark(control, schema)
    if found is not None and found != mark:
        _refuse_clients(control, schema, found)
    if found is not None and found.startswith(MARK):
        _put_mark(control, schema, mark)
    return True


def keeps(control: MariaControl, schema: str, mark: str) -> bool:
    """Return whether the database is still this run's, now that the connection is another; lock it again."""
    control.execute(_taking(schema))
    return _mark(control, schema) == mark


def release(control: MariaControl, schema: str) -> None:
    """Let go of the lock: behind a proxy the session may outlive us."""
    control.execute(f"select release_lock({_lock(schema)})")


def has(control: MariaControl, schema: str) -> bool:
    """Return whether the database is there and marked as ours."""
    return (_mark(control, schema) or "").startswith(MARK)


def create(control: MariaControl, schema: str, *, replace: bool) -> None:
    """Make the database, empty and marked as ours; refuse one with somebody else's tables in it."""
    if _exists(control, schema) and not has(control, schema):
        strangers = _tables(control, schema)
        if strangers and not replace:
            raise LoadstoneError(
                f"the server already has a database '{schema}' that Loadstone did not create, with "
                f"{', '.join(strangers[:3])} in it",
                "Rename it, or add --replace if nobody needs it: it is then dropped with everything in it.",
            )
    try:
        control.execute(f"drop database if exists {quoted(schema)}")
        control.execute(f"create database {quoted(schema)} character set utf8mb4 collate utf8mb4_bin")
        control.execute(f"use {quoted(schema)}")
        control.execute(
            f"create table {qualified(schema, MARK_TABLE)} (made int) engine=InnoDB comment = {literal(MARK)}"
        )
    except ServerError as error:
        if error.state not in _DENIED:
            raise
        user = control.origin.user
        raise LoadstoneError(
            f"the user '{user}' may not create the database '{schema}': {error}",
            f"Grant it: grant all on {schema}.* to '{user}'@'…'",
        ) from error


def drop(control: MariaControl, schema: str, lock_wait_s: float | None) -> None:
    """Drop the database with everything in it; none there is fine, one that is not ours is refused."""
    if not _exists(control, schema):
        return
    if not has(control, schema):
        raise LoadstoneError(
            f"the database '{schema}' is not marked as created by Loadstone and was not dropped",
            "Drop it yourself if nobody needs it.",
        )
    if lock_wait_s is not None:
        control.execute(f"set session lock_wait_timeout = {max(1, round(lock_wait_s))}")
    control.execute(f"drop database {quoted(schema)}")


def sessions_named(control: MariaControl, name: str) -> list[int]:
    """Return the sessions of the driver's clients of this name, as far as our user may see them."""
    rows = control.execute(
        f"select id from information_schema.processlist where is_used_lock({name_lock(name, 'id')}) = id"
    )
    return [int(row["id"]) for row in rows]


def _refuse_clients(control: MariaControl, schema: str, mark: str) -> None:
    found = _RUN.search(mark)
    left = sessions_named(control, found[1]) if found else []
    if left:
        release(control, schema)
        listed = ", ".join(map(str, left))
        raise LoadstoneError(
            f"another run of Loadstone uses the database '{schema}', and its clients are still connected "
            f"(sessions {listed})",
            "Wait until they end. If that run was killed, end them: kill …",
        )


def _taking(schema: str) -> str:
    """Return the query that takes the lock, once: the server counts how often a session did."""
    lock = _lock(schema)
    return (
        f"select if(is_used_lock({lock}) = connection_id(), 1, get_lock({lock}, 0)) as taken, "
        f"is_used_lock({lock}) as holder"
    )


def _lock(schema: str) -> str:
    return literal(f"Loadstone's database {schema}")


def _exists(control: MariaControl, schema: str) -> bool:
    text = f"select 1 as found from information_schema.schemata where schema_name = {literal(schema)}"
    return control.execute(text).fetchone() is not None


def _tables(control: MariaControl, schema: str) -> list[str]:
    rows = control.execute(
        "select table_name as name from information_schema.tables "
        f"where table_schema = {literal(schema)} order by 1"
    )
    return [str(row["name"]) for row in rows]


def _mark(control: MariaControl, schema: str) -> str | None:
    row = control.execute(
        "select table_comment as mark from information_schema.tables "
        f"where table_schema = {literal(schema)} and table_name = '{MARK_TABLE}'"
    ).fetchone()
    return None if row is None else str(row["mark"])


def _put_mark(control: MariaControl, schema: str, mark: str) -> None:
    control.execute(f"alter table {qualified(schema, MARK_TABLE)} comment = {literal(mark)}")
