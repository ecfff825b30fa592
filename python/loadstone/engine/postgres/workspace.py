"""The schema that holds everything a scenario makes, and the mark that tells ours from anybody else's."""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING

from psycopg import errors, sql

from loadstone.engine import MARK
from loadstone.engine.postgres import statements
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.control import Row
    from loadstone.engine.postgres.connections import PostgresControl

_RUN = re.compile(r" \(run (\S+), clients (\S+)\)")
_ENDING_S = 10.0
"""How long the sessions of a run that has ended may take to end as well."""
_LOOK_S = 0.2


def create(connection: PostgresControl, schema: str, *, replace: bool) -> None:
    """Make the schema, empty and marked as ours.

    One of ours is emptied. Anybody else's is refused unless it is empty or `replace` is given.
    """
    found = _look(connection, schema)
    if found and found["objects"] and not _is_ours(found) and not replace:
        raise LoadstoneError(
            f"the schema '{schema}' contains {found['objects']} objects that Loadstone did not create",
            "Use another database, or add --replace to drop that schema with everything in it.",
        )
    try:
        with connection.transaction():
            if found and found["objects"]:
                _drop(connection, schema)
                found = None
            if not found:
                connection.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))
            _mark(connection, schema, MARK)
    except errors.InsufficientPrivilege as error:
        mend = "Allow the user to create schemas: grant create on database … to …"
        if found:
            mend = f"Drop that schema, or make the user its owner: alter schema {schema} owner to …"
        raise LoadstoneError(
            f"the schema '{schema}' cannot be {'used' if found else 'created'}: {error.diag.message_primary}",
            mend,
        ) from error


def claim(connection: PostgresControl, schema: str, mark: str) -> bool:
    """Take the schema for this run; False when another run has it.

    Who has the lock may claim; the mark on the schema is the claim itself, which outlives connections. The
    claim of a run that has ended is void once none of its clients' sessions is left: they would write on.
    """
    end = time.monotonic() + _ENDING_S
    while True:
        if not _lock(connection, schema):
            _refuse_held(connection, schema)
            return False
        found = _look(connection, schema)
        left = _sessions_of(connection, str(found["comment"])) if found else []
        if not left or (found and found["comment"] == mark):
            break
        release(connection)  # or the run that they belong to could not come back
        if time.monotonic() > end:
            raise _still_connected(schema, left)
        time.sleep(_LOOK_S)
    if found and _is_ours(found):
        with contextlib.suppress(errors.InsufficientPrivilege):  # `create` says so
            _mark(connection, schema, mark)
    return True


def keeps(connection: PostgresControl, schema: str, mark: str) -> bool:
    """Return whether the schema is still this run's, now that the connection is another; lock it again."""
    end = time.monotonic() + _ENDING_S
    while True:
        locked, found = _lock(connection, schema), _look(connection, schema)
        if not found or found["comment"] != mark:
            return False
        # Whoever has the lock and does not put a mark of its own is our lost session, which the server keeps.
        if locked or time.monotonic() > end:
            return True
        time.sleep(_LOOK_S)


def release(connection: PostgresControl) -> None:
    """Let go of the lock: behind a pooler the session may outlive us."""
    connection.execute(statements.RELEASE)


def has(connection: PostgresControl, schema: str) -> bool:
    """Return whether the schema is there and marked as ours."""
    found = _look(connection, schema)
    return bool(found and _is_ours(found))


def drop(connection: PostgresControl, schema: str) -> None:
    """Drop the schema with everything in it; none there is fine, one that is not ours is refused."""
    found = _look(connection, schema)
    if not found:
        return
    if not _is_ours(found):
        raise LoadstoneError(
            f"the schema '{schema}' is not marked as created by Loadstone and was not dropped",
            "Drop it yourself if nobody needs it.",
        )
    _drop(connection, schema)


def _is_ours(found: Row) -> bool:
    return str(found["comment"]).startswith(MARK)


def _mark(connection: PostgresControl, schema: str, mark: str) -> None:
    statement = sql.SQL("comment on schema {} is {}")
    connection.execute(statement.format(sql.Identifier(schema), sql.Literal(mark)))


def _lock(connection: PostgresControl, schema: str) -> bool:
    row = connection.execute(statements.CLAIM, {"name": _lock_name(schema)}).fetchone()
    return bool(row and row["ours"])


def _lock_name(schema: str) -> str:
    return f"Loadstone's schema {schema}"


def _still_connected(schema: str, pids: list[int]) -> LoadstoneError:
    return LoadstoneError(
        f"another run of Loadstone uses the schema '{schema}', and its clients are still connected (the "
        f"server's processes {', '.join(map(str, pids))})",
        "Wait until they end. If that run was killed, end them: select pg_terminate_backend(…)",
    )


def _refuse_held(connection: PostgresControl, schema: str) -> None:
    """Say which session has the lock; returns where the server does not show it."""
    holder = connection.execute(statements.HOLDER, {"name": _lock_name(schema)}).fetchone()
    if holder is None:
        return
    who = f'application "{holder["application"]}", user {holder["holder"]}, since {holder["since"]}'
    raise LoadstoneError(
        f"another run of Loadstone uses the schema '{schema}': the server's process {holder['pid']} ({who})",
        "Wait until it ends, or use another database; a run can have each database as a target only "
        f"once. If no run is active, end that session: select pg_terminate_backend({holder['pid']})",
    )


def _sessions_of(connection: PostgresControl, comment: str) -> list[int]:
    """Return the processes of the clients of the run that has marked the schema."""
    found = _RUN.search(comment)
    if found is None:
        return []
    rows = connection.execute(statements.SESSIONS_OF, {"name": found[2]})
    return [int(row["pid"]) for row in rows]


def _look(connection: PostgresControl, schema: str) -> Row | None:
    return connection.execute(statements.WORKSPACE, {"schema": schema}).fetchone()


def _drop(connection: PostgresControl, schema: str) -> None:
    connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
