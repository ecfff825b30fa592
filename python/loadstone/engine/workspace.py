"""The schema that holds everything a scenario makes, and the mark that tells ours from anybody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import errors, sql

from loadstone.engine import statements
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.engine.connecting import PostgresControl
    from loadstone.engine.control import Row

MARK = "made by Loadstone, which drops it with everything in it"


def create(connection: PostgresControl, schema: str, *, replace: bool) -> None:
    """Make the schema, empty and marked as ours.

    One of ours is emptied. Anybody else's is refused unless it is empty or `replace` is given.
    """
    found = _look(connection, schema)
    if found and found["objects"] and found["comment"] != MARK and not replace:
        raise LoadstoneError(
            f'the schema "{schema}" holds {found["objects"]} objects that Loadstone did not make',
            "Point Loadstone at another database, or give --replace to drop that schema with all it holds.",
        )
    try:
        with connection.transaction():
            if found and found["objects"]:
                _drop(connection, schema)
                found = None
            if not found:
                connection.execute(sql.SQL("create schema {}").format(sql.Identifier(schema)))
            mark = sql.SQL("comment on schema {} is {}")
            connection.execute(mark.format(sql.Identifier(schema), sql.Literal(MARK)))
    except errors.InsufficientPrivilege as error:
        raise LoadstoneError(
            f'the schema "{schema}" cannot be made: {error.diag.message_primary}',
            "Let the user create schemas there: grant create on database … to …",
        ) from error


def claim(connection: PostgresControl, schema: str) -> bool:
    """Take the schema for this run, until the connection ends; False when another session has it."""
    row = connection.execute(statements.CLAIM, {"name": f"Loadstone's schema {schema}"}).fetchone()
    return bool(row and row["ours"])


def has(connection: PostgresControl, schema: str) -> bool:
    """Tell whether the schema is there and marked as ours."""
    found = _look(connection, schema)
    return bool(found and found["comment"] == MARK)


def drop(connection: PostgresControl, schema: str) -> None:
    """Drop the schema with everything in it; none there is fine, one that is not ours is refused."""
    found = _look(connection, schema)
    if not found:
        return
    if found["comment"] != MARK:
        raise LoadstoneError(
            f'the schema "{schema}" is not marked as made by Loadstone, so it stays',
            "Drop it by hand if nobody needs it.",
        )
    _drop(connection, schema)


def _look(connection: PostgresControl, schema: str) -> Row | None:
    return connection.execute(statements.WORKSPACE, {"schema": schema}).fetchone()


def _drop(connection: PostgresControl, schema: str) -> None:
    connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
