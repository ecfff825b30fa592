"""MariaDB and MySQL, by their own wire protocol: the user's servers, and a private MariaDB."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.engine import MARK, SCHEMA, not_one_value, one
from loadstone.engine.answers import version_number
from loadstone.engine.control import CONTROL_CONNECTIONS
from loadstone.engine.library.engine import Place
from loadstone.engine.observe.storage import DataFiles
from loadstone.engine.wire import WireEngine
from loadstone.engines.mariadb import durability, facts, session, url, workspace
from loadstone.engines.mariadb.control import ServerError, connect, connect_where_possible, mariadbs
from loadstone.engines.mariadb.server import PACKAGE, PrivateMaria
from loadstone.engines.mariadb.tables import MariaTables
from loadstone.engines.mariadb.timeseries import MariaSeries
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.engine.answers import (
        Caches,
        Durability,
        Identity,
        Observation,
        ServerProcesses,
        Setting,
        Sizes,
    )
    from loadstone.engine.control import Control
    from loadstone.engine.observe.storage import Storage
    from loadstone.engines.mariadb.control import MariaControl
    from loadstone.model import Connection

_OLDEST = 80000


class MariaDB(WireEngine):
    """MariaDB or MySQL, private or the user's own."""

    name = "mariadb"
    title = "MariaDB"
    process_names = ("mariadbd", "mysqld")
    schemes = ("mariadb", "mysql")
    short_names = ("mariadb",)
    sql_dialect = "mysql"
    errors = (ServerError,)
    status = "verified against MariaDB 10.11 and MySQL 9.7, on Linux"
    needs = f"for a private server, Debian's package {PACKAGE}"
    series = MariaSeries()
    tables: MariaTables = MariaTables()

    @property
    def target_forms(self) -> tuple[str, ...]:
        """A private server, the user's own."""
        return ("mariadb", "mariadb://", "mysql://")

    def place(self, text: str) -> Place | None:
        """Understand a private server; URLs are resolved."""
        if text:
            return None
        return Place(
            "mariadb",
            "private server mariadb",
            "mariadb",
            needs_folder=True,
            private=True,
            serves_as_user=True,
        )

    def open(self, place: Place, folder: Path, settings: Mapping[str, str], clients: int) -> PrivateMaria:
        """Start a private server."""
        del place
        return PrivateMaria(folder, settings, clients)

    def resolve(self, text: str) -> tuple[Connection, tuple[str, ...]]:
        """Return how to connect."""
        return url.resolve(text), ()

    def address(self, connection: Connection) -> str:
        """Name the server in a sentence."""
        return url.place(connection)

    def shown_url(self, connection: Connection) -> str:
        """Return the URL of a database without its password and without parameters."""
        return url.url_of(connection, whole=False)

    def target_url(self, connection: Connection) -> str:
        """Return a URL that names the same target wherever it is given, but for its secrets."""
        return url.url_of(connection, whole=True)

    def connect(self, connection: Connection) -> MariaControl:
        """Open a control connection; in no database, where ours is not there yet."""
        if connection.database == SCHEMA:
            return connect_where_possible(connection)
        return connect(connection)

    def create_database(self, connection: Connection, admin: str) -> bool:
        """Create the database, unless it is there."""
        try:
            control = connect(replace(connection, database=admin))
        except LoadstoneError:
            return False
        with contextlib.closing(control):
            try:
                control.execute(f"create database `{connection.database.replace('`', '``')}`")
            except ServerError:
                return False
        return True

    def with_schema(self, connection: Connection, schema: str = SCHEMA) -> Connection:
        """Return the connection whose unqualified names lead to the database, in standard SQL and UTC."""
        return session.as_ours(connection, schema)

    def client_connection(self, connection: Connection, schema: str | None = SCHEMA) -> Connection | None:
        """Return how the driver's clients connect."""
        database = connection.database if schema is None else schema
        return session.checked(session.as_ours(connection, database))

    def with_settings(self, connection: Connection, settings: Mapping[str, str]) -> Connection:
        """Return the connection with variables that every session of ours sets."""
        return session.with_settings(connection, settings)

    def version(self, connection: Control) -> Identity:
        """Ask the server what it is."""
        row = one(connection, "select version() as version, @@version_comment as comment")
        text = str(row["version"])
        number = text.partition("-")[0]
        kind = "MariaDB" if "mariadb" in f"{text} {row['comment']}".lower() else "MySQL"
        return {
            "version": number,
            "version_text": f"{kind} {text} ({row['comment']})",
            "version_number": version_number(number),
            "standby": False,
        }

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse one that is too old."""
        try:
            identity = self.version(connection)
        except ServerError as error:
            raise LoadstoneError(
                f"the server does not answer like MariaDB: {error}",
                "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
            ) from error
        if identity["version_number"] < _OLDEST:
            raise LoadstoneError(
                f"the server is {identity['version_text']}",
                "Loadstone needs MariaDB 10.2 or later, or MySQL 8.0 or later.",
            )
        return identity

    def label(self, identity: Identity) -> str:
        """Name engine and version: the same protocol serves both."""
        return " ".join((identity["version_text"].partition(" ")[0], identity["version"]))

    def postgres_version(self, identity: Identity) -> str | None:
        """Scenarios ask for versions of PostgreSQL, of which this engine has none."""
        del identity
        return None

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Take the database for this run; raises LoadstoneError that says which session has it."""
        return workspace.claim(mariadbs(connection), schema, mark or MARK)

    def keeps_workspace(self, connection: Control, schema: str, mark: str) -> bool:
        """Return whether the database still bears the run's mark, and lock it again."""
        return workspace.keeps(mariadbs(connection), schema, mark)

    def release_workspace(self, connection: Control) -> None:
        """Let go of the lock."""
        workspace.release(mariadbs(connection), SCHEMA)

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the database is there and marked as ours."""
        return workspace.has(mariadbs(connection), schema)

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make the database, empty and marked as ours; refuse one with somebody else's tables in it."""
        workspace.create(mariadbs(connection), schema, replace=replace)

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the database with everything in it, if it is ours; wait no longer than that for others."""
        workspace.drop(mariadbs(connection), schema, lock_wait_s)

    def settings(self, connection: Control) -> list[Setting]:
        """Read the settings that are not at their defaults, and those worth recording anyway."""
        return facts.settings(mariadbs(connection))

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge the settings that decide whether a committed transaction survives a crash."""
        del schema
        return durability.judge(facts.variables(mariadbs(connection)))

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read sizes and the position of the redo log."""
        return facts.sizes(mariadbs(connection), schema)

    def data_files(self, connection: Control, ours: Path | None = None) -> DataFiles:
        """Return the folder that is ours to know; of others we see nothing."""
        del connection
        return DataFiles(ours, "" if ours else "the files of the server cannot be seen from here")

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for tables in the schema."""
        folder = data_directory / "data" if data_directory is not None else None
        return facts.storage(mariadbs(connection), tables, schema, folder)

    def counters(self, connection: Control) -> Observation:
        """Read the cumulative counters of monitor.jsonl."""
        return facts.counters(mariadbs(connection))

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read the momentary figures of monitor.jsonl."""
        del schema
        return facts.gauges(mariadbs(connection))

    def waits(self, connection: Control) -> Observation:
        """Count the sessions that work by what they do."""
        return facts.waits(mariadbs(connection))

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find the server's process."""
        control = mariadbs(connection)
        host = control.origin.host
        local = host.startswith("/") or host in ("127.0.0.1", "::1", "localhost")
        own = control.server.pid if control.server is not None else None
        return facts.processes(control, own, local=local)

    def cancel(self, connection: Control, application_name: str) -> int:
        """End our clients' sessions, with what they still do; returns how many there were."""
        control = mariadbs(connection)
        found = workspace.sessions_named(control, application_name)
        for number in found:
            with contextlib.suppress(ServerError):  # it has ended meanwhile
                control.execute(f"kill {number}")
        return len(found)

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require."""
        words = {
            "sql",
            "time series",
            "load",
            "query",
            "btree",
            "mysql",
            *(f"load:{method}" for method in self.tables.methods),
        }
        words |= {"md5"} if facts.has_md5(connection) else set()
        return frozenset(words | self.tables.offers(connection))

    def checkpoint(self, connection: Control) -> str | None:
        """Have all changed pages of our tables written; returns why it could not be done, or None."""
        try:
            facts.write_pages(mariadbs(connection), SCHEMA)
        except ServerError as error:
            return f"the tables' pages could not be written: {error}"
        return None

    def flush_caches(self, connection: Control) -> Caches:
        """Start a private server again; say that only this would empty another's."""
        server = mariadbs(connection).server
        if server is not None:
            server.restart()
            return {
                "emptied": True,
                "note": "the server was restarted, and its files dropped from the page cache",
            }
        note = f"{self.title} cannot empty its buffer pool while it runs; only a restart does"
        return {"emptied": False, "note": note, "restart_would_help": True}

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server has no room for that many more connections."""
        control = mariadbs(connection)
        used = facts.status(control).get("Threads_connected", 1)
        row = one(control, "select @@max_connections as allowed, @@max_user_connections as each_user")
        free = int(row["allowed"]) - used - 1
        if free < clients:
            raise LoadstoneError(
                f"{clients} clients are requested, but the server can accept only {max(free, 0)} "
                f"(max_connections {row['allowed']}, in use {used})",
                f"Use fewer clients, or set max_connections to {row['allowed'] + clients - free} or more.",
            )
        if 0 < int(row["each_user"]) < clients + CONTROL_CONNECTIONS:
            raise LoadstoneError(
                f"{clients} clients are requested, but a user may have only {row['each_user']} connections",
                "Use fewer clients, or raise max_user_connections.",
            )

    def refuse_read_only(self, connection: Control) -> None:
        """Raise LoadstoneError when the server accepts no writes."""
        if one(connection, "select @@global.read_only as value", column=True):
            raise LoadstoneError("the server is read-only", "Use the primary, or: set global read_only = off")

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the plan without running the query, a line for each table."""
        rows = mariadbs(connection).texts(f"explain {sql}")
        return "\n".join("  ".join(value or "-" for value in row) for row in rows)

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a statement that gives one value; returns it as the server writes it."""
        rows = mariadbs(connection).texts(sql)
        if len(rows) != 1 or len(rows[0]) != 1:
            raise not_one_value(len(rows), len(rows[0]) if rows else 0, sql)
        return rows[0][0]

    @contextlib.contextmanager
    def at_most(self, connection: Control, limit_s: float) -> Iterator[None]:
        """Cancel what the connection does after a while."""
        with mariadbs(connection).within(limit_s):
            yield


ENGINE = MariaDB()
