"""cstore_fdw: columns in files of their own, reached as foreign tables of an older PostgreSQL.

Rows come in by COPY, or INSERT … SELECT, one load of a table at a time, and are never changed. The files are
written and synced as the statement ends: a transaction that is rolled back leaves its rows there.
Source: README and cstore_fdw.c of citusdata/cstore_fdw 1.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.engine import SCHEMA
from loadstone.engine.dialect.tables import USUAL, TableDialect, TableSize
from loadstone.engine.dialect.timeseries import USUAL as USUAL_SERIES
from loadstone.engine.dialect.timeseries import TableSize as SeriesSize
from loadstone.engine.dialect.timeseries import TimeSeriesDialect
from loadstone.engine.observe import storage
from loadstone.engine.postgres.extension import ExtensionFamily
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loadstone.engine import Sizes
    from loadstone.engine.answers import RelationSize
    from loadstone.engine.control import Control
    from loadstone.engine.dialect import timeseries
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.engine.dialect.timeseries import Dataset, Table
    from loadstone.engine.observe.storage import Storage
    from loadstone.model import LoadMethod, PlainTable, SeriesTables, TableForm, ToastCompression
    from loadstone.sqltext import Qualified

SERVER = "cstore_server"
"""The foreign server, by the name that the manual gives it."""

_METHODS: tuple[LoadMethod, ...] = ("copy_binary", "copy_text")
_KEEPING = f" server {SERVER} options (compression 'pglz')"
_DROP = """
do $$
begin
  if exists (select from pg_foreign_table where ftrelid = to_regclass({table})) then
    drop foreign table {qualified} cascade;
  else
    drop table if exists {qualified} cascade;
  end if;
end $$
"""
_SIZE = """
select case when f.ftrelid is null then pg_table_size(c.oid) else cstore_table_size(c.oid::regclass) end
       as table_bytes, pg_indexes_size(c.oid) as index_bytes
from pg_class c left join pg_foreign_table f on f.ftrelid = c.oid where c.oid = {table}::regclass
"""
_FOREIGN = """
select c.relname as name, c.oid::bigint as oid, cstore_table_size(c.oid::regclass) as bytes,
       case when c.reltuples > 0 then c.reltuples::bigint end as rows_estimate,
       format('cstore_fdw/%%s/%%s', d.oid, coalesce(nullif(c.relfilenode, 0), c.oid)) as file
from pg_foreign_table f join pg_class c on c.oid = f.ftrelid join pg_namespace n on n.oid = c.relnamespace
     join pg_foreign_server s on s.oid = f.ftserver join pg_foreign_data_wrapper w on w.oid = s.srvfdw
     join pg_database d on d.datname = current_database()
where n.nspname = %(schema)s and w.fdwname = 'cstore_fdw' order by bytes desc, name
"""
_LOOK = """
select (select setting from pg_settings where name = 'shared_preload_libraries') as libraries,
       (select w.fdwname from pg_foreign_server s join pg_foreign_data_wrapper w on w.oid = s.srvfdw
        where s.srvname = %(server)s) as wrapper
"""
_OPTIONS = (
    (
        "rows of a transaction that is rolled back remain in cstore_fdw's files: an interrupted load "
        "cannot be resumed"
    ),
    "the files are not part of the WAL: a standby does not have them",
)


class CstoreSeries(TimeSeriesDialect):
    """Tables of rows are foreign ones, without indexes or partitions; that of the devices is PostgreSQL's."""

    title = "cstore_fdw"
    relation = "foreign table"
    keeping = _KEEPING
    methods = _METHODS
    ledger = False

    def drop(self, name: str) -> str:
        """Return the statement that drops a table of either kind, if it is there."""
        return _drop(self.qualified(name))

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: timeseries.TableFacts
    ) -> Iterator[str]:
        """Yield the statement that makes one foreign table."""
        del where
        columns = self.columns(table, dataset, options)
        yield f"create foreign table {self.qualified(table['name'])} ({columns}){self.keeping}"

    def notes(self, options: SeriesTables, where: timeseries.TableFacts = USUAL_SERIES) -> tuple[str, ...]:
        """Say which options have no meaning here."""
        del where
        found = [
            (
                "foreign tables have no indexes: blocks of columns are skipped by their minimum and "
                "maximum values"
            )
        ]
        if options.chunk_time_s is not None or options.hash_partitions:
            found.append("a table is one file: it has no partitions")
        return (*found, *_OPTIONS)

    def size(self, control: Control, table: str) -> timeseries.TableSize:
        """Read what a table takes on disk."""
        found = _size(control, self.qualified(table))
        return SeriesSize(found.table_bytes, found.index_bytes)


class CstoreTables(TableDialect):
    """Each table is a foreign one."""

    title = "cstore_fdw"
    relation = "foreign table"
    keeping = _KEEPING
    methods = _METHODS
    forms: tuple[TableForm, ...] = ("default", "columnar")
    index_methods: tuple[str, ...] | None = ()
    compressions: tuple[ToastCompression, ...] = ()
    ledger = False
    parallel = False
    splits = False
    tablespaces = False

    def drop(self, name: str) -> str:
        """Return the statement that drops a table of either kind, if it is there."""
        return _drop(self.qualified(name))

    def after_load(self, table: RowTable, options: PlainTable) -> tuple[str, ...]:
        """Do nothing: the files are whole when COPY has ended."""
        del table, options
        return ()

    def settle(self, options: PlainTable) -> tuple[str, ...]:
        """Return what gives the planner its statistics; nothing is to be vacuumed."""
        return (f"analyze {self.qualified(options.name)}",)

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what the files do not have of a table."""
        del options, where
        return _OPTIONS

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes on disk."""
        return _size(control, self.qualified(table))


class CstoreFdw(ExtensionFamily):
    """cstore_fdw 1.6 and later on PostgreSQL 10 to 13, the last it was made for."""

    name = "cstore_fdw"
    title = "cstore_fdw"
    schemes: tuple[str, ...] = ("cstore-fdw", "cstore")
    status = "verified against cstore_fdw 1.7 on PostgreSQL 11, on Linux"
    extension = "cstore_fdw"
    function_extension = "cstore_fdw"
    oldest = (1, 6)
    servers = (10, 13)
    needs = (
        "PostgreSQL 10 to 13 with cstore_fdw (citusdata/cstore_fdw) in shared_preload_libraries; in the "
        "database, by a superuser: create extension cstore_fdw schema public; create server "
        f"{SERVER} foreign data wrapper cstore_fdw"
    )
    series = CstoreSeries()
    tables = CstoreTables()

    def installed(self, connection: Control) -> str:
        """Return the version of the extension; one that is not loaded, or has no server, is refused."""
        version = super().installed(connection)
        row = connection.execute(_LOOK, {"server": SERVER}).fetchone() or {}
        if row.get("libraries") is not None and "cstore_fdw" not in row["libraries"]:
            raise LoadstoneError(
                f"cstore_fdw {version} is in the database but not loaded: COPY would not write to its tables",
                "Put cstore_fdw into shared_preload_libraries and restart the server.",
            )
        if row.get("wrapper") != "cstore_fdw":
            raise LoadstoneError(
                f"the database does not have cstore_fdw's foreign server {SERVER}",
                f"As a superuser, run there: create server {SERVER} foreign data wrapper cstore_fdw.",
            )
        return version

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require; no INSERT of rows in the statement."""
        return super().capabilities(connection) - {"load:insert", "unlogged"}

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read sizes on disk, with the files that PostgreSQL does not count."""
        found = super().sizes(connection, schema)
        ours = [_relation(row) for row in _foreign(connection, schema)]
        if found["database_bytes"] is not None:
            found["database_bytes"] += sum(relation["bytes"] for relation in ours)
        relations = sorted([*ours, *found["relations"]], key=lambda relation: -relation["bytes"])
        return {**found, "relations": relations}

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for every byte of tables in the schema: those of cstore_fdw are two files each."""
        looked = super().storage(connection, tables, data_directory, schema)
        folder = self.data_files(connection, data_directory).folder
        foreign = {row["name"]: row for row in _foreign(connection, schema)}
        for table in looked.tables:
            row = foreign.get(table["name"])
            if row is not None:
                table["heap_bytes"], table["free_bytes"] = int(row["bytes"]), None
                table["allocated_bytes"] = None if folder is None else _allocated(folder / row["file"])
        return looked


def _drop(table: Qualified) -> str:
    return _DROP.format(table=literal(table), qualified=table).strip()


def _size(control: Control, table: Qualified) -> TableSize:
    row = control.execute(_SIZE.format(table=literal(table))).fetchone() or {}
    return TableSize(int(row["table_bytes"]), int(row["index_bytes"]), 0)


def _foreign(control: Control, schema: str) -> list[dict[str, Any]]:
    return control.execute(_FOREIGN, {"schema": schema}).fetchall()


def _relation(row: dict[str, Any]) -> RelationSize:
    return {
        "name": row["name"],
        "kind": "table",
        "table": row["name"],
        "bytes": int(row["bytes"]),
        "rows_estimate": row["rows_estimate"],
    }


def _allocated(path: Path) -> int | None:
    """Return the allocated bytes of a table's two files; None when we may not look."""
    try:
        return storage.allocated_bytes(path, path.with_name(f"{path.name}.footer"))
    except PermissionError:
        return None


ENGINE = CstoreFdw()
