"""DuckDB: a library in our own process that keeps columns in one file."""

from __future__ import annotations

import os
import re
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from loadstone.engine import SCHEMA, one
from loadstone.engine.answers import Caches, Observation, ServerProcesses, sized, version_number
from loadstone.engine.library.engine import LibraryEngine, Place, only_value
from loadstone.engine.observe.storage import Storage, allocated_bytes, table_storage
from loadstone.engines.duckdb.database import PINNED, SCHEMAS, DuckDatabase, duck, refuse_ambiguous, run, use
from loadstone.engines.duckdb.library import opened
from loadstone.engines.duckdb.tables import DuckTables
from loadstone.engines.duckdb.timeseries import BLOCKS, DuckSeries
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, qualified, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from loadstone import _core
    from loadstone.engine.answers import Durability, Identity, RelationSize, Setting, Sizes
    from loadstone.engine.control import Control
    from loadstone.engine.observe.storage import TableStorage
    from loadstone.engines.duckdb.database import DuckControl

MARK = "made_by_loadstone"
"""A view of this name marks a schema as ours: schemas take no comments."""

_WORTH_RECORDING = (
    "auto_checkpoint_skip_wal_threshold", "checkpoint_threshold", "default_block_size",
    "enable_optimistic_write", "fsync_mode", "immediate_transaction_mode", "memory_limit",
    "preserve_insertion_order", "storage_compatibility_version", "temp_directory", "threads",
    "write_buffer_row_group_count", "write_buffer_row_group_memory_limit",
)  # fmt: skip
_SECRET = re.compile("password|secret_directory|proxy")

_IDENTITY = """
select library_version as version, codename, source_id, (select platform from pragma_platform()) as platform
from pragma_version()
"""
_READ_ONLY = "select readonly from duckdb_databases() where database_name = current_database()"
_SETTINGS = "select name, value from duckdb_settings() order by name"
_OBJECTS = """
select 'table' as kind, table_name as name from duckdb_tables() where schema_name = $schema
    and database_name = current_database()
union all select 'view', view_name from duckdb_views() where schema_name = $schema
    and database_name = current_database() and not internal
union all select 'sequence', sequence_name from duckdb_sequences() where schema_name = $schema
    and database_name = current_database()
union all select 'function', function_name from duckdb_functions() where schema_name = $schema
    and database_name = current_database() and not internal
union all select 'type', type_name from duckdb_types() where schema_name = $schema
    and database_name = current_database() and not internal
"""
_TABLES = """
select table_name as name, estimated_size as rows from duckdb_tables()
where schema_name = $schema and database_name = current_database()
"""
_INDEXES = """
select index_name as name from duckdb_indexes() where schema_name = $schema and table_name = $table
    and database_name = current_database() order by 1
"""
_SPACE = """
select block_size, used_blocks, free_blocks from pragma_database_size()
where database_name = current_database()
"""
_GAUGES = """
select sum(memory_usage_bytes)::bigint as memory_bytes,
       sum(temporary_storage_bytes)::bigint as temporary_bytes,
       (select count from duckdb_connection_count()) as connections
from duckdb_memory()
"""
_EXTENSIONS = "select extension_name as name from duckdb_extensions() where loaded or installed"


class DuckDB(LibraryEngine):
    """DuckDB, as its Python package brings it."""

    name = "duckdb"
    title = "DuckDB"
    schemes = ("duckdb",)
    in_process = True
    reaches_beyond_schema = True
    sets_sessions = True
    errors = (duckdb.Error,)
    status = "verified against DuckDB 2.0, on Linux"
    series = DuckSeries()
    tables = DuckTables()

    @property
    def target_forms(self) -> tuple[str, ...]:
        """A private file, the user's own, memory."""
        return ("duckdb:", "duckdb:/path/file.duckdb", "duckdb::memory:")

    def place(self, text: str) -> Place:
        """Understand what follows `duckdb:`; a file need not exist, its folder must."""
        text = text.removeprefix("//")
        if not text:
            return Place("duckdb", "a private file", "duckdb:", needs_folder=True, private=True)
        if text == ":memory:":
            return Place("duckdb-memory", "in memory", "duckdb::memory:", private=True)
        path = Path(text).expanduser()
        if path.is_dir() or text.endswith("/"):
            raise LoadstoneError(f"'{path}' is a folder", "Name a file: duckdb:/path/file.duckdb.")
        if not path.parent.is_dir():
            raise LoadstoneError(
                f"the folder '{path.parent}' does not exist", f"Create it first: mkdir -p {path.parent}"
            )
        return Place(f"duckdb-{path.stem}", f"file {path}", f"duckdb:{path}", path=path)

    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> DuckDatabase:
        """Open the database; a file that is not there is made."""
        path = folder / "private.duckdb" if folder is not None else place.path
        return DuckDatabase(path, folder, settings)

    def control(self, connection: Control) -> DuckControl:
        """Return a control connection as DuckDB's own."""
        return duck(connection)

    def version(self, connection: Control) -> Identity:
        """Ask the library what it is."""
        row = one(connection, _IDENTITY)
        version = str(row["version"]).removeprefix("v")
        build = f"({row['codename']}) {row['source_id']}, {row['platform']}"
        return {
            "version": version,
            "version_text": f"DuckDB {row['version']} {build}",
            "version_number": version_number(version),
            "standby": False,
        }

    def refuse_read_only(self, connection: Control) -> None:
        """Refuse a file that this process may read only, or whose folder takes no write-ahead log."""
        path = duck(connection).database.path
        if one(connection, _READ_ONLY)["readonly"]:
            raise LoadstoneError(f"the file '{path}' would be opened read-only", "Remove access_mode.")
        if path is not None and not os.access(path.parent, os.W_OK):
            raise LoadstoneError(
                f"the folder '{path.parent}' is not writable, and DuckDB writes its write-ahead log there",
                "Make it writable (chmod u+w), or use a file elsewhere.",
            )

    def claim_workspace(self, connection: Control, schema: str = SCHEMA, mark: str = "") -> bool:
        """Say yes: DuckDB holds a lock on the file, and a run opens a file once."""
        del connection, schema, mark
        return True

    def has_workspace(self, connection: Control, schema: str = SCHEMA) -> bool:
        """Return whether the schema is there and marked as ours."""
        return MARK in _objects(connection, schema)

    def create_workspace(self, connection: Control, schema: str = SCHEMA, *, replace: bool = False) -> None:
        """Make the schema, empty and marked as ours; refuse one with somebody else's objects in it."""
        refuse_ambiguous(connection, schema)
        found = _objects(connection, schema)
        if found and MARK not in found and not replace:
            raise LoadstoneError(
                f"the schema '{schema}' contains {len(found)} objects that Loadstone did not create",
                "Use another file, or add --replace to drop that schema with everything in it.",
            )
        own = duck(connection).connection
        run(own, "begin")
        try:
            run(own, f"drop schema if exists {quoted(schema)} cascade")
            run(own, f"create schema {quoted(schema)}")
            run(own, f"create view {qualified(schema, MARK)} as select 'and dropped with all' as note")
            run(own, "commit")
        except duckdb.Error:
            run(own, "rollback")
            raise
        use(own, schema)

    def drop_workspace(
        self, connection: Control, schema: str = SCHEMA, *, lock_wait_s: float | None = None
    ) -> None:
        """Drop the schema with everything in it, if it is ours; nobody holds locks for which to wait."""
        del lock_wait_s
        if not one(connection, SCHEMAS, {"schema": schema})["n"]:
            return
        if MARK not in _objects(connection, schema):
            raise LoadstoneError(
                f"the schema '{schema}' is not marked as created by Loadstone and was not dropped",
                "Drop it yourself if nobody needs it.",
            )
        own = duck(connection).connection
        use(own, "main")
        run(own, f"drop schema {quoted(schema)} cascade")

    def settings(self, connection: Control) -> list[Setting]:
        """Read the settings that are not at their defaults, and those worth recording anyway."""
        given = duck(connection).database.settings
        found: list[Setting] = []
        for row in connection.execute(_SETTINGS):
            name, value = row["name"], row["value"]
            changed = value != _defaults().get(name)
            if not changed and name not in _WORTH_RECORDING:
                continue
            source = "Loadstone" if name in PINNED else "--setting" if name in given else "database"
            shown = "***" if _SECRET.search(name) and value else value or ""
            found.append({"name": name, "value": shown, "source": source if changed else "default"})
        return found

    def durability(self, connection: Control, schema: str = SCHEMA) -> list[Durability]:
        """Judge the settings that decide whether a committed transaction survives a crash."""
        del schema
        if duck(connection).database.path is None:
            why = "nothing is written to disk: all data are gone when the process ends"
            return [{"setting": "database", "value": ":memory:", "durable": False, "why": why}]
        values = {row["name"]: row["value"] for row in connection.execute(_SETTINGS)}
        forced = values["fsync_mode"] != "NONE"
        return [
            {
                "setting": "fsync_mode",
                "value": values["fsync_mode"],
                "durable": forced,
                "why": "a commit is acknowledged after its WAL, or a large append's blocks, are on disk"
                if forced
                else "nothing is synced to disk: a crash of the machine can destroy the whole database",
            },
            {
                "setting": "checkpoint_threshold",
                "value": values["checkpoint_threshold"],
                "durable": True,
                "why": "when the WAL has that size, a commit writes it into the file; until then a crash "
                "is recovered from the WAL",
            },
        ]

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read the file's size with its WAL, and how many of its blocks each table's columns take."""
        database = duck(connection).database
        if database.path is None:
            return sized(None, None, [])
        space = one(connection, _SPACE)
        block, used = int(space["block_size"]), int(space["used_blocks"])
        relations: list[RelationSize] = []
        for row in connection.execute(_TABLES, {"schema": schema}).fetchall():
            table = literal(f"{quoted(schema)}.{quoted(row['name'])}")
            blocks = int(one(connection, BLOCKS.format(table=table))["blocks"])
            relations.append(_relation(row["name"], "table", blocks * block, row["rows"]))
            used -= blocks
        wal = _bytes_of(database.wal)
        rest = {
            "(indexes, metadata)": max(0, used) * block,
            "(free blocks)": int(space["free_blocks"]) * block,
            "(write-ahead log)": wal,
        }
        relations += [_relation(name, "other", size, None) for name, size in rest.items() if size]
        relations.sort(key=lambda relation: -relation["bytes"])
        return sized(_bytes_of(database.path) + wal, None, relations)

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for the blocks of tables' columns; all tables, indexes and their WAL share one file."""
        del data_directory
        database = duck(connection).database
        if database.path is None:
            return Storage([], ["an in-memory database has no bytes on disk"])
        refused = self.checkpoint(connection)
        space = one(connection, _SPACE)
        block = int(space["block_size"])
        allocated = allocated_bytes(database.path, database.wal)
        found = [self._table(connection, schema, name, block) for name in tables]
        notes = [
            ("DuckDB does not show the size of an index, and stores long values together with the others")
        ]
        if len(found) == 1:
            found[0]["free_bytes"] = int(space["free_blocks"]) * block
            found[0]["allocated_bytes"] = allocated
            found[0]["shared_file"] = True
            notes.append("tables, indexes and WAL share one file: its free space is not that of a table")
        else:
            notes.append("free and allocated bytes cannot be divided by table: all tables share one file")
        return Storage(found, [*([refused] if refused else []), *notes])

    def _table(self, connection: Control, schema: str, name: str, block: int) -> TableStorage:
        place = literal(f"{quoted(schema)}.{quoted(name)}")
        blocks = int(one(connection, BLOCKS.format(table=place))["blocks"])
        names = {"schema": schema, "table": name}
        indexes = [row["name"] for row in connection.execute(_INDEXES, names).fetchall()]
        return table_storage(name, blocks * block, indexes=[(index, None) for index in indexes])

    def gauges(self, connection: Control, schema: str = SCHEMA) -> Observation:
        """Read what memory and temporary files it takes, and how long the WAL is."""
        del schema
        row = one(connection, _GAUGES)
        return Observation({**row, "wal_file_bytes": _bytes_of(duck(connection).database.wal)})

    def server_pids(self, connection: Control) -> ServerProcesses:
        """Say that there is no server."""
        del connection
        return ServerProcesses(
            None,
            "DuckDB runs in Loadstone's own process: its CPU time and memory count as the client's",
        )

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require."""
        words = {"sql", "generate_series", "load", "query", "time series"}
        words |= {f"load:{method}" for method in self.series.methods} | self.tables.offers(connection)
        return frozenset(
            words | {f"extension:{row['name']}" for row in connection.execute(_EXTENSIONS).fetchall()}
        )

    def checkpoint(self, connection: Control) -> str | None:
        """Write the WAL into the file."""
        try:
            connection.execute("checkpoint")
        except duckdb.TransactionException as error:
            return f"a checkpoint failed: {error}"
        return None

    def flush_caches(self, connection: Control) -> Caches:
        """Close and open the database; its connections live on."""
        database = duck(connection).database
        if database.path is None:
            return {"emptied": False, "note": "an in-memory database has no caches to empty"}
        database.reopen()
        note = "the file was closed and opened again, and the system was asked to drop it from the page cache"
        return {"emptied": True, "note": note}

    def refuse_too_many_clients(self, connection: Control, clients: int) -> None:
        """Refuse none: connections are objects of this process."""

    def text_value(self, connection: Control, sql: str) -> str | None:
        """Run a query that gives one value; returns it as DuckDB writes it, None for null."""
        text = f"select cast(columns(*) as varchar) from (\n{sql}\n)"  # noqa: S608 - the scenario's own
        found = self.answer(connection, text)
        return only_value(found, sql)

    def answer(self, connection: Control, sql: str) -> pa.Table:
        """Run a query and return its whole answer."""
        return duck(connection).answer(sql)

    def query_clients(self, connection: Control) -> _core.NativeLibrary:
        """Return the core's own clients: Python's lock is not taken for their queries."""
        return duck(connection).database.clients()

    def explain(self, connection: Control, sql: str) -> str | None:
        """Return the physical plan as EXPLAIN draws it, without running the query."""
        found = self.answer(connection, f"explain {sql}")
        return "\n".join(str(drawn) for drawn in found.column("explain_value").to_pylist())


def _objects(connection: Control, schema: str) -> Sequence[str]:
    return [row["name"] for row in connection.execute(_OBJECTS, {"schema": schema})]


@cache
def _defaults() -> Mapping[str, str]:
    with closing(opened(None, {})) as fresh, closing(fresh.connect()) as connection:
        return {row["name"]: row["value"] for row in run(connection, _SETTINGS)}


def _relation(name: str, kind: str, size: int, rows: int | None) -> RelationSize:
    return {"name": name, "kind": kind, "table": name, "bytes": size, "rows_estimate": rows}


def _bytes_of(path: Path | None) -> int:
    # Never opened: closing a file lets go of all locks that this process has on it, DuckDB's too.
    try:
        return path.stat().st_size if path is not None else 0
    except FileNotFoundError:
        return 0


ENGINE = DuckDB()
