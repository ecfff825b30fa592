"""What every session of ours is set to, and the query that finds one that is not, or no longer ours."""

# ruff: noqa: S608 - values are written by `literal`

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.engines.mariadb.control import ServerError, connect
from loadstone.errors import LoadstoneError, words_of
from loadstone.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.model import Connection

MODES = (
    "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES,STRICT_TRANS_TABLES,"
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
)
"""Names, texts and `||` mean what the SQL standard says, and what does not fit is an error."""
OURS = {"sql_mode": MODES, "time_zone": "+00:00", "div_precision_increment": "16"}
"""With fewer decimals, means of whole numbers would differ from other engines' in the fifth digit."""
MARK_TABLE = "loadstone_mark"
"""A table whose comment tells whose the database is: MySQL's databases have none."""


def as_ours(connection: Connection, database: str) -> Connection:
    """Return the connection with our settings, in a database; the user's own settings of sessions stay."""
    return replace(connection, database=database, parameters={**connection.parameters, **OURS})


def checked(connection: Connection) -> Connection:
    """Return the connection of the driver's clients, whose sessions look at themselves after the log-in.

    Each takes a lock of its run's name and its own number, by which it is found by `name_lock`.
    """
    marked = ""
    words = "a proxy lost what the session was set to, or the name of a lock"
    if connection.claimed is not None:
        schema, mark = connection.claimed
        marked = (
            "when not exists (select 1 from information_schema.tables "
            f"where table_schema = {literal(schema)} and table_name = '{MARK_TABLE}' "
            f"and table_comment = {literal(mark)}) "
            f"then {literal(f'the schema {schema} was dropped, or replaced by another run of Loadstone')} "
        )
    name = name_lock(connection.application_name, "connection_id()")
    query = (
        "select wrong, 'Connect to the server itself, and run once at a time.' from (select case "
        f"when find_in_set('ANSI_QUOTES', @@sql_mode) = 0 then {literal(words)} {marked}"
        f"when get_lock({name}, 0) is null then {literal(words)} end as wrong) as looked "
        "where wrong is not null"
    )
    return replace(connection, session_check=query)


def name_lock(name: str, session: str) -> str:
    """Return an expression for the lock by which a client's session is found; `session` gives its number."""
    return f"concat({literal(f'{name[:40]}.')}, {session})"


def with_settings(connection: Connection, settings: Mapping[str, str]) -> Connection:
    """Return the connection with variables that each session sets. Raises LoadstoneError."""
    ours = sorted(set(settings) & {*OURS, "autocommit", "character_set_client"})
    if ours:
        raise LoadstoneError(f"Loadstone itself sets '{ours[0]}' of its sessions", "Remove it.")
    parameters = {**connection.parameters, **settings}
    wanted = replace(connection, parameters=parameters)
    try:
        connect(wanted).close()
    except (LoadstoneError, ServerError) as error:
        connect(connection).close()  # where that fails, it is not the settings
        said = words_of(error)
        raise LoadstoneError(
            f"--setting cannot set {', '.join(settings)} for a session: {said}",
            "On your own server, --setting can set only what a session may set. Set the others on the server "
            "and remove them here, or measure a private server.",
        ) from error
    return wanted
