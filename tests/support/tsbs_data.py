"""Small TSBS data sets in real databases, loaded without the code under test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from loadstone import _core
from loadstone.engines import engine
from loadstone.model import SeriesTables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

    from support.sandbox import Database

START_NS = 1_451_606_400 * 10**9
HOUR_NS = 3600 * 10**9
HOURS = 26
END_NS = START_NS + HOURS * HOUR_NS
SCALE = 40
END = "2016-01-02T02:00:00Z"


def batches(use_case: str) -> tuple[Any, Iterator[tuple[str, pa.RecordBatch]]]:
    document = {
        "kind": "tsbs",
        "use_case": use_case,
        "seed": 123,
        "scale": SCALE,
        "start_ns": START_NS,
        "end_ns": END_NS,
        "interval_ns": 300 * 10**9,
    }
    stream = _core.DataStream(json.dumps(document))

    def read() -> Iterator[tuple[str, pa.RecordBatch]]:
        while (found := stream.read(5000)) is not None:
            for batch in found:
                yield batch.table, pa.record_batch(batch)

    return json.loads(stream.dataset()), read()


def into_postgres(database: Database, use_case: str, *, jsonb_tags: bool = False) -> None:
    dataset, rows = batches(use_case)
    options = SeriesTables(jsonb_tags=jsonb_tags)
    with database.connect() as connection:
        for statement in engine("postgres").series.within("public").tables(dataset, options):
            connection.execute(statement.encode())
        for table, batch in rows:
            _copy(connection, table, batch, jsonb_tags=jsonb_tags and table == "tags")
        connection.execute("analyze")


def _copy(connection: psycopg.Connection, table: str, batch: pa.RecordBatch, *, jsonb_tags: bool) -> None:
    names = batch.schema.names
    found = batch.to_pylist()
    if jsonb_tags:
        names = ["id", "tagset"]
        found = [{"id": row.pop("id"), "tagset": json.dumps(row)} for row in found]
    columns = ", ".join(f'"{name}"' for name in names)
    with connection.cursor().copy(f'copy "{table}" ({columns}) from stdin'.encode()) as copy:
        for row in found:
            copy.write_row([row[name] for name in names])


def into_duckdb(path: Path, use_case: str) -> None:
    dataset, rows = batches(use_case)
    with duckdb.connect(path) as connection:
        for statement in engine("duckdb").series.within("main").tables(dataset, SeriesTables()):
            connection.execute(statement)
        for table, batch in rows:
            columns = ", ".join(f'"{name}"' for name in batch.schema.names)
            connection.register("arrived", pa.Table.from_batches([batch]))
            connection.execute(f'insert into "{table}" ({columns}) select {columns} from arrived')
            connection.unregister("arrived")
