"""What a session is asked to be at its log-in, and the query that finds one that is not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.engine.postgres import statements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone import model

_OPTION = re.compile(r"(?:-c\s*|--)((?:\\.|[^\s=\\])+)=((?:\\.|[^\s\\])*)")
_NOT_ASKED = ("options", "client_encoding", "replication")
"""Start-up parameters that are no settings, or that every pooler keeps."""


def wanted(connection: model.Connection) -> dict[str, str]:
    """Return the settings that the session is to have: those that are sent at log-in."""
    found = {}
    for name, value in _OPTION.findall(connection.parameters.get("options", "")):
        found[_plain(name).replace("-", "_")] = _plain(value)
    further = {name: value for name, value in connection.parameters.items() if name not in _NOT_ASKED}
    return found | further


def check_statement(connection: model.Connection) -> str | None:
    """Return a query that gives a row (what is wrong, how to mend it) where a session is not as asked for.

    None where nothing was requested. The driver's clients ask it as well.
    """
    settings = wanted(connection)
    if not settings and connection.claimed is None:
        return None
    from psycopg import sql  # noqa: PLC0415 - takes long, and plain sessions need none of it

    parts = []
    if settings:
        rows = sql.SQL(", ").join(
            sql.SQL("({}, {})").format(sql.Literal(name), sql.Literal(value))
            for name, value in settings.items()
        )
        mend = sql.Literal(hint(connection, settings))
        parts.append(sql.SQL(statements.SETTINGS_LOST).format(rows=rows, hint=mend))
    if connection.claimed is not None:
        schema, mark = connection.claimed
        words = f"the schema '{schema}' was dropped, or replaced by another run of Loadstone"
        parts.append(
            sql.SQL(statements.CLAIM_LOST).format(
                schema=sql.Literal(schema), mark=sql.Literal(mark), words=sql.Literal(words)
            )
        )
    return sql.SQL(" union all ").join(parts).as_string(None)


def hint(connection: model.Connection, settings: Mapping[str, str]) -> str:
    """Say how to have sessions with these settings all the same."""
    from psycopg import sql  # noqa: PLC0415

    role = sql.Identifier(connection.user).as_string(None)
    database = sql.Identifier(connection.database).as_string(None)
    sets = "; ".join(
        f"alter role {role} in database {database} set {name} = {_value(name, value)}"
        for name, value in settings.items()
    )
    return (
        "Connect to the server itself. Or use a separate role for Loadstone, set the same for its "
        f"sessions, and make the pooler reconnect (pgbouncer: RECONNECT): {sets}"
    )


def _value(name: str, value: str) -> str:
    from psycopg import sql  # noqa: PLC0415

    return value if name == "search_path" else sql.Literal(value).as_string(None)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
