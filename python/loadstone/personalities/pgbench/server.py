"""What pgbench asks of the server before a run: a connection, the scale, a vacuum."""

from __future__ import annotations

import os
import pwd
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg
from psycopg import conninfo as libpq

from loadstone.engine.postgres import connections
from loadstone.engine.postgres.conninfo import refuse_unescaped, resolve
from loadstone.errors import LoadstoneError
from loadstone.personalities.pgbench.complaint import PROGRAM, ComplaintError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.engine.postgres.family import PostgresFamily
    from loadstone.engine.postgres.sessions import Needs
    from loadstone.model import Connection
    from loadstone.personalities.pgbench.options import Options

NO_SETUP = "could not create connection for setup"
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
                f'"{self.scheme}://" is no URL of a server with PostgreSQL\'s protocol',
                "Write postgres://user@host:port/database; `loadstone engines` lists the others.",
            )
        return engine

    def dial(self, needs: Needs) -> connections.PostgresControl:
        """Open a control connection, in the engine's own way where it has one; raises LoadstoneError."""
        if self.scheme:
            return self.engine().connect(self.connection, needs=needs)
        return connections.connect(self.connection, needs=needs)


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
            given |= {key: str(value) for key, value in _parsed(name).items()}
        else:
            given["dbname"] = name
        resolved = resolve(libpq.make_conninfo("", **{key: value for key, value in given.items() if value}))
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


def _parsed(text: str) -> Mapping[str, object]:
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
            f"there is no user name for the user with number {os.geteuid()}", "Give DBNAME and -U."
        ) from None


def prepare(address: Address, options: Options, err: Callable[[str], object]) -> ServerFacts:
    """Look at the server and vacuum; raises ComplaintError when the run cannot begin."""
    needs: Needs = "prepared statements" if options.mode == "prepared" else "nothing"
    with connected(address, needs) as control:
        control.add_notice_handler(_shown(err))
        version = control.info.parameter_status("server_version") or "unknown"
        found = ServerFacts(version, options.scale or 1)
        if options.builtin:
            found = _look(control, version)
            if options.scale is not None:
                err(
                    f"{PROGRAM}: warning: scale option ignored, using count from pgbench_branches table "
                    f"({found.scale})\n"
                )
        if options.vacuum:
            _vacuum(control, options, err)
        return found


@contextmanager
def connected(
    address: Address, needs: Needs, complaint: str = NO_SETUP
) -> Iterator[connections.PostgresControl]:
    """Open a control connection; raises ComplaintError in libpq's words, which `complaint` ends."""
    try:
        control = address.dial(needs)
    except LoadstoneError as error:
        # libpq's own words, for those who look for them.
        said = re.sub(r"^connection (failed|is bad): ", "", str(error.__cause__ or error.message).strip())
        raise ComplaintError(said, error.hint, further=complaint) from error
    try:
        with control:
            yield control
    except psycopg.OperationalError as error:
        raise ComplaintError(f"the server was lost before the run: {str(error).strip()}") from error


def _look(control: connections.PostgresControl, version: str) -> ServerFacts:
    advice = f'Perhaps you need to do initialization ("pgbench -i") in database "{control.info.dbname}".'
    try:
        row = control.execute("select count(*) from pgbench_branches").fetchone()
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        raise ComplaintError(f"could not count number of branches: {_as_libpq(error)}", advice) from error
    scale = int(row["count"]) if row else 0
    if scale < 1:
        raise ComplaintError("the table pgbench_branches is empty", advice)
    return _with_partitions(control, ServerFacts(version, scale), advice)


def _with_partitions(control: connections.PostgresControl, found: ServerFacts, advice: str) -> ServerFacts:
    try:
        row = control.execute(_PARTITIONS).fetchone()
    except psycopg.errors.UndefinedTable:
        return found  # a server before PostgreSQL 10: nothing is partitioned
    if row is None:
        raise ComplaintError('no pgbench_accounts table found in "search_path"', advice)
    if row["method"] is None:
        return found
    code = row["method"].decode() if isinstance(row["method"], bytes) else str(row["method"])
    return ServerFacts(found.server_version, found.scale, _METHODS.get(code, code), int(row["partitions"]))


def _vacuum(control: connections.PostgresControl, options: Options, err: Callable[[str], object]) -> None:
    err("starting vacuum...")
    # unqualified: as pgbench says it, of tables that pgbench -i has made where the search path leads
    for statement in ("vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"):
        _try(control, statement, err)
    err("end.\n")
    if options.vacuum_all:
        err("starting vacuum pgbench_accounts...")  # unqualified: a line of progress
        _try(control, "vacuum analyze pgbench_accounts", err)
        err("end.\n")


def _try(control: connections.PostgresControl, statement: str, err: Callable[[str], object]) -> None:
    try:
        control.execute(statement)
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        err(f"{PROGRAM}: error: {_as_libpq(error)}\n")
        err(f"{PROGRAM}: detail: (ignoring this error and continuing anyway)\n")


def _as_libpq(error: psycopg.Error) -> str:
    return f"{error.diag.severity or 'ERROR'}:  {str(error).strip()}"


def _shown(err: Callable[[str], object]) -> Callable[[psycopg.errors.Diagnostic], None]:
    """Return what shows a notice as libpq does."""

    def show(notice: psycopg.errors.Diagnostic) -> None:
        err(f"{notice.severity}:  {notice.message_primary}\n")

    return show
