"""Settings that the user wants on a server of his own: what a session may set goes to all of ours."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg

from loadstone.engine.postgres import connections
from loadstone.errors import LoadstoneError, OtherSessionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone import model
    from loadstone.engine.control import Control
    from loadstone.engine.postgres.connections import PostgresControl

_OURS = ("application_name", "client_encoding", "role", "search_path", "session_authorization")
"""What Loadstone's own connections depend on."""
_SESSION = ("user", "backend")
_SUPERUSER = ("superuser", "superuser-backend")
_KNOWN = """
select lower(name) as name, context, source
from pg_catalog.pg_settings where lower(name) = any(%(names)s::text[])
"""
_IS_SUPERUSER = "select current_setting('is_superuser') as value"
_MAY_SET = """
select lower(name) as name from unnest(%(names)s::text[]) as name
where pg_catalog.has_parameter_privilege(name, 'SET')
"""
_PRIVILEGES_SINCE = 150000
_READ_ONLY = """
select current_setting('transaction_read_only') as value, current_user as "user",
       current_database() as database,
       (select source from pg_catalog.pg_settings where name = 'default_transaction_read_only') as source
"""
_ENCODING = "select current_setting('server_encoding') as encoding, current_database() as database"
_FORMS = {"DateStyle": "ISO", "IntervalStyle": "postgres", "bytea_output": "hex"}
"""See crates/drive/src/client/postgres/text.rs."""
_TEXTS = """
select current_setting('DateStyle') as "DateStyle", current_setting('IntervalStyle') as "IntervalStyle",
       current_setting('bytea_output') as "bytea_output"
"""
_KEEPS_UTF8 = ("UTF8", "SQL_ASCII")


def with_settings(
    connection: model.Connection,
    settings: Mapping[str, str],
    connect: Callable[[model.Connection], PostgresControl],
) -> model.Connection:
    """Return the connection with the settings as start-up options, which every session of ours then sends.

    Raises LoadstoneError where one of them can be set for the whole server only, or not by this user, or has
    a value that the server refuses; nothing is touched.
    """
    where = connections.place(connection)
    with closing(connect(connection)) as control:
        found = list(_why_not(control, settings))
    if found:
        raise LoadstoneError(
            f"--setting cannot set {', '.join((f'{name} ({why})' for name, why in found))} on {where}",
            "On your own server, --setting can set only what a session may set. Set the others on the "
            "server and remove them here, or measure a private server.",
        )
    made = _with_options(connection, settings)
    try:
        with closing(connect(made)) as session:
            ignored = sorted({*map(str.lower, settings)} - _in_force(session, settings))
    except OtherSessionError:
        raise  # the server took the values, and a pooler lost them
    except LoadstoneError as error:
        raise LoadstoneError(
            f"the server refuses the settings: {error.message}", "Check --setting."
        ) from error
    if ignored:
        raise LoadstoneError(
            f"{where} ignores the start-up option {ignored[0]}: a pooler may be in front of the server",
            "Use the server itself as the target.",
        )
    return made


def _with_options(connection: model.Connection, settings: Mapping[str, str]) -> model.Connection:
    words = [connections.option(name, value) for name, value in settings.items()]
    options = " ".join(filter(None, [connection.parameters.get("options", ""), *words]))
    return replace(connection, parameters={**connection.parameters, "options": options})


def for_texts(control: Control, connection: model.Connection) -> model.Connection:
    """Return the connection with the settings in which the core reads texts, where sessions have others.

    What is as it should be is not asked for: poolers refuse options that they do not know.
    """
    row = control.execute(_TEXTS).fetchone() or {}
    # The order of day and month has nothing to do with ISO.
    others = {name: value for name, value in _FORMS.items() if row.get(name, "").split(",")[0] != value}
    return _with_options(connection, others) if others else connection


def refuse_read_only(control: Control) -> None:
    """Raise LoadstoneError when sessions cannot write, although the server could."""
    row = control.execute(_READ_ONLY).fetchone()
    if row is None or row["value"] != "on":
        return
    source = row["source"]
    hint = "Add --setting default_transaction_read_only=off: it affects only Loadstone's sessions."
    if source in ("client", "session"):
        hint = "Remove it from --setting, from the target's options or from PGOPTIONS."
    raise LoadstoneError(
        f"sessions of {row['user']} in the database {row['database']} are read-only "
        f"(default_transaction_read_only = on, from: {source})",
        hint,
    )


def refuse_encoding(control: Control) -> None:
    """Raise LoadstoneError when the database does not keep UTF-8 texts as they are."""
    row = control.execute(_ENCODING).fetchone()
    if row is None or row["encoding"] in _KEEPS_UTF8:
        return
    raise LoadstoneError(
        f"the encoding of the database {row['database']} is {row['encoding']}, but Loadstone loads and "
        "compares UTF-8",
        "Use a database with encoding UTF8: create database loadstone template template0 encoding 'UTF8' "
        "locale 'C'",
    )


def _why_not(control: PostgresControl, settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    names = [name.lower() for name in settings]
    contexts = {row["name"]: row["context"] for row in _rows(control, _KNOWN, names)}
    permitted = _permitted(control, names)
    for name in settings:
        context = contexts.get(name.lower())
        if name.lower() in _OURS:
            yield name, "Loadstone's connections depend on it"
        elif context is None:
            # The library that knows a name with a dot may be loaded later: the server keeps it until then.
            if "." not in name:
                yield name, "the server has no such setting"
        elif context in _SUPERUSER and name.lower() not in permitted:
            yield name, "only a superuser may set it"
        elif context not in (*_SESSION, *_SUPERUSER):
            yield name, "it applies to the whole server"


def _permitted(control: PostgresControl, names: list[str]) -> set[str]:
    """Return which of the superuser's settings this user may set."""
    row = control.execute(_IS_SUPERUSER).fetchone()
    if row is not None and row["value"] == "on":
        return set(names)
    if control.info.server_version < _PRIVILEGES_SINCE:
        return set()
    try:
        return {row["name"] for row in _rows(control, _MAY_SET, names)}
    except psycopg.Error:  # a relative whose version promises more than it has
        return set()


def _in_force(control: PostgresControl, settings: Mapping[str, str]) -> set[str]:
    names = [name.lower() for name in settings]
    rows = _rows(control, _KNOWN, names)
    known = {row["name"]: row["source"] for row in rows}
    # What no library has announced is in no list; that it was taken is seen by its value.
    unlisted = {name for name in names if name not in known and _value(control, name) is not None}
    return unlisted | {name for name, source in known.items() if source in ("client", "session")}


def _value(control: PostgresControl, name: str) -> str | None:
    try:
        row = control.execute("select current_setting(%(name)s) as value", {"name": name}).fetchone()
    except psycopg.Error:
        return None
    return None if row is None else row["value"]


def _rows(control: PostgresControl, statement: str, names: list[str]) -> list[dict[str, Any]]:
    return control.execute(statement, {"names": names}).fetchall()
