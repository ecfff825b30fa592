"""A small data set and its tables, for tests of engines and of loads."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.timeseries import TableFacts, TimeSeriesDialect
from loadstone.engines import engine
from loadstone.model import SeriesTables
from loadstone.target import parse_target
from loadstone.workload.load import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.timeseries import Dataset, Table
    from support.sandbox import Database

DAY_US = 86_400_000_000
START_US = int(datetime(2016, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
PLAIN = SeriesTables()
SERIES = TimeSeriesDialect()


def table_of(name: str, *fields: str) -> Table:
    columns = [("time", "timestamp"), ("tags_id", "int32"), *((field, "float64") for field in fields)]
    columns.append(("additional_tags", "text"))
    return {
        "name": name,
        "metrics": len(fields),
        "columns": [{"name": name, "type": kind} for name, kind in columns],
    }


TAGS: Table = {
    "name": "tags",
    "metrics": 0,
    "columns": [
        {"name": "id", "type": "int32"},
        {"name": "name", "type": "text"},
        {"name": "fleet", "type": "text"},
        {"name": "load_capacity", "type": "float32"},
    ],
}
DATASET: Dataset = {
    "tags": TAGS,
    "tables": [table_of("diagnostics", "fuel_state"), table_of("readings", "latitude", "velocity")],
}


@contextmanager
def control_of(database: Database) -> Iterator[Control]:
    target = parse_target(database.socket_url)
    assert target.connection is not None
    with engine("postgres").connect(target.connection) as control:  # type: ignore[attr-defined]
        # As a scenario's connection: in our schema, and in no other.
        control.execute("create schema if not exists loadstone")
        control.execute("set search_path to loadstone")
        yield control


def where(version: int = 180000) -> TableFacts:
    return TableFacts(version, (START_US, START_US + DAY_US))


def make(control: Control, options: SeriesTables = PLAIN) -> None:
    tables.execute(control, SERIES.tables(DATASET, options, where()))


def rows(control: Control, sql: str) -> list[dict[str, Any]]:
    return control.execute(sql).fetchall()


def indexes(control: Control, table: str) -> set[str]:
    found = rows(control, f"select indexdef from pg_indexes where tablename = '{table}'")
    return {row["indexdef"].partition(" USING ")[2] for row in found}
