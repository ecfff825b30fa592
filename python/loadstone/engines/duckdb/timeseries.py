"""How DuckDB keeps time series: columns with zone maps, and batches of Arrow rows."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, Self

from loadstone.engine.dialect.timeseries import TableSize, TimeSeriesDialect, common_notes, width_s
from loadstone.engines.duckdb.database import duck, refuse_ambiguous
from loadstone.engines.duckdb.load import load_spec
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone._core import NativeLibrary
    from loadstone.engine.control import Control
    from loadstone.engine.dialect.timeseries import Dataset, Table, TableFacts
    from loadstone.model import LoadMethod, SeriesTables

BLOCKS = """
select count(distinct block) as blocks from (
    select unnest(list_append(additional_block_ids, block_id)) as block
    from pragma_storage_info({table}) where persistent) as found where block >= 0
"""
"""Blocks of a table's columns; one that several columns share counts once."""


class NativeLoads:
    """What holds for tables of every kind: how rows come in, and how times are read."""

    title = "DuckDB"
    methods: tuple[LoadMethod, ...] = ("arrow", "insert")

    def library(self, document: Mapping[str, Any], connect: Callable[[str], Control]) -> NativeLibrary:
        """Return the core's own clients, which load without Python's lock."""
        with closing(connect("loadstone")) as control:
            return duck(control).database.clients(load_spec(document["load"]))

    def microseconds(self, column: str) -> str:
        """Return an expression for a time as whole microseconds since 1970."""
        return f"epoch_us({column})"


class DuckSeries(NativeLoads, TimeSeriesDialect):
    """What DuckDB does in its own way."""

    json_type = "json"

    def where_made(self, control: Control) -> Self:
        """Return the same answers for the schema where the connection makes its tables."""
        found = super().where_made(control)
        refuse_ambiguous(control, found.schema or "")
        return found

    def after_load(self, dataset: Dataset, options: SeriesTables) -> tuple[str, ...]:
        """Return nothing: statistics and the file are up to date after the checkpoint that ends a load."""
        del dataset, options
        return ()

    def notes(self, options: SeriesTables, where: TableFacts | None = None) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is there instead."""
        del where
        found = list(common_notes(options))
        if options.time_index or options.partition_index or options.time_partition_index:
            found.append(
                "no index on time or device is created: DuckDB finds a time range by the minimum and "
                "maximum that it keeps per column for every 122,880 rows; its ART indexes help only "
                "look-ups of a few rows"
            )
        if options.field_index_count:
            found.append(
                "no index on fields is created: DuckDB's ART indexes help only look-ups of a few rows"
            )
        if options.chunk_time_s is not None or options.hash_partitions:
            found.append("DuckDB has no partitions")
        if options.compress or options.compress_after_s is not None:
            found.append("DuckDB always compresses every column when it writes it")
        return tuple(found)

    def bucket(self, width: str, column: str) -> str:
        """Return an expression for the begin of the bucket (`10 minutes`, `1 day`) that holds a time."""
        length = width_s(width) * 1_000_000
        return f"make_timestamptz(epoch_us({column}) // {length} * {length})"

    def size(self, control: Control, table: str) -> TableSize:
        """Read how many blocks of the file the table's columns take; what its indexes take is not told."""
        name = literal(self.qualified(table))
        row = control.execute(BLOCKS.format(table=name)).fetchone() or {}
        space = control.execute(
            "select block_size from pragma_database_size() where database_name = current_database()"
        ).fetchone() or {"block_size": 0}
        return TableSize(int(row["blocks"]) * int(space["block_size"]), 0)

    def tags_table(self, tags: Table, options: SeriesTables) -> Iterator[str]:
        """Yield the statements that make the table of devices."""
        name = self.qualified(tags["name"])
        if options.jsonb_tags:
            yield f"create table {name} (id integer primary key, tagset {self.json_type} unique)"
            return
        columns = tags["columns"][1:]
        listed = ", ".join(f"{quoted(c['name'])} {self.types[c['type']]}" for c in columns)
        yield f"create table {name} (id integer primary key, {listed})"
        names = ", ".join(quoted(column["name"]) for column in columns)
        yield f"create unique index {quoted(tags['name'] + '_uniq1')} on {name} ({names})"
        yield f"create index {quoted(tags['name'] + '_first')} on {name} ({quoted(columns[0]['name'])})"

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: TableFacts
    ) -> Iterator[str]:
        """Yield the statement that makes one table of rows."""
        del where
        yield f"create table {self.qualified(table['name'])} ({self.columns(table, dataset, options)})"
