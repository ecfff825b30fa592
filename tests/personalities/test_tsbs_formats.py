"""The formats that other programs read: what they read is the stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import compute, ipc, parquet
from support.tsbs_sandbox import HOUR, IOT

from loadstone import _core

if TYPE_CHECKING:
    import psycopg
    from support.sandbox import Database
    from support.tsbs_sandbox import Place

pytestmark = pytest.mark.slow


def rows_of(query: str, given: pa.Table | None = None) -> list[tuple[Any, ...]]:
    """Ask DuckDB; `given` is a table of that name."""
    with duckdb.connect() as connection:
        if given is not None:
            connection.register("given", given)
        return connection.execute(query).fetchall()


def data_document(use_case: str, scale: int, hours: float) -> str:
    start_ns = 1_451_606_400_000_000_000
    document = {
        "kind": "tsbs",
        "use_case": use_case,
        "seed": 123,
        "scale": scale,
        "start_ns": start_ns,
        "end_ns": start_ns + int(hours * 3600e9),
        "interval_ns": 10_000_000_000,
    }
    return json.dumps(document)


def stream_tables(document: str, rows: int = 10_000) -> tuple[dict[str, pa.Table], str]:
    """Read a whole data set through Python: its tables, and their fingerprints."""
    stream = _core.DataStream(document)
    batches: dict[str, list[pa.RecordBatch]] = {}
    while (read := stream.read(rows)) is not None:
        for batch in read:
            batches.setdefault(batch.table, []).append(pa.record_batch(batch))
    return {name: pa.Table.from_batches(found) for name, found in batches.items()}, stream.fingerprints()


def without_marks(table: pa.Table) -> pa.Table:
    """Give JSON columns the type of the text that they are."""
    fields = [
        pa.field(f.name, f.type.storage_type if isinstance(f.type, pa.BaseExtensionType) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


@pytest.mark.parametrize("use_case", ["iot", "cpu-only", "devops"])
def test_python_reads_the_stream_in_pieces_of_any_size(use_case: str) -> None:
    document = data_document(use_case, 7, 0.25)
    whole, fingerprints = stream_tables(document, 1 << 20)
    for rows in (1000, 77):
        tables, others = stream_tables(document, rows)
        assert {name: table.combine_chunks() for name, table in tables.items()} == whole
        assert others == fingerprints
    counted = {table["name"]: table["rows"] for table in json.loads(fingerprints)}
    assert {name: table.num_rows for name, table in whole.items() if name != "tags"} == counted


def test_a_batch_crosses_into_pyarrow_and_duckdb() -> None:
    stream = _core.DataStream(data_document("iot", 5, 1))
    dataset = json.loads(stream.dataset())
    batches = stream.read(1000)
    assert batches is not None
    assert [batch.table for batch in batches] == ["tags", "diagnostics", "readings"]
    names = {
        table["name"]: [c["name"] for c in table["columns"]]
        for table in [dataset["tags"], *dataset["tables"]]
    }
    for batch in batches:
        table = pa.table(batch)
        assert table.column_names == names[batch.table]
        assert table.num_rows == batch.rows
        assert pa.schema(batch) == table.schema
        assert rows_of("select count(*) from given", table) == [(batch.rows,)]
    kept = pa.table(batches[-1])
    del batches, stream  # the buffers outlive what gave them
    assert kept.column("time").null_count == 0
    assert compute.min(kept.column("tags_id")).as_py() == 1


def test_parquet_and_arrow_hold_the_stream(place: Place) -> None:
    tables, _ = stream_tables(data_document("devops", 5, 1))
    flags = ("--use-case=devops", "--seed=123", "--scale=5", HOUR)
    place.made(*flags, "--format=parquet", "--file=p", "--compress=zstd")
    place.made(*flags, "--format=arrow", "--file=a")
    assert {path.stem for path in (place.folder / "p").iterdir()} == set(tables)
    for name, table in tables.items():
        expected = without_marks(table)
        assert parquet.read_table(place.folder / "p" / f"{name}.parquet").equals(expected), name
        with ipc.open_file(place.folder / "a" / f"{name}.arrow") as file:
            assert file.read_all().combine_chunks().equals(expected), name
        found = rows_of(f"select count(*) from '{place.folder}/p/{name}.parquet'")
        assert found == [(table.num_rows,)]


@pytest.mark.parametrize("compress", ["", "gzip", "zstd"])
def test_csv_is_what_duckdb_reads(place: Place, compress: str) -> None:
    tables, _ = stream_tables(data_document("iot", 10, 1))
    more = (f"--compress={compress}",) if compress else ()
    place.made(*IOT, "--format=csv", "--file=folder", *more)
    end = {"": "csv", "gzip": "csv.gz", "zstd": "csv.zst"}[compress]
    for name, table in tables.items():
        path = place.folder / "folder" / f"{name}.{end}"
        plain = without_marks(table)
        types = dict(rows_of("select column_name, column_type from (describe given)", plain))
        columns = ", ".join(f'"{column}"::{types[column]}' for column in table.column_names)
        read = f"select {columns} from read_csv('{path}', header = true, all_varchar = true)"
        whole = "select * from given"
        for one, other in ((whole, read), (read, whole)):
            lacking = f"select count(*) from (({one}) except all ({other}))"
            assert rows_of(lacking, plain) == [(0,)], name
        assert rows_of(f"select count(*) from ({read})", plain) == [(table.num_rows,)]


@pytest.mark.parametrize(
    ("format_", "end", "options"),
    [
        ("copy-binary", "copy", "format binary"),
        ("copy-text", "tsv", "format text"),
        ("csv", "csv", "format csv, header"),
    ],
)
def test_postgres_reads_what_copy_is_to_read(
    place: Place, database: Database, format_: str, end: str, options: str
) -> None:
    tables, _ = stream_tables(data_document("iot", 10, 1))
    place.made(*IOT, f"--format={format_}", "--file=folder")
    types = {"timestamp": "timestamptz", "int32": "int", "float32": "real", "float64": "double precision"}
    dataset = json.loads(_core.DataStream(data_document("iot", 10, 1)).dataset())
    with database.connect() as connection:
        for table in [dataset["tags"], *dataset["tables"]]:
            columns = [
                f'"{c["name"]}" '
                + ("jsonb" if c["name"] == "additional_tags" else types.get(c["type"], "text"))
                for c in table["columns"]
            ]
            name = table["name"]
            connection.execute(f'create table "{name}" ({", ".join(columns)})'.encode())
            data = (place.folder / "folder" / f"{name}.{end}").read_bytes()
            with connection.cursor().copy(f'copy "{name}" from stdin ({options})'.encode()) as copy:
                copy.write(data)
            assert _in_database(connection, name) == _in_arrow(tables[name])


def _in_database(connection: psycopg.Connection, name: str) -> list[tuple[Any, ...]]:
    rows = connection.execute(f'select * from "{name}"'.encode()).fetchall()
    return [tuple(int(v.timestamp()) if hasattr(v, "timestamp") else v for v in row) for row in rows]


def _in_arrow(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return [tuple(int(v.timestamp()) if hasattr(v, "timestamp") else v for v in row) for row in rows]


def test_a_folder_is_replaced_only_when_nothing_else_is_in_it(place: Place) -> None:
    for format_ in ("csv", "parquet"):
        flags = (*IOT, f"--format={format_}", f"--file={format_}")
        place.made(*flags)
        refused = place.make(*flags)
        assert (refused.code, "already exists" in refused.err) == (1, True)
        place.made(*flags, "--overwrite")
        (place.folder / format_ / "thesis.txt").write_text("years of work")
        refused = place.make(*flags, "--overwrite")
        assert (refused.code, "is not a file of this data set" in refused.err) == (1, True)
        assert (place.folder / format_ / "thesis.txt").read_text() == "years of work"
