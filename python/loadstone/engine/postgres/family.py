"""PostgreSQL's answers: the base of every engine that is reached by PostgreSQL's wire protocol."""

from __future__ import annotations

import contextlib
import copy
import ipaddress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import psutil
import psycopg

from loadstone.engine import MARK, SCHEMA, not_one_value, one
from loadstone.engine.answers import Caches, Identity, Observation, ServerProcesses, Setting, Sizes
from loadstone.engine.control import CONTROL_CONNECTIONS
from loadstone.engine.observe import server, storage
from loadstone.engine.observe.remote import RemoteMachine
from loadstone.engine.observe.storage import DataFiles
from loadstone.engine.postgres import (
    connections,
    conninfo,
    durability,
    resets,
    session_settings,
    statements,
    workspace,
)
from loadstone.engine.postgres.connections import psycopgs
from loadstone.engine.wire import WireEngine
from loadstone.errors import LoadstoneError, words_of
from loadstone.sqltext import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone import model
    from loadstone.engine.answers import Durability
    from loadstone.engine.control import Control
    from loadstone.engine.observe.storage import Storage
    from loadstone.engine.postgres.connections import PostgresControl
    from loadstone.engine.postgres.sessions import Needs

WORTH_RECORDING = (
    "autovacuum", "checkpoint_completion_target", "checkpoint_timeout", "data_checksums",
    "effective_cache_size", "fsync", "full_page_writes", "huge_pages", "io_method", "jit",
    "maintenance_work_mem", "max_connections",
    "max_parallel_workers_per_gather", "max_wal_size", "min_wal_size", "random_page_cost", "server_encoding",
    "shared_buffers", "shared_preload_libraries", "synchronous_commit", "synchronous_standby_names",
    "wal_buffers", "wal_compression", "wal_level", "wal_sync_method", "work_mem",
)  # fmt: skip
"""Recorded even at their defaults, for defaults differ between versions."""

_MAY_HOLD_PASSWORDS = (
    "primary_conninfo", "ssl_passphrase_command", "archive_command", "restore_command",
    "archive_cleanup_command", "recovery_end_command",
)  # fmt: skip

_OLDEST = 100000


class PostgresFamily(WireEngine):
    """What PostgreSQL answers; its relatives override what differs."""

    name = "postgres"
    title = "PostgreSQL"
    process_names = ("postgres", "postmaster", "edb-postgres")
    schemes: tuple[str, ...] = ("postgres", "postgresql")
    embedded_prefix: str | None = "pg"
    errors: tuple[type[Exception], ...] = (psycopg.Error,)
    has_heap = True
    reset_limit_s = resets.LIMIT_S
    relatives: Mapping[str, str] = {
        "PolarDB": "PolarDB",
        "openGauss": "openGauss",
        "-YB-": "YugabyteDB",
        "CockroachDB": "CockroachDB",
        "Redshift": "Redshift",
        "Greenplum": "Greenplum",
        "EnterpriseDB": "EDB Postgres Advanced Server",
        "QuestDB": "QuestDB",
    }
    """Servers that speak the same protocol and are not this engine: sign in `version()` -> name."""
    storage_members = ""
    """SQL that adds, to the relations `tree` of a table and its partitions, what else keeps its rows."""
    function_extension = ""
    """The extension whose functions our statements, and TSBS's texts, call by bare names."""
    function_schema: str | None = None
    """Where that extension is, when it is neither in our schema nor in the catalog's."""

    @property
    def target_forms(self) -> tuple[str, ...]:
        """URLs; short names are the private servers' business."""
        return tuple(f"{scheme}://" for scheme in self.schemes)

    def resolve(self, text: str) -> tuple[model.Connection, tuple[str, ...]]:
        """Return the connection that libpq would make of a URL's rest, or of its own parameters."""
        resolved = conninfo.resolve(f"postgresql:{text}" if text.startswith("//") else text)
        return resolved.connection, resolved.notes

    def address(self, connection: model.Connection) -> str:
        """Name the server in a sentence: socket file or host and port."""
        return connections.place(connection)

    def shown_url(self, connection: model.Connection) -> str:
        """Return the URL of a database without its password and without parameters."""
        return conninfo.redacted_url(self.schemes[0], connection)

    def target_url(self, connection: model.Connection) -> str:
        """Return a URL that names the same target wherever it is given, but for its secrets."""
        return conninfo.conninfo_url(self.schemes[0], connection)

    def connect(
        self, connection: model.Connection, *, autocommit: bool = True, needs: Needs = "session"
    ) -> PostgresControl:
        """Open a control connection. Raises LoadstoneError with what is wrong and how to mend it."""
        return connections.connect(connection, autocommit=autocommit, needs=needs)

    def create_database(self, connection: model.Connection, admin: str) -> bool:
        """Create the database, unless it is there or this is no server that can be loaded."""
        try:
            control = self.connect(replace(connection, database=admin or connection.user))
        except LoadstoneError:
            return False
        with contextlib.closing(control):
            self.identify(control)
            if control.execute(statements.DATABASE, {"name": connection.database}).fetchone() is not None:
                return False
            try:
                control.execute(f"create database {quoted(connection.database)}")
            except psycopg.Error as error:
                raise LoadstoneError(
                    f"the database '{connection.database}' cannot be created: {words_of(error)}",
                    "Create it yourself, or choose another one.",
                ) from error
        return True

    def version(self, connection: Control) -> Identity:
        """Ask the server what it is."""
        row = one(connection, statements.IDENTITY)
        words, number = str(row["version"] or "").split(), row["number"]
        if not words or not isinstance(number, int):
            raise LoadstoneError(
                "the server does not say which version it is",
                "Check that a PostgreSQL server, or a relative of it, is at this address.",
            )
        return {
            "version": words[0],
            "version_text": row["version_text"],
            "version_number": number,
            "standby": row["standby"],
        }

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is, and refuse it when it is not this engine or cannot be loaded."""
        try:
            identity = self.version(connection)
        except psycopg.Error as error:
            raise LoadstoneError(
                f"the server does not answer like {self.title}: {error}",
                "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
            ) from error
        self.refuse_relatives(identity["version_text"])
        if identity["version_number"] < _OLDEST:
            raise LoadstoneError(
                f"the server is {self.title} {identity['version']}",
                "Loadstone needs version 10 or later.",
            )
        if identity["standby"]:
            raise LoadstoneError(
                "the server is a standby and accepts no writes", "Use the primary as the target."
            )
        return identity

    def postgres_version(self, identity: Identity) -> str | None:
        """Return its own version; relatives that number theirs in another way say what that is."""
        return identity["version"]

    def refuse_relatives(self, version_text: str) -> None:
        """Raise LoadstoneError when the text is that of another engine that speaks the same protocol."""
        for sign, relative in self.relatives.items():
            if sign.lower() in version_text.lower():
                raise LoadstoneError(
                    f"the server is {relative}, not {self.title}: {version_text}",
                    "Put the right engine into the URL's scheme; `loadstone engines` lists them.",
                )

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Take the schema for this run; raises LoadstoneError that says which run has it."""
        return workspace.claim(psycopgs(connection), schema, mark or MARK)

    def keeps_workspace(self, connection: Control, schema: str, mark: str) -> bool:
        """Return whether the schema still bears the run's mark, and lock it again."""
        return workspace.keeps(psycopgs(connection), schema, mark)

    def await_reset(self, connection: Control, application_name: str, lost: Control | None = None) -> None:
        """Wait until a server whose process crashed has ended all sessions, this one too."""
        pid = lost.server_pid if isinstance(lost, connections.WatchedConnection) else None
        resets.await_reset(psycopgs(connection), application_name, pid)

    def release_workspace(self, connection: Control) -> None:
        """Let go of the lock."""
        workspace.release(psycopgs(connection))

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the schema is there and marked as ours."""
        return workspace.has(psycopgs(connection), schema)

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make the schema, empty and marked as ours; refuse one with somebody else's objects in it."""
        workspace.create(psycopgs(connection), schema, replace=replace)

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the schema with everything in it, if it is ours; wait no longer than that for others."""
        if lock_wait_s is not None:
            connection.execute(f"set lock_timeout = '{lock_wait_s * 1000:.0f}ms'")
        workspace.drop(psycopgs(connection), schema)

    def connection_parameters(self, schema: str = SCHEMA) -> dict[str, str]:
        """Return the start-up parameters of sessions whose unqualified names mean the schema's objects.

        No other schema is on the search path, `public` neither: what a user has there is not ours to meet.
        Statements and rows are sent as UTF-8, whatever the role or the database has set for its sessions.
        """
        further = f",{quoted(self.function_schema)}" if self.function_schema else ""
        path = connections.option("search_path", schema + further)
        return {"options": path, "client_encoding": "UTF8"}

    def with_functions(self, connection: Control) -> Self:
        """Return the engine as it is at this server: it knows where its extension's functions are."""
        if not self.function_extension:
            return self
        row = connection.execute(statements.EXTENSION_SCHEMA, {"name": self.function_extension}).fetchone()
        if row is None or row["schema"] in (SCHEMA, "pg_catalog"):
            return self
        found = copy.copy(self)
        found.function_schema = str(row["schema"])
        return found

    def client_connection(
        self, connection: model.Connection, schema: str | None = SCHEMA
    ) -> model.Connection | None:
        """Return how the driver's clients connect."""
        return connection if schema is None else self.with_schema(connection, schema)

    def with_schema(self, connection: model.Connection, schema: str = SCHEMA) -> model.Connection:
        """Return the connection with `connection_parameters` joined to the user's own."""
        parameters = dict(connection.parameters)
        parameters.pop("search_path", None)  # the server would take it after, and in place of, ours
        for name, value in self.connection_parameters(schema).items():
            joined = f"{parameters.get(name, '')} {value}" if name == "options" else value
            parameters[name] = joined.strip()
        return replace(connection, parameters=parameters)

    def for_texts(self, control: Control, connection: model.Connection) -> model.Connection:
        """Return the connection with the forms of texts that its sessions do not have by themselves."""
        return session_settings.for_texts(control, connection)

    def settings(self, connection: Control) -> list[Setting]:
        """Read the settings that are not at their defaults, and those worth recording anyway."""
        rows = connection.execute(statements.SETTINGS, {"always": list(WORTH_RECORDING)}).fetchall()
        return [
            {
                "name": row["name"],
                "value": "***" if row["name"] in _MAY_HOLD_PASSWORDS and row["value"] else row["value"] or "",
                "source": row["source"],
            }
            for row in rows
        ]

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge the settings that decide whether a committed transaction survives a crash."""
        values = {row["name"]: row["value"] for row in self.settings(connection)}
        unlogged = one(connection, statements.UNLOGGED, {"schema": schema})
        values["unlogged tables"] = str(unlogged["count"])
        return durability.judge(values, whole_pages=self.writes_whole_pages(connection))

    def writes_whole_pages(self, connection: Control) -> bool:
        """Return whether its storage is known to write a page whole or not at all: no crash tears one."""
        del connection
        return False

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read sizes on disk and the WAL's position."""
        return server.sizes(connection, schema)

    def data_files(self, connection: Control, ours: Path | None = None) -> DataFiles:
        """Return where the server's files really are; `ours` is its data directory when it is known."""
        if ours is not None:
            return DataFiles(ours)
        found = self.server_pids(connection)
        return storage.data_directory_of(connection, found.pid, found.reason)

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for every byte of tables in the schema, once all of them are written to the disk."""
        refused = self.checkpoint(connection)
        files = self.data_files(connection, data_directory)
        looked = storage.look(connection, schema, tables, files, members=self.storage_members)
        if refused is not None:
            looked.notes.insert(0, f"bytes in memory were not yet on disk: {refused}")
        return looked

    def counters(self, connection: Control) -> Observation:
        """Read the cumulative counters of monitor.jsonl, as they are."""
        statement = statements.counters(psycopgs(connection).info.server_version)
        return server.observe(lambda: connection.execute(statement).fetchone())

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read the momentary figures of monitor.jsonl."""
        return server.observe(lambda: connection.execute(statements.GAUGES, {"schema": schema}).fetchone())

    def waits(self, connection: Control) -> Observation:
        """Count the active sessions by what they wait for (`LWLock:WALWrite`)."""
        if not one(connection, statements.SEES_ALL_SESSIONS, column=True):
            return Observation(
                None, "the server shows what sessions wait for only to members of pg_read_all_stats"
            )

        def read() -> dict[str, Any]:
            return {row["wait"]: row["sessions"] for row in connection.execute(statements.WAITS)}

        return server.observe(read)

    def remote_machine(self, connection: Control) -> RemoteMachine | None:
        """Return what tells how a machine fares on which we cannot see the server ourselves."""
        return None if self.server_pids(connection).pid is not None else RemoteMachine(connection)

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Find the server's first process when the server is on this machine; its children are the rest."""
        row = one(connection, statements.BACKEND)
        address = psycopgs(connection).info.hostaddr
        if not row["by_socket"] and not _is_loopback(address):
            return ServerProcesses(None, f"the server is reached at {address}, not on this machine")
        try:
            parent = psutil.Process(row["pid"]).parent()
            if parent is None or "postgres" not in parent.name():
                return ServerProcesses(None, "the server's processes cannot be seen from here (a container?)")
        except psutil.Error as error:
            return ServerProcesses(None, f"the server's processes are not visible from here: {error}")
        return ServerProcesses(parent.pid)

    def backend_pid(self, connection: Control) -> int | None:
        """Return the process that serves this session."""
        return int(one(connection, statements.BACKEND)["pid"])

    def cancel(self, connection: Control, application_name: str) -> int:
        """End the sessions of our user that bear this name, with what they still do; returns how many."""
        return int(one(connection, statements.CANCEL, {"name": application_name}, column=True))

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require: plain words, and `extension:NAME` for each on the server."""
        words = {"sql", "generate_series", "unlogged", "copy", "md5", "fillfactor", "parallel query"}
        words |= {"load", "query", "time series", *(f"load:{method}" for method in self.series.methods)}
        words |= self.tables.offers(connection)
        words |= {row["lanname"] for row in connection.execute(statements.LANGUAGES)}
        methods, ours = {row["amname"] for row in connection.execute(statements.ACCESS_METHODS)}, self.tables
        words |= methods if ours.index_methods is None else methods.intersection(ours.index_methods)
        words |= {f"extension:{row['name']}" for row in connection.execute(statements.EXTENSIONS)}
        return frozenset(words)

    def checkpoint(self, connection: Control) -> str | None:
        """Have all changed pages written; returns why it could not be done, or None."""
        try:
            connection.execute("checkpoint")
        except psycopg.errors.InsufficientPrivilege as error:
            return f"a checkpoint failed: {error.diag.message_primary}"
        return None

    def flush_caches(self, connection: Control) -> Caches:
        """Empty the server's caches as far as SQL can, and say how far that is."""
        connection.execute("discard all")
        rest = (
            "; the operating system does not cache the files, because they are read with O_DIRECT"
            if self.data_files(connection).direct
            else ", and the operating system keeps its own cache of the files"
        )
        return {
            "emptied": False,
            "note": f"{self.title} cannot empty its shared buffers while it runs; only a restart does{rest}",
            "restart_would_help": True,
        }

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Raise LoadstoneError when the server has no room for that many more connections.

        The connection that asks is counted as used; the run needs that one and another for watching.
        """
        row = one(connection, statements.ROOM)
        free = int(row["allowed"]) - int(row["used"]) - 1
        free -= 0 if row["superuser"] else int(row["reserved"])
        if free < clients:
            raise LoadstoneError(
                f"{clients} clients are requested, but the server can accept only {max(free, 0)} "
                f"(max_connections {row['allowed']}, in use {row['used']}, reserved {row['reserved']})",
                f"Use fewer clients, or set max_connections to {row['allowed'] + clients - free} or more.",
            )
        for holder in ("role", "database"):
            limit = row[f"{holder}_limit"]
            if limit is not None and limit < clients + CONTROL_CONNECTIONS:
                raise LoadstoneError(
                    f"{clients} clients are requested, but the {holder} may have only {limit} connections",
                    f"Use fewer clients, or raise the limit: alter {holder} … connection limit …",
                )

    def refuse_read_only(self, connection: Control) -> None:
        """Raise LoadstoneError when sessions like this one are read-only by default."""
        session_settings.refuse_read_only(connection)

    def refuse_encoding(self, connection: Control) -> None:
        """Raise LoadstoneError when the database converts texts, with how to mend that."""
        session_settings.refuse_encoding(connection)

    def with_settings(self, connection: model.Connection, settings: Mapping[str, str]) -> model.Connection:
        """Return the connection with settings that every session of ours sends; refuse what it cannot set."""
        return session_settings.with_settings(connection, settings, self.connect)

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the plan as EXPLAIN writes it, without running the query."""
        rows = connection.execute(f"explain {sql}").fetchall()
        return "\n".join(str(next(iter(row.values()))) for row in rows)

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a statement that gives one value; returns it as the server writes it (psql shows the same)."""
        result = psycopgs(connection).execute(sql).pgresult
        if result is None or (result.ntuples, result.nfields) != (1, 1):
            raise not_one_value(*((result.ntuples, result.nfields) if result else (0, 0)), sql)
        value = result.get_value(0, 0)
        return None if value is None else value.decode(errors="replace")

    @contextlib.contextmanager
    def at_most(self, connection: Control, limit_s: float) -> Iterator[None]:
        """Cut the connection after a while: libpq itself waits for ever for a server that is stuck."""
        with connections.within(psycopgs(connection), limit_s):
            yield


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
