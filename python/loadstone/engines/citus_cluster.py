"""Citus with workers: each table is spread over them by the hash of one column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.engine import SCHEMA, one
from loadstone.engine.dialect.tables import USUAL, TableSize
from loadstone.engine.dialect.timeseries import USUAL as USUAL_SERIES
from loadstone.engine.dialect.timeseries import TableSize as SeriesSize
from loadstone.engine.dialect.timeseries import device_column
from loadstone.engine.observe.storage import Storage, table_storage
from loadstone.engine.postgres.distributed import spreading_column
from loadstone.engines.citus import Citus, CitusSeries, CitusTables
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, qualified, regclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loadstone.engine import Identity, Sizes
    from loadstone.engine.control import Control
    from loadstone.engine.dialect import timeseries
    from loadstone.engine.dialect.tables import RowTable, TableFacts
    from loadstone.engine.dialect.timeseries import Dataset, Table
    from loadstone.model import PlainTable, SeriesTables
    from loadstone.sqltext import Qualified

_WORKERS = "select count(*) as workers from citus_get_active_worker_nodes()"
# The functions add up the shards on all workers, and refuse tables that are on the coordinator only.
_SIZE = """
select citus_relation_size({table}) as rows, citus_table_size({table}) as whole,
       citus_total_relation_size({table}) as total
"""
_IS_DISTRIBUTED = """
select 1 as found from pg_dist_partition where logicalrelid = {table}
"""
_DISTRIBUTED = """
select c.relname as name, c.oid::bigint as oid from pg_dist_partition p
join pg_class c on c.oid = p.logicalrelid join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(schema)s order by 1
"""
_SHARED = (
    "rows are sent to the coordinator, which sends them to the workers; only the coordinator is observed",
    "sizes are sums over the shards on all workers",
)


class ClusterSeries(CitusSeries):
    """Tables of rows are spread by the device; that of the devices is on every worker."""

    title = "Citus cluster"

    def tags_table(self, tags: Table, options: SeriesTables) -> Iterator[str]:
        """Yield the statements that make the table of devices, a copy on every worker."""
        yield from super().tags_table(tags, options)
        yield f"select create_reference_table({literal(self.qualified(tags['name']))})"

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: timeseries.TableFacts
    ) -> Iterator[str]:
        """Yield the statements that make one table of rows and spread it."""
        yield from super().series_table(table, dataset, options, where)
        yield _distribute(self.qualified(table["name"]), device_column(dataset, options))

    def notes(self, options: SeriesTables, where: timeseries.TableFacts = USUAL_SERIES) -> tuple[str, ...]:
        """Say what is seen of the workers."""
        return (*super().notes(options, where), *_SHARED)

    def size(self, control: Control, table: str) -> SeriesSize:
        """Read what a table takes on all workers."""
        found = _size(control, self.qualified(table))
        return SeriesSize(found.table_bytes, found.index_bytes) if found else super().size(control, table)


class ClusterTables(CitusTables):
    """Each table is spread over the workers."""

    title = "Citus cluster"
    tablespaces = False

    def create(self, table: RowTable, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statements that make the table with its partitions, and spread it."""
        made = super().create(table, options, where)
        return (*made, _distribute(self.qualified(options.name), spreading_column(table, options)))

    def notes(self, options: PlainTable, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say what is seen of the workers."""
        return (*super().notes(options, where), *_SHARED)

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes on all workers."""
        return _size(control, self.qualified(table)) or super().size(control, table)


class CitusCluster(Citus):
    """A coordinator with one worker at least."""

    name = "citus_cluster"
    title = "Citus cluster"
    schemes = ("citus-cluster",)
    status = "verified against Citus 13.2.2 with two workers on PostgreSQL 15.20, on Linux"
    needs = f"{Citus.needs}, on a coordinator and on each worker; the workers are added with citus_add_node"
    series = ClusterSeries()
    tables = ClusterTables()

    def identify(self, connection: Control) -> Identity:
        """Ask the server what it is; a coordinator without workers is refused."""
        found = super().identify(connection)
        workers = int(one(connection, _WORKERS, column=True))
        if not workers:
            raise LoadstoneError(
                "the coordinator has no active worker, so no table can be distributed",
                "Add workers (select citus_add_node('host', port)), or use citus://….",
            )
        return {**found, "version": f"{found['version']}, {workers} worker{'s' if workers > 1 else ''}"}

    def sizes(self, connection: Control, schema: str = SCHEMA) -> Sizes:
        """Read sizes on disk; of tables that are spread, those on all workers."""
        found = super().sizes(connection, schema)
        spread = {row["name"]: row["oid"] for row in connection.execute(_DISTRIBUTED, {"schema": schema})}
        for relation in found["relations"]:
            if relation["kind"] == "table" and relation["name"] in spread:
                size = _size(connection, qualified(schema, relation["name"]))
                relation["bytes"] = size.table_bytes if size else relation["bytes"]
        return found

    def storage(
        self,
        connection: Control,
        tables: Sequence[str],
        data_directory: Path | None = None,
        schema: str = SCHEMA,
    ) -> Storage:
        """Account for what Citus tells of the shards on all workers."""
        del data_directory
        refused = self.checkpoint(connection)
        looked = Storage([], [*([refused] if refused else []), _SHARED[1]])
        for name in tables:
            place = qualified(schema, name)
            row = connection.execute(_SIZE.format(table=regclass(place))).fetchone() or {}
            rows, whole, total = (int(row[column]) for column in ("rows", "whole", "total"))
            indexes = [("all indexes", total - whole)] if total > whole else []
            looked.tables.append(table_storage(name, rows, toast=whole - rows, indexes=indexes))
        return looked


def _distribute(table: Qualified, column: str) -> str:
    return f"select create_distributed_table({literal(table)}, {literal(column)})"


def _size(control: Control, place: Qualified) -> TableSize | None:
    """Read what a table takes on all workers; None when it is not spread over them."""
    table = regclass(place)
    if control.execute(_IS_DISTRIBUTED.format(table=table)).fetchone() is None:
        return None
    row = control.execute(_SIZE.format(table=table)).fetchone() or {}
    return TableSize(int(row["whole"]), int(row["total"]) - int(row["whole"]), 0)


ENGINE = CitusCluster()
