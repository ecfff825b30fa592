"""How MariaDB keeps time series: InnoDB's tables with indexes on time and device, partitioned by time."""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from loadstone.engine.dialect.timeseries import (
    ADDITIONAL,
    USUAL,
    TableSize,
    TimeSeriesDialect,
    chunk_bounds,
    common_notes,
    device_column,
    fields,
    first_tag,
    index_keys,
    names,
    stamp,
    width_s,
)
from loadstone.engines.mariadb import facts
from loadstone.engines.mariadb.control import mariadbs
from loadstone.engines.mariadb.loads import EPOCH, KEEPING, MariaLoads
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.timeseries import Column, Dataset, Table, TableFacts
    from loadstone.model import SeriesTables


class MariaSeries(MariaLoads, TimeSeriesDialect):
    """What MariaDB does in its own way."""

    json_type = "longtext"
    types: Mapping[str, str] = {
        "timestamp": "datetime(6)",
        "int32": "int",
        "int64": "bigint",
        "float32": "double",
        "float64": "double",
        "text": "varchar(255)",
        "bool": "boolean",
    }

    def bucket(self, width: str, column: str) -> str:
        """Return an expression for the begin of the bucket that holds a time."""
        seconds = width_s(width)
        since = f"floor(timestampdiff(second, {EPOCH}, {column}) / {seconds}) * {seconds}"
        return f"timestampadd(second, {since}, {EPOCH})"

    def after_load(self, dataset: Dataset, options: SeriesTables) -> tuple[str, ...]:
        """Return what makes the statistics anew."""
        del options
        return tuple(f"analyze table {self.qualified(name)}" for name in names(dataset))

    def notes(self, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is done instead."""
        del where
        found = [*common_notes(options), "rows are not unique by device and time: InnoDB adds a hidden key"]
        if options.compress or options.compress_after_s is not None:
            found.append("nothing is compressed")
        if options.hash_partitions and options.chunk_time_s is not None:
            found.append("tables are partitioned by time only, not by device as well")
        return tuple(found)

    def tags_table(self, tags: Table, options: SeriesTables) -> Iterator[str]:
        """Yield the statements that make the table of devices."""
        name = self.qualified(tags["name"])
        if options.jsonb_tags:
            raise LoadstoneError("MariaDB has no jsonb for tags", "Remove jsonb_tags.")
        columns = tags["columns"][1:]
        listed = ", ".join(self._column(column) for column in columns)
        yield f"create table {name} (id int auto_increment primary key, {listed}){KEEPING}"
        yield f"create index {quoted(tags['name'] + '_first')} on {name} ({quoted(columns[0]['name'])})"

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: TableFacts
    ) -> Iterator[str]:
        """Yield the statements that make one table of rows with its partitions and indexes."""
        device = device_column(dataset, options)
        name = self.qualified(table["name"])
        columns = self.columns(table, dataset, options)
        yield f"create table {name} ({columns}){KEEPING}{_split(options, where, device)}"
        for number, keys in enumerate(index_keys(table, options, device), 1):
            yield f"create index {quoted(table['name'] + f'_{number}')} on {name} {keys}"

    def columns(self, table: Table, dataset: Dataset, options: SeriesTables) -> str:
        """Return the definitions of a table's columns."""
        first = first_tag(dataset) if options.in_table_tag else None
        listed = [f"{quoted('time')} datetime(6)", "tags_id int"]
        listed += [self._column(first)] if first else []
        listed += [f"{quoted(name)} double" for name in fields(table)]
        if any(column["name"] == ADDITIONAL for column in table["columns"]):
            listed.append(f"{ADDITIONAL} {self.json_type} default null")
        return ", ".join(listed)

    def fingerprint(self, table: Table) -> str:
        """Return the query for a table's fingerprint; nulls are the text of a list."""
        columns = fields(table)
        nulls = ", ',', ".join(f"count(*) - count({quoted(name)})" for name in columns)
        terms = " + ".join(
            f"coalesce({quoted(name)}, 0e0) * {place}e0" for place, name in enumerate(columns, 1)
        )
        key = "1 + ((t + d * 7919) % 65521 + 65521) % 65521"
        value = "cast(floor((s - floor(s / 65521) * 65521) * 1048576) as signed)"
        return (
            'select count(*) as "rows", coalesce(sum(t), 0) as time_sum, coalesce(sum(d), 0) as tags_sum, '
            f"coalesce(sum(cast(({key}) * {value} as decimal(30))), 0) as content, "
            f"concat({nulls}) as nulls "
            f"from (select {self.microseconds(quoted('time'))} as t, cast(tags_id as signed) as d, "
            f"{', '.join(map(quoted, columns))}, {terms} as s from {self.qualified(table['name'])}) as r"
        )

    def read_fingerprint(self, control: Control, table: Table) -> Mapping[str, object]:
        """Ask for the fingerprint, and return its columns."""
        row = control.execute(self.fingerprint(table)).fetchone() or {}
        return {**row, "nulls": str(row["nulls"]).split(",")}

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes, as InnoDB's statistics have it once they are made anew."""
        return TableSize(*facts.table_bytes(mariadbs(control), self.schema or "", table))

    def strays(self, control: Control, table: str) -> int | None:
        """Return None: rows outside the span are in the first and last partition, which are not counted."""
        del control, table
        return None

    def _column(self, column: Column) -> str:
        return f"{quoted(column['name'])} {self.types[column['type']]}"


def _split(options: SeriesTables, where: TableFacts, device: str) -> str:
    """Return what CREATE TABLE says of how the table is split."""
    if options.chunk_time_s is None:
        parts = options.hash_partitions
        return f" partition by key ({quoted(device)}) partitions {parts}" if parts else ""
    bounds = chunk_bounds(options, where)
    parts_of = [f"partition p_before values less than ({_literal(bounds[0])})"]
    parts_of += [
        f"partition p{stamp(low):%Y%m%d_%H%M%S} values less than ({_literal(high)})"
        for low, high in pairwise(bounds)
    ]
    parts_of.append("partition p_after values less than (maxvalue)")
    return f" partition by range columns ({quoted('time')}) ({', '.join(parts_of)})"


def _literal(time_us: int) -> str:
    return literal(f"{stamp(time_us):%Y-%m-%d %H:%M:%S.%f}")
