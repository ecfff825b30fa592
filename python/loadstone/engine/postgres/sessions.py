"""Whether a session is the one that was asked for: a pooler may stand between, and drop what was set.

Everything that Loadstone makes goes where the session's `search_path` leads. A pooler that ignores start-up
options gives a session that leads elsewhere; one that gives each transaction another session keeps no
setting, no prepared statement and no lock. So every session is asked before it is used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import psycopg
from psycopg import sql

from loadstone.engine.postgres import statements
from loadstone.errors import OtherSessionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone import model
    from loadstone.engine.postgres.connections import PostgresControl

    Dial = Callable[[], PostgresControl]

Needs = Literal["session", "prepared statements", "nothing"]
"""What work needs of its sessions: that they last, that prepared statements do, or neither."""

_OPTION = re.compile(r"(?:-c\s*|--)((?:\\.|[^\s=\\])+)=((?:\\.|[^\s\\])*)")
_NOT_ASKED = ("options", "client_encoding", "replication")
"""Start-up parameters that are no settings, or that every pooler keeps."""
_ROUNDS = 4
"""How often two connections ask in turns which session they have."""
_lasting: set[tuple[str, int, str, str]] = set()
"""Places where sessions were found to last, as (host, port, user, database)."""


def wanted(connection: model.Connection) -> dict[str, str]:
    """Return the settings that the session is to have: those that are sent at log-in."""
    found = {}
    for name, value in _OPTION.findall(connection.parameters.get("options", "")):
        found[_plain(name).replace("-", "_")] = _plain(value)
    further = {name: value for name, value in connection.parameters.items() if name not in _NOT_ASKED}
    return found | further


def check_statement(connection: model.Connection) -> str | None:
    """Return a query that gives a row (what is wrong, how to mend it) where a session is not as asked for.

    None where nothing was asked for. The driver's clients ask it as well.
    """
    parts = []
    settings = wanted(connection)
    if settings:
        rows = sql.SQL(", ").join(
            sql.SQL("({}, {})").format(sql.Literal(name), sql.Literal(value))
            for name, value in settings.items()
        )
        hint = sql.Literal(_hint(connection, settings))
        parts.append(sql.SQL(statements.SETTINGS_LOST).format(rows=rows, hint=hint))
    if connection.claimed is not None:
        schema, mark = connection.claimed
        words = f"the schema {schema} was dropped, or taken by another run of Loadstone"
        parts.append(
            sql.SQL(statements.CLAIM_LOST).format(
                schema=sql.Literal(schema), mark=sql.Literal(mark), words=sql.Literal(words)
            )
        )
    return sql.SQL(" union all ").join(parts).as_string(None) if parts else None


def refuse_other(
    opened: PostgresControl,
    connection: model.Connection,
    where: str,
    dial: Dial,
    needs: Needs,
) -> int | None:
    """Raise OtherSessionError where the session is not what was asked for; return the process that serves it.

    `where` names the server in a sentence; `dial` opens a second connection, which is needed where a pooler
    stands between.
    """
    pid = _pid(opened)
    pooled = pid is not None and pid != opened.info.backend_pid
    row = _lost(opened, connection)
    if row is not None:
        between = ": a pooler stands between, and drops what is set at log-in" if pooled else ""
        raise OtherSessionError(
            f"the session at {where} is not as asked for: {row['what']}{between}", row["hint"]
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
        f"at {where} a pooler stands between that gives each transaction another session of the server: "
        "settings, prepared statements and locks do not last there",
        "Connect to the server itself, or have the pooler keep one session for each client "
        "(pgbouncer: pool_mode = session).",
    )


def _pid(opened: PostgresControl) -> int | None:
    """Return the process that serves the session; None where the server does not know such a thing."""
    try:
        row = opened.execute(statements.PID).fetchone()
    except psycopg.OperationalError:
        raise
    except psycopg.Error:
        return None
    return int(row["pid"]) if row else None


def _lost(opened: PostgresControl, connection: model.Connection) -> Mapping[str, str] | None:
    statement = check_statement(connection)
    if statement is None:
        return None
    try:
        return opened.execute(statement).fetchone()
    except psycopg.errors.UndefinedObject as error:
        return {"what": str(error.diag.message_primary), "hint": _hint(connection, wanted(connection))}


def _shared(one: PostgresControl, other: PostgresControl) -> bool:
    """Tell whether two connections have been served by the same session, or one by several."""
    ours, theirs = set(), set()
    for _ in range(_ROUNDS):
        ours.add(_pid(one))
        theirs.add(_pid(other))
    return len(ours) > 1 or len(theirs) > 1 or bool(ours & theirs)


def _keeps_prepared(dial: Dial) -> bool:
    """Tell whether the pooler keeps the prepared statements of its clients apart, as newer ones do."""
    with dial() as one, dial() as other:
        one.prepare_threshold = other.prepare_threshold = 0
        try:
            for _ in range(_ROUNDS):
                for connection, question in ((one, "select 1 as one"), (other, "select 2 as two")):
                    connection.execute(question, prepare=True)
        except psycopg.Error:
            return False
    return True


def _hint(connection: model.Connection, settings: Mapping[str, str]) -> str:
    role = sql.Identifier(connection.user).as_string(None)
    database = sql.Identifier(connection.database).as_string(None)
    sets = "; ".join(
        f"alter role {role} in database {database} set {name} = {_value(name, value)}"
        for name, value in settings.items()
    )
    return (
        "Connect to the server itself. Or use a role of its own for Loadstone, give its sessions the same, "
        f"and have the pooler connect anew (pgbouncer: RECONNECT): {sets}"
    )


def _value(name: str, value: str) -> str:
    return value if name == "search_path" else sql.Literal(value).as_string(None)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
