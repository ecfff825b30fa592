"""Whether a session is the one that was requested: a pooler may stand between, and drop what was set.

Everything that Loadstone makes goes where the session's `search_path` leads. A pooler that ignores start-up
options gives a session that leads elsewhere; one that gives each transaction another session keeps no
setting, no prepared statement and no lock. So every session is asked before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import psycopg

from loadstone.engine.postgres import statements
from loadstone.engine.postgres.session_checks import check_statement, hint, wanted
from loadstone.errors import OtherSessionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone import model
    from loadstone.engine.postgres.connections import PostgresControl

    Dial = Callable[[], PostgresControl]

Needs = Literal["session", "prepared statements", "nothing"]
"""What work needs of its sessions: that they last, that prepared statements do, or neither."""

_ROUNDS = 4
"""How often two connections ask in turns which session they have."""
_lasting: set[tuple[str, int, str, str]] = set()
"""Places where sessions were found to last, as (host, port, user, database)."""


def refuse_other(
    opened: PostgresControl,
    connection: model.Connection,
    where: str,
    dial: Dial,
    needs: Needs,
) -> int | None:
    """Raise OtherSessionError where the session is not what was requested; return the process that serves it.

    `where` names the server in a sentence; `dial` opens a second connection, which is needed where a pooler
    stands between.
    """
    pid = _pid(opened)
    pooled = pid is not None and pid != opened.info.backend_pid
    row = _lost(opened, connection)
    if row is not None:
        between = ": a pooler is in front of the server and drops settings of the log-in" if pooled else ""
        raise OtherSessionError(
            f"the session at {where} does not have the requested settings: {row['what']}{between}",
            row["hint"],
        )
    key = (connection.host, connection.port, connection.user, connection.database)
    if not pooled or needs == "nothing" or key in _lasting:
        return pid
    with dial() as other:
        if not _shared(opened, other):
            _lasting.add(key)
            return pid
    if needs == "prepared statements" and _keeps_prepared(dial):
        return pid
    raise OtherSessionError(
        f"at {where} a pooler runs each transaction in another session of the server: settings, "
        "prepared statements and locks are lost between them",
        "Connect to the server itself, or configure the pooler to keep one session for each client "
        "(pgbouncer: pool_mode = session).",
    )


def _pid(opened: PostgresControl) -> int | None:
    """Return the process that serves the session; None where the server does not know such a thing."""
    try:
        row = opened.execute(statements.PID).fetchone() or {"pid": None}
    except psycopg.OperationalError:
        raise
    except psycopg.Error:
        return None
    pid = str(row["pid"])
    return int(pid) if pid.isdecimal() else None


def _lost(opened: PostgresControl, connection: model.Connection) -> Mapping[str, str] | None:
    statement = check_statement(connection)
    if statement is None:
        return None
    try:
        return opened.execute(statement).fetchone()
    except psycopg.errors.UndefinedObject as error:
        return {"what": str(error.diag.message_primary), "hint": hint(connection, wanted(connection))}


def _shared(one: PostgresControl, other: PostgresControl) -> bool:
    """Return whether two connections have been served by the same session, or one by several."""
    ours, theirs = set(), set()
    for _ in range(_ROUNDS):
        ours.add(_pid(one))
        theirs.add(_pid(other))
    return len(ours) > 1 or len(theirs) > 1 or bool(ours & theirs)


def _keeps_prepared(dial: Dial) -> bool:
    """Return whether the pooler keeps the prepared statements of its clients apart, as newer ones do."""
    with dial() as one, dial() as other:
        one.prepare_threshold = other.prepare_threshold = 0
        try:
            for _ in range(_ROUNDS):
                for connection, question in ((one, "select 1 as one"), (other, "select 2 as two")):
                    connection.execute(question, prepare=True)
        except psycopg.Error:
            return False
    return True
