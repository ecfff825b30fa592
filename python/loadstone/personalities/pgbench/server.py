"""What pgbench asks of the server before a run: a connection, the scale, a vacuum."""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadstone.engine.postgres.conninfo import refuse_unescaped, resolve, resolve_values
from loadstone.engine.postgres.plain_conninfo import plain_parameters
from loadstone.errors import LoadstoneError
from loadstone.personalities.pgbench.answers import number_of, rows_of
from loadstone.personalities.pgbench.complaint import NO_SETUP, PROGRAM, ComplaintError
from loadstone.personalities.pgbench.plain_control import PlainControl, StatementError, open_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.engine.control import Control as EngineControl
    from loadstone.engine.postgres.conninfo import Resolved
    from loadstone.engine.postgres.family import PostgresFamily
    from loadstone.engine.postgres.sessions import Needs
    from loadstone.model import Connection
    from loadstone.personalities.pgbench.options import Options
    from loadstone.personalities.pgbench.plain_control import Control

URL_PREFIXES = ("postgresql://", "postgres://")
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*")
_METHODS = {"r": "range", "h": "hash"}
_PARTITIONS = """
    select t.partstrat as method,
           (select count(*) from pg_catalog.pg_inherits as i where i.inhparent = c.oid) as partitions
      from pg_catalog.pg_class as c left join pg_catalog.pg_partitioned_table as t on t.partrelid = c.oid
     where c.oid = pg_catalog.to_regclass('pgbench_accounts')"""


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the server said before the run."""

    server_version: str
    scale: int
    partition_method: str | None = None
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is, and the scheme of its URL where that is not PostgreSQL's own."""

    connection: Connection
    scheme: str = ""

    def engine(self) -> PostgresFamily:
        """Return the engine that the scheme names; only a server of PostgreSQL's family has an address."""
        # All engines, which few runs need.
        from loadstone.engine.postgres.family import PostgresFamily  # noqa: PLC0415
        from loadstone.engines import engine_of_scheme  # noqa: PLC0415

        engine = engine_of_scheme(self.scheme or "postgres")
        if not isinstance(engine, PostgresFamily):
            raise LoadstoneError(
                f'"{self.scheme}://" is not a URL of a server with PostgreSQL\'s protocol',
                "Write postgres://user@host:port/database; `loadstone engines` lists the others.",
            )
        return engine

    def dial(self, name: str) -> EngineControl:
        """Open a connection of our own, of that name, for questions that need no session that lasts."""
        from loadstone.personalities.pgbench.libpq_control import dial  # noqa: PLC0415 - imports this module

        return dial(replace(self, connection=replace(self.connection, application_name=name)), "nothing")

    def schema(self, control: EngineControl) -> str:
        """Return where tables are made that are named without a schema."""
        return self.engine().text_value(control, "select current_schema()") or "public"


def address_of(
    options: Options,
    environment: Mapping[str, str],
    err: Callable[[str], object],
    complaint: str = NO_SETUP,
) -> Address:
    """Return where to connect: DBNAME may be a connection string, and then goes before the options.

    A URL may have the scheme of any engine with PostgreSQL's protocol. `complaint` ends the error message.
    """
    given = {"host": options.host, "port": options.port, "user": options.user}
    name = options.database
    if name is None:
        name = environment.get("PGDATABASE") or environment.get("PGUSER") or _account()
    try:
        scheme, name = _as_postgres(name)
        if name.startswith(URL_PREFIXES) or "=" in name:
            resolved = _resolved(name, {key: value or "" for key, value in given.items()})
        else:
            resolved = _resolved("", {key: value or "" for key, value in (given | {"dbname": name}).items()})
        address = Address(resolved.connection, scheme)
        if scheme:
            address.engine()
    except LoadstoneError as error:
        raise ComplaintError(error.message, error.hint, further=complaint) from error
    for note in resolved.notes:
        err(f"{PROGRAM}: warning: {note}\n")
    return address


def _as_postgres(name: str) -> tuple[str, str]:
    """Return the scheme of a relative's URL, if it is one, and the URL as PostgreSQL's."""
    scheme, separator, rest = name.partition("://")
    if name.startswith(URL_PREFIXES) or not separator or not _SCHEME.fullmatch(scheme):
        return "", name
    return scheme, f"{URL_PREFIXES[0]}{rest}"


def _resolved(text: str, given: Mapping[str, str]) -> Resolved:
    """Put a connection string, or nothing, before the options; raises LoadstoneError."""
    plain = plain_parameters(text, given)
    if plain is not None:
        return resolve_values(plain)
    from psycopg import conninfo as libpq  # noqa: PLC0415 - takes long, and few connections need it

    told = {key: str(value) for key, value in _parsed(text).items()} if text else {}
    return resolve(
        libpq.make_conninfo("", **{key: value for key, value in {**given, **told}.items() if value})
    )


def _parsed(text: str) -> Mapping[str, object]:
    import psycopg  # noqa: PLC0415
    from psycopg import conninfo as libpq  # noqa: PLC0415

    refuse_unescaped(text)
    try:
        return libpq.conninfo_to_dict(text)
    except psycopg.ProgrammingError:
        # libpq's complaint may quote a password; ours does not.
        resolve(text)
        raise


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise ComplaintError(
            f"there is no user name for the user with number {os.geteuid()}", "Set DBNAME and -U."
        ) from None


def prepare(address: Address, options: Options, err: Callable[[str], object]) -> ServerFacts:
    """Look at the server and vacuum; raises ComplaintError when the run cannot begin."""
    connection = address.connection
    control = None if address.scheme else open_plain(connection, err)
    if control is not None:
        with control:
            found = _found_plainly(control, options)
            if found is not None:
                return _vacuumed(control, options, found, err)
    from loadstone.personalities.pgbench.libpq_control import connected_control  # noqa: PLC0415 - takes long

    needs: Needs = "prepared statements" if options.mode == "prepared" else "nothing"
    with connected_control(address, needs, err) as asked:
        return _vacuumed(asked, options, _look(asked, options, connection.database), err)


def _found_plainly(control: PlainControl, options: Options) -> ServerFacts | None:
    """Look at the server; None where that fails: why, is found out by libpq, whose words people look for."""
    try:
        return _look(control, options, "")
    except (ComplaintError, StatementError):
        return None


def _look(control: Control, options: Options, database: str) -> ServerFacts:
    if not options.builtin:
        return ServerFacts(control.version, options.scale or 1)
    advice = f'Perhaps you need to do initialization ("pgbench -i") in database "{database}".'
    try:
        scale = _count_branches(control)
    except StatementError as error:
        raise ComplaintError(f"could not count number of branches: {error}", advice) from error
    if scale < 1:
        raise ComplaintError("the table pgbench_branches is empty", advice)
    return _with_partitions(control, ServerFacts(control.version, scale), advice)


def _count_branches(control: Control) -> int:
    rows = rows_of(control, "select count(*) from pgbench_branches", 1)
    return number_of(rows[0][0]) if rows else 0


def _with_partitions(control: Control, found: ServerFacts, advice: str) -> ServerFacts:
    try:
        rows = rows_of(control, _PARTITIONS, 2)
    except StatementError as error:
        if not error.is_undefined_table:
            raise ComplaintError(str(error)) from error
        return found  # a server before PostgreSQL 10: nothing is partitioned
    if not rows:
        raise ComplaintError('no pgbench_accounts table found in "search_path"', advice)
    code, partitions = rows[0]
    if code is None:
        return found
    method = _METHODS.get(code, code)
    return ServerFacts(found.server_version, found.scale, method, number_of(partitions))


def _vacuumed(
    control: Control, options: Options, found: ServerFacts, err: Callable[[str], object]
) -> ServerFacts:
    if options.builtin and options.scale is not None:
        err(
            f"{PROGRAM}: warning: scale option ignored, using count from pgbench_branches table "
            f"({found.scale})\n"
        )
    if options.vacuum:
        _vacuum(control, options, err)
    return found


def _vacuum(control: Control, options: Options, err: Callable[[str], object]) -> None:
    err("starting vacuum...")
    # unqualified: as pgbench says it, of tables that pgbench -i has made where the search path leads
    for statement in ("vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"):
        _try(control, statement, err)
    err("end.\n")
    if options.vacuum_all:
        err("starting vacuum pgbench_accounts...")  # unqualified: a line of progress
        _try(control, "vacuum analyze pgbench_accounts", err)
        err("end.\n")


def _try(control: Control, statement: str, err: Callable[[str], object]) -> None:
    try:
        control.ask(statement)
    except StatementError as error:
        err(f"{PROGRAM}: error: {error}\n")
        err(f"{PROGRAM}: detail: (ignoring this error and continuing anyway)\n")
