"""TimescaleDB: PostgreSQL with hypertables and a column store for what is old."""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loadstone.engine.dialect import tables
from loadstone.engine.dialect.tables import TableDialect
from loadstone.engine.dialect.timeseries import (
    USUAL,
    Compression,
    TableFacts,
    TableSize,
    TimeSeriesDialect,
    common_notes,
    device_column,
    index_keys,
)
from loadstone.engine.postgres.extension import number_of, postgres_number
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine import Identity
    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.engine.dialect.timeseries import Dataset, Table
    from loadstone.model import PlainTable, SeriesTables, TableForm

_LOOK = """
select (select default_version from pg_available_extensions where name = 'timescaledb') as available,
       (select extversion from pg_extension where extname = 'timescaledb') as installed,
       current_setting('timescaledb.telemetry_level', true) as telemetry,
       current_setting('timescaledb.disable_load', true) as loader
"""
# What a chunk is compressed into is in a table of its own, which inherits from nothing of the user's.
_COMPRESSED_CHUNKS = """
union
select format('%%I.%%I', k.schema_name, k.table_name)::regclass::oid
from tree t join pg_class c on c.oid = t.oid join pg_namespace n on n.oid = c.relnamespace
join _timescaledb_catalog.chunk u on u.schema_name = n.nspname and u.table_name = c.relname
join _timescaledb_catalog.chunk k on k.id = u.compressed_chunk_id
"""
_OLDEST = (2, 18)
"""Since then compression goes by the name of columnstore; hypertables have dimensions since 2.13."""

# A chunk to be compressed is named by regclass text, each in a transaction of its own.
_COMPRESS = """
do $$
declare chunk regclass;
begin
  for chunk in select show_chunks({table}::regclass) loop
    call convert_to_columnstore(chunk, if_not_columnstore => true);
    commit;
  end loop;
end $$
"""


_SPANS = {
    "int16": "10000",
    "int32": "1000000000",
    "int64": "1000000000000000",
    "date": "interval '36500 days'",
    "timestamp": "interval '36500 days'",
}
"""What can be a hypertable's dimension, and a chunk so wide that there are few."""
_IS_HYPERTABLE = """
select 1 as found from pg_extension e where e.extname = 'timescaledb' and exists (
    select from _timescaledb_catalog.hypertable
    where schema_name = {schema} and table_name = {table})
"""


class TimescaleSeries(TimeSeriesDialect):
    """Hypertables in today's form, and their columnstore."""

    title = "TimescaleDB"

    def refuse(self, control: Control) -> None:
        """Refuse a server without the extension, or with one that is too old."""
        row = control.execute(_LOOK).fetchone() or {}
        version = row.get("installed") or row.get("available")
        if version is None:
            raise LoadstoneError(
                "the server does not have TimescaleDB: the files of the extension are not installed",
                "Install it, use another target, or load into plain tables with --use-hypertable=false.",
            )
        if row["loader"] is None:
            raise LoadstoneError(
                f"TimescaleDB {version} is installed on the server but not loaded",
                "Put timescaledb into shared_preload_libraries and restart the server.",
            )
        if number_of(version) < _OLDEST:
            raise LoadstoneError(
                f"the server has TimescaleDB {version}",
                f"Loadstone needs {'.'.join(map(str, _OLDEST))} or later.",
            )

    def tables(self, dataset: Dataset, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statements that make the tables; the extension comes first."""
        return ("create extension if not exists timescaledb", *super().tables(dataset, options, where))

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: TableFacts
    ) -> Iterator[str]:
        """Yield the statements that make one hypertable with its dimensions and indexes."""
        del where
        device, name = device_column(dataset, options), self.qualified(table["name"])
        yield f"create table {name} ({self.columns(table, dataset, options)})"
        yield from (f"create index on {name} {keys}" for keys in index_keys(table, options, device))
        span = "" if options.chunk_time_s is None else f", interval '{options.chunk_time_s:g} seconds'"
        by_range = f"by_range('time'{span})"
        yield f"select create_hypertable({literal(name)}, {by_range}, create_default_indexes => false)"
        if options.hash_partitions:
            by_hash = f"by_hash({literal(device)}, {options.hash_partitions})"
            yield f"select add_dimension({literal(name)}, {by_hash})"

    def after_load(self, dataset: Dataset, options: SeriesTables) -> tuple[str, ...]:
        """Compress as wished, then what PostgreSQL does."""
        device = quoted(device_column(dataset, options))
        tables = [self.qualified(table["name"]) for table in dataset["tables"]]
        found: list[str] = []
        if options.compress or options.compress_after_s is not None:
            found += [
                f"alter table {table} set (timescaledb.enable_columnstore, "
                f"timescaledb.segmentby = {literal(device)}, timescaledb.orderby = 'time desc')"
                for table in tables
            ]
        if options.compress:
            found += [_COMPRESS.format(table=literal(table)).strip() for table in tables]
        if options.compress_after_s is not None:
            after = f"interval '{options.compress_after_s:g} seconds'"
            found += [
                f"call add_columnstore_policy({literal(table)}, after => {after}, if_not_exists => true)"
                for table in tables
            ]
        return (*found, *super().after_load(dataset, options))

    def notes(self, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is done otherwise than asked."""
        del where
        found = list(common_notes(options))
        if options.chunk_time_s is None:
            found.append(
                "a hypertable is always partitioned by time: without a chunk time, by TimescaleDB's default"
            )
        found.append(
            "TimescaleDB reports usage to its vendor unless timescaledb.telemetry_level is off; "
            "Loadstone does not change that setting"
        )
        return tuple(found)

    def bucket(self, width: str, column: str) -> str:
        """Return TimescaleDB's own function."""
        return f"time_bucket({literal(width)}, {column})"

    def size(self, control: Control, table: str) -> TableSize:
        """Read the size of a hypertable with its chunks, compressed ones too."""
        statement = f"select * from hypertable_detailed_size({literal(self.qualified(table))}::regclass)"
        row = control.execute(statement).fetchone()
        if row is None:
            return super().size(control, table)
        return TableSize(int(row["table_bytes"]) + int(row["toast_bytes"]), int(row["index_bytes"]))

    def compression(self, control: Control, table: str) -> Compression | None:
        """Read what TimescaleDB says of the columnstore; None while no chunk is in it."""
        statement = f"select * from hypertable_columnstore_stats({literal(self.qualified(table))}::regclass)"
        row = control.execute(statement).fetchone()
        if row is None or not row["number_compressed_chunks"]:
            return None
        return Compression(
            int(row["before_compression_total_bytes"]), int(row["after_compression_total_bytes"])
        )

    def strays(self, control: Control, table: str) -> int | None:
        """Chunks are made as rows come: none are outside."""
        del control, table
        return None


class TimescaleTables(TableDialect):
    """Plain tables as PostgreSQL's; as columns, a hypertable whose chunks all go into the columnstore."""

    title = "TimescaleDB"
    forms: tuple[TableForm, ...] = ("default", "columnar")

    def is_columnar(self, options: PlainTable) -> bool:
        """Return whether the table is to be a hypertable in the columnstore."""
        return options.form == "columnar"

    def create(
        self, table: RowTable, options: PlainTable, where: tables.TableFacts = tables.USUAL
    ) -> tuple[str, ...]:
        """Return the statements that make the table, or the hypertable; a chunk is a partition."""
        if not self.is_columnar(options):
            return super().create(table, options, where)
        self.refuse_options(table, options, where)
        column, span = _dimension(table), _chunk(table, options, where)
        name = self.qualified(options.name)
        dimension = f"by_range({literal(column)}, {span})"
        unsplit = replace(options, form="default", partition_rows=0, partition_column="")
        return (
            "create extension if not exists timescaledb",
            *super().create(table, unsplit, where),
            f"alter table {name} alter column {quoted(column)} set not null",
            f"select create_hypertable({literal(name)}, {dimension}, create_default_indexes => false)",
        )

    def indexes(
        self,
        table: RowTable,
        options: PlainTable,
        where: tables.TableFacts = tables.USUAL,
        *,
        again: bool = False,
    ) -> tuple[str, ...]:
        """Return the statements that make the indexes; a hypertable's chunks get theirs with it."""
        unsplit = replace(options, partition_rows=0) if self.is_columnar(options) else options
        return super().indexes(table, unsplit, where, again=again)

    def after_load(self, table: RowTable, options: PlainTable) -> tuple[str, ...]:
        """Move all chunks into the columnstore."""
        if not self.is_columnar(options):
            return super().after_load(table, options)
        name, order = self.qualified(options.name), literal(quoted(_dimension(table)))
        return (
            f"alter table {name} set (timescaledb.enable_columnstore, timescaledb.orderby = {order})",
            _COMPRESS.format(table=literal(name)).strip(),
        )

    def notes(self, options: PlainTable, where: tables.TableFacts = tables.USUAL) -> tuple[str, ...]:
        """Say what is done otherwise than asked."""
        if not self.is_columnar(options):
            return super().notes(options, where)
        found = ["rows are loaded into the rowstore, and moved into the columnstore after the load"]
        if not options.partition_rows:
            found.append("all rows are in one chunk, unless partition_rows is set")
        return tuple(found)

    def refuse_options(self, table: RowTable, options: PlainTable, where: tables.TableFacts) -> None:
        """Refuse what cannot be, of a hypertable a table without a column to be its dimension."""
        if not self.is_columnar(options):
            super().refuse_options(table, options, where)
            return
        column = _dimension(table)
        if not column:
            raise LoadstoneError(
                f"the table '{options.name}' cannot be a hypertable: it has no integer or time column "
                "without NULL",
                "Remove the columnstore; rows from files have no such column.",
            )
        if table["sequence"] is not None and where.rows:
            split = replace(
                options, partition_rows=options.partition_rows or where.rows, partition_column=column
            )
            super().refuse_options(table, split, where)
            return
        super().refuse_options(table, options, where)
        if options.primary_key not in ("", column):
            raise LoadstoneError(
                f"the primary key '{options.primary_key}' must contain the column by which the table is "
                f"partitioned, '{column}'",
                "Remove the primary key.",
            )

    def size(self, control: Control, table: str) -> tables.TableSize:
        """Read what a table takes on disk, of a hypertable with its chunks."""
        statement = f"select * from hypertable_detailed_size({literal(self.qualified(table))}::regclass)"
        asked = _IS_HYPERTABLE.format(schema=self.schema_text, table=literal(table))
        known = control.execute(asked).fetchone()
        row = control.execute(statement).fetchone() if known else None
        if row is None:
            return super().size(control, table)
        return tables.TableSize(*(int(row[name]) for name in ("table_bytes", "index_bytes", "toast_bytes")))


def _dimension(table: RowTable) -> str:
    """Return the column by which a hypertable is split: the one that grows, else the first that can be."""
    able = (c["name"] for c in table["columns"] if c["type"] in _SPANS and not c.get("nulls"))
    return table["sequence"] or next(able, "")


def _chunk(table: RowTable, options: PlainTable, where: tables.TableFacts) -> str:
    """Return the span of one chunk, as `by_range` takes it; all rows where none is known to be told apart."""
    kinds = {column["name"]: column["type"] for column in table["columns"]}
    kind = kinds[_dimension(table)]
    if table["sequence"] is None or not where.rows:
        return _SPANS[kind]
    span = (table["sequence_step"] or 1) * (options.partition_rows or where.rows)
    return f"interval '{span} microseconds'" if kind == "timestamp" else str(span)


class TimescaleDB(PostgresFamily):
    """TimescaleDB 2.18 and later, on any PostgreSQL it runs in."""

    name = "timescaledb"
    title = "TimescaleDB"
    schemes: tuple[str, ...] = ("timescaledb", "timescale")
    embedded_prefix = None
    needs = "PostgreSQL with the extension timescaledb 2.18 or later, in shared_preload_libraries"
    status = "verified against TimescaleDB 2.28.3 on PostgreSQL 15, on Linux"
    series = TimescaleSeries()
    tables = TimescaleTables()
    storage_members = _COMPRESSED_CHUNKS
    function_extension = "timescaledb"

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is; one without the extension is refused."""
        found = super().identify(connection)
        self.series.refuse(connection)
        row = connection.execute(_LOOK).fetchone() or {}
        return {
            **found,
            "version": f"{row['installed'] or row['available']} on PostgreSQL {found['version']}",
        }

    def postgres_version(self, identity: Identity) -> str | None:
        """Return the version of PostgreSQL itself."""
        return postgres_number(identity)

    def capabilities(self, connection: Control) -> frozenset[str]:
        """Return what scenarios may require."""
        return super().capabilities(connection) | {"hypertable"}


ENGINE = TimescaleDB()
