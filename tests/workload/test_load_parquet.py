"""Bulk loads of a user's own files with a set's columns: Parquet read as values, CSV sent as it is."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from support.table_loads import BULK, check_whole, load, opened_at, value

from loadstone.errors import LoadstoneError
from loadstone.model import PlainTable, Rows
from loadstone.workload.generate import Files, generate
from loadstone.workload.load import look, perform_bulk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

    from loadstone.target import OpenTarget

ROWS = 2500
FLIGHTS = replace(BULK, rows=Rows(set="flights", rows=ROWS), table=PlainTable("flights"), step_rows=0)


@pytest.fixture
def server(database: Database) -> Iterator[OpenTarget]:
    with opened_at(database.socket_url) as opened:
        yield opened


def made(folder: Path, format_: Any) -> str:
    path = folder / f"flights.{format_}"
    generate(Rows(set="flights", rows=ROWS), Files(str(path), format=format_, header=format_ == "csv"))
    return str(path)


def of(path: str, format_: Any, **more: Any) -> Rows:
    return Rows(files=(path,), format=format_, header=format_ == "csv", **more)


def print_of(server: OpenTarget, table: str) -> str | None:
    return value(server, f"select md5(string_agg(t::text, '|' order by t::text)) from {table} t")


@pytest.mark.parametrize(("format_", "method"), [("parquet", "best"), ("parquet", "insert"), ("csv", "best")])
def test_rows_of_files_are_those_that_a_set_makes(
    server: OpenTarget, tmp_path: Path, format_: Any, method: Any
) -> None:
    loaded = check_whole(load(server, FLIGHTS, tmp_path))
    assert 350 < loaded["table"]["text_row_bytes"] < 450
    rows = of(made(tmp_path, format_), format_, set="flights")
    bulk = replace(FLIGHTS, rows=rows, table=PlainTable("again"), method=method, batch_rows=400)
    again = check_whole(load(server, bulk, tmp_path))
    assert again["rows"] == ROWS
    assert print_of(server, "again") == print_of(server, "flights")
    kinds = [column["type"] for column in again["table"]["columns"]]
    assert (kinds[0], kinds[29], kinds[34]) == ("int16", "timestamp", "date")
    limited = replace(bulk, rows=replace(rows, rows=700), table=PlainTable("few"))
    assert check_whole(load(server, limited, tmp_path))["rows"] == 700


def loosely(table: pa.Table) -> pa.Table:
    """Return rows as programs type them by themselves: wide integers, floats where some are missing, …."""

    def kind(field: pa.Field, nulls: int) -> pa.DataType:
        if pa.types.is_integer(field.type):
            return pa.float64() if nulls else pa.int64()
        if pa.types.is_floating(field.type):
            return pa.float64()
        if pa.types.is_temporal(field.type):
            return pa.timestamp("ns")
        return pa.dictionary(pa.int32(), pa.string()) if nulls else pa.large_string()

    columns = [
        column.cast(kind(table.field(at), column.null_count)) for at, column in enumerate(table.columns)
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def test_rows_as_other_programs_type_them_are_the_same_rows(server: OpenTarget, tmp_path: Path) -> None:
    check_whole(load(server, FLIGHTS, tmp_path))
    rows = of(made(tmp_path, "parquet"), "parquet", set="flights")
    other = loosely(parquet.read_table(rows.files[0]))
    assert {str(field.type) for field in other.schema} >= {"int64", "double", "timestamp[ns]", "large_string"}
    parquet.write_table(other, rows.files[0])
    again = check_whole(load(server, replace(FLIGHTS, rows=rows, table=PlainTable("again")), tmp_path))
    assert again["rows"] == ROWS
    assert print_of(server, "again") == print_of(server, "flights")


def test_a_value_too_great_of_which_the_file_says_nothing_fails_the_load_with_its_row(
    server: OpenTarget, tmp_path: Path
) -> None:
    rows = of(made(tmp_path, "parquet"), "parquet", set="flights")
    # Beyond what is looked at before anything is touched.
    whole = pa.concat_tables([parquet.read_table(rows.files[0])] * 16)
    distances = whole.column("distance").to_pylist()
    distances[34_567] = 40_000
    wrong = whole.set_column(
        whole.column_names.index("distance"), "distance", pa.array(distances, pa.int64())
    )
    parquet.write_table(wrong, rows.files[0], write_statistics=False)
    loaded = load(server, replace(FLIGHTS, rows=rows), tmp_path)
    assert 'row 34568: column "distance" has 40000, which does not fit into int16' in loaded["reason"]


def test_parquet_says_for_itself_of_what_types_it_is(server: OpenTarget, tmp_path: Path) -> None:
    table = pa.table({"n": pa.array([1, None, 3], pa.int64()), "t": ["a", "b\tc", None]})
    parquet.write_table(table, tmp_path / "rows.parquet", compression="snappy")
    rows = of(str(tmp_path / "rows.parquet"), "parquet")
    loaded = check_whole(load(server, replace(FLIGHTS, rows=rows), tmp_path))
    assert [(c["name"], c["type"]) for c in loaded["table"]["columns"]] == [("n", "int64"), ("t", "text")]
    assert value(server, "select sum(n) from flights") == "4"
    assert value(server, "select string_agg(t, ',' order by t) from flights") == "a,b\tc"


def test_duckdb_takes_parquet_as_arrow(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    with opened_at("duckdb:") as opened:
        rows = of(made(tmp_path, "parquet"), "parquet", set="flights")
        check_whole(load(opened, replace(FLIGHTS, rows=rows, workers=1), tmp_path))
        found = value(opened, "select count(*) from flights where origin_country = 'USA'")
        assert found == str(ROWS)


def test_a_table_that_is_there_decides_which_columns_fit(server: OpenTarget, tmp_path: Path) -> None:
    table = pa.table({"t": ["a", "b"], "n": pa.array([1, 2], pa.int64())})
    parquet.write_table(table, tmp_path / "rows.parquet")
    bulk = replace(FLIGHTS, rows=of(str(tmp_path / "rows.parquet"), "parquet"))
    with closing(server.connect("test")) as control:
        control.execute("create table flights (n date, t text)")
    with pytest.raises(LoadstoneError, match='column "n" is int64, but date is needed'):
        perform_bulk(bulk, server, tmp_path)
    assert value(server, "select count(*) from flights") == "0"
    with closing(server.connect("test")) as control:
        control.execute("drop table flights")
        control.execute("create table flights (n integer, t text)")
    check_whole(load(server, bulk, tmp_path))
    assert value(server, "select string_agg(n || t, ',' order by n) from flights") == "1a,2b"


def test_files_that_do_not_fit_are_refused_before_anything_is_touched(tmp_path: Path) -> None:
    whole = parquet.read_table(made(tmp_path, "parquet"))
    at = tmp_path / "wrong.parquet"

    def refused(words: str, rows: Rows) -> None:
        with pytest.raises(LoadstoneError, match=words):
            look(replace(FLIGHTS, rows=rows))

    def wrong(table: pa.Table, words: str) -> None:
        parquet.write_table(table, at)
        refused(words, of(str(at), "parquet", set="flights"))

    wrong(whole.drop(["dest_lat"]), 'the column "dest_lat" is missing')
    wrong(whole.append_column("more", pa.nulls(ROWS, pa.int16())), 'the table has no column "more"')
    at_distance = whole.column_names.index("distance")
    texts = whole.column("distance").cast(pa.string())
    wrong(whole.set_column(at_distance, "distance", texts), 'column "distance" is text, but int16 is needed')
    great = pa.array([40_000] * ROWS, pa.int64())
    wrong(
        whole.set_column(at_distance, "distance", great),
        'rows 1 to 2500: column "distance" has 40000, which does not fit into int16',
    )
    wrong(whole.slice(0, 0), "contain no rows")
    at.write_bytes(at.read_bytes()[:300])
    refused("is not a Parquet file", of(str(at), "parquet", set="flights"))
    path = made(tmp_path, "csv")
    head, _, rest = (tmp_path / "flights.csv").read_text().partition("\n")
    swapped = head.replace("origin,dest,", "dest,origin,")
    (tmp_path / "swapped.csv").write_text(f"{swapped}\n{rest}")
    refused(
        "is 'dest' by its header",
        of(str(tmp_path / "swapped.csv"), "csv", set="flights"),
    )
    look(replace(FLIGHTS, rows=of(path, "csv", set="flights")))
