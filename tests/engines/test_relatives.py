"""PostgreSQL's relatives and extensions: what they refuse, offer, and say in SQL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from support.timeseries_data import control_of, rows

from loadstone.engine.postgres.columnar import ColumnarFamily
from loadstone.engine.postgres.distributed import spreading_column
from loadstone.engine.postgres.extension import ExtensionFamily, number_of
from loadstone.engine.postgres.family import PostgresFamily
from loadstone.engines import engine
from loadstone.engines.pgstrom import plan_uses_gpu
from loadstone.errors import LoadstoneError
from loadstone.model import BulkLoad, PlainTable, Rows
from loadstone.scenario.load import needs_of_bulk
from loadstone.target import open_target, parse_target
from loadstone.workload.load import tables

if TYPE_CHECKING:
    from support.sandbox import Database

    from loadstone.engine.dialect.tables import RowTable
    from loadstone.engine.dialect.timeseries import Column

PLAIN = PlainTable("t")
COLUMNS: list[Column] = [{"name": "a", "type": "int32"}, {"name": "b", "type": "text"}]
TABLE: RowTable = {
    "name": "t",
    "metrics": 2,
    "columns": COLUMNS,
    "usual_indexes": ["b"],
    "sequence": "a",
    "sequence_first": 0,
    "sequence_step": 1,
    "row_bytes": 10.0,
}
UNORDERED: RowTable = {**TABLE, "sequence": None}


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("citus", "the server does not have Citus: the files of the extension citus are not installed"),
        ("citus-columnar", "Citus columnar: the files of the extension citus_columnar"),
        ("citus-cluster", "not have Citus cluster"),
        ("hydra", "the server is PostgreSQL 18.* but Hydra needs 13 to 17|not have Hydra"),
        ("cstore-fdw", "the server is PostgreSQL .*, but cstore_fdw needs 10 to 13"),
        ("pgstrom", "PG-Strom: the files of the extension pg_strom"),
        ("pgstrom-cpu", "not have PG-Strom"),
        ("pgstrom-cstore", "PG-Strom on cstore_fdw needs 10 to 13"),
        ("polardb", "the server is not PolarDB: PostgreSQL"),
        ("greenplum", "the server is not Greenplum: PostgreSQL"),
        ("opengauss", "the server is not openGauss: PostgreSQL"),
        ("timescaledb-columnstore", "the server does not have TimescaleDB"),
    ],
)
def test_a_plain_server_is_refused_with_what_is_missing(database: Database, scheme: str, words: str) -> None:
    target = parse_target(database.socket_url.replace("postgres:", f"{scheme}:"))
    with pytest.raises(LoadstoneError, match=words) as refused, open_target(target, 2):
        pass
    assert refused.value.hint


class Trigrams(ExtensionFamily):
    """An extension that every server here has the files of."""

    name = title = "trigrams"
    extension = "pg_trgm"
    oldest = (1, 0)
    needs = "pg_trgm"


def test_an_extension_must_be_created_and_new_enough(database: Database) -> None:
    trigrams = Trigrams()
    with control_of(database) as control:
        with pytest.raises(
            LoadstoneError, match="is installed on the server, but not created in this database"
        ) as no:
            trigrams.identify(control)
        assert "create extension pg_trgm" in no.value.hint
        control.execute("create extension pg_trgm")
        found = trigrams.identify(control)
        assert found["version"].endswith(f"on PostgreSQL {trigrams.version(control)['version']}")
        number = found["version_number"]
        assert trigrams.postgres_version(found) == f"{number // 10000}.{number % 10000}"
        trigrams.oldest = (99, 0)
        with pytest.raises(
            LoadstoneError, match=r"the database has trigrams 1.*needs 99.0 or later|trigrams 1"
        ):
            trigrams.identify(control)


class Functions(PostgresFamily):
    """An engine whose statements call an extension's functions by bare names."""

    name = title = "functions"
    function_extension = "pg_trgm"


def test_functions_of_an_engine_are_found_wherever_its_extension_is(database: Database) -> None:
    target = parse_target(database.socket_url)
    assert target.connection is not None
    with control_of(database) as control:
        assert Functions().with_functions(control).function_schema is None
        for schema, searched in (('"My Own"', '{loadstone,"My Own"}'), ("loadstone", "{loadstone}")):
            control.execute(f"create schema if not exists {schema}")
            control.execute(f"create extension pg_trgm schema {schema}")
            found = Functions().with_functions(control)
            with found.connect(found.with_schema(target.connection)) as other:
                assert rows(other, "select current_schemas(false)::text as path") == [{"path": searched}]
                assert rows(other, "select similarity('a', 'a') as same") == [{"same": 1.0}]
            control.execute("drop extension pg_trgm")
    assert engine("postgres").with_functions(control) is engine("postgres")  # type: ignore[attr-defined]


class Columns(ColumnarFamily):
    """The account of columns, on a server that has none."""

    name = title = "columns"


def test_columns_have_no_map_of_free_space(database: Database) -> None:
    with control_of(database) as control:
        control.execute("create table t (a int)")
        looked = Columns().storage(control, ["t"])
    assert looked.tables[0]["free_bytes"] is None
    assert "columnar tables have no free space map" in looked.notes[-1]


def test_versions_are_compared_by_their_first_two_numbers() -> None:
    assert number_of("13.2-1") == (13, 2)
    assert number_of("6.2") == (6, 2)
    assert number_of("11.1-12") < (11, 2)


@pytest.mark.parametrize(("name", "shown"), [("pgstrom", "on"), ("pgstrom_cpu", "off")])
def test_pgstrom_is_switched_for_each_connection(database: Database, name: str, shown: str) -> None:
    found, target = engine(name), parse_target(database.socket_url)
    assert isinstance(found, PostgresFamily)
    assert target.connection is not None
    with found.connect(found.with_schema(target.connection)) as control:
        assert rows(control, "select current_setting('pg_strom.enabled') as value") == [{"value": shown}]
        assert rows(control, "select current_setting('search_path') as value") == [{"value": "loadstone"}]


def test_plans_say_whether_the_gpu_runs_them() -> None:
    found = engine("pgstrom")
    assert found.used_gpu(" ->  Parallel Custom Scan (GpuPreAgg) on flights") is True
    assert found.used_gpu("Aggregate\n  ->  Seq Scan on flights") is False
    assert plan_uses_gpu(None) is None
    assert engine("postgres").used_gpu("Seq Scan") is None


def test_cstore_drops_foreign_tables_and_plain_ones(database: Database) -> None:
    answers = engine("cstore_fdw").tables
    with control_of(database) as control:
        control.execute("create extension file_fdw")
        control.execute("create server files foreign data wrapper file_fdw")
        made = "create foreign table {} (a int) server files options (filename '/dev/null')"
        table = answers.qualified("t")
        for text in (made.format(table), f"create table {table} (a int)"):
            control.execute(text)
            assert answers.existing(control, ["t"]) == ["t"]
            tables.drop_made(control, answers, ["t"], [text])
            assert answers.existing(control, ["t"]) == []
        control.execute(answers.drop("t"))


def test_what_a_load_needs_is_said_in_words_that_engines_offer(database: Database) -> None:
    bulk = BulkLoad(
        Rows(set="import", rows=10),
        replace(PLAIN, indexes="2", primary_key="l", partition_column="l", partition_rows=5, tablespace="x"),
        workers=2,
    )
    needed = set(needs_of_bulk(bulk))
    assert needed == {"load", "parallel loads", "partitioning", "tablespace", "primary keys", "indexes"}
    with control_of(database) as control:
        offered = {name: engine(name).capabilities(control) for name in ("postgres", "cstore_fdw", "hydra")}
    assert needed <= offered["postgres"]
    assert needed & offered["cstore_fdw"] == {"load"}
    assert needed <= offered["hydra"]
    assert {"brin", "gin"} <= offered["postgres"]
    assert {"brin", "gin", "compression:pglz"} & offered["hydra"] == set()
    assert {"load:insert", "load:copy_binary"} & offered["cstore_fdw"] == {"load:copy_binary"}


@pytest.mark.parametrize(
    ("table", "options", "column"),
    [
        (TABLE, PLAIN, "a"),
        (UNORDERED, PLAIN, "a"),
        ({**UNORDERED, "columns": [{"name": "n", "type": "int64", "nulls": True}, *COLUMNS]}, PLAIN, "a"),
        ({**UNORDERED, "columns": [{"name": "k", "type": "text", "repeats": True}, COLUMNS[1]]}, PLAIN, "b"),
        (TABLE, replace(PLAIN, primary_key="b"), "b"),
    ],
)
def test_rows_are_spread_by_a_column_of_many_values(
    table: RowTable, options: PlainTable, column: str
) -> None:
    assert spreading_column(table, options) == column
    made = engine("citus_cluster").tables.create(table, options)
    assert made[-1] == f"select create_distributed_table('\"loadstone\".\"t\"', '{column}')"


def test_a_hypertable_needs_a_column_that_is_always_there() -> None:
    answers = engine("timescaledb_columnstore").tables
    assert any("by_range('a', 1000000000)" in text for text in answers.create(UNORDERED, PLAIN))
    holed: RowTable = {**UNORDERED, "columns": [{"name": "a", "type": "int32", "nulls": True}]}
    with pytest.raises(LoadstoneError, match="cannot be a hypertable: it has no integer or time column"):
        answers.create(holed, replace(PLAIN))
    with pytest.raises(LoadstoneError, match="the primary key 'b' must contain"):
        answers.create(UNORDERED, replace(PLAIN, primary_key="b"))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("cstore_fdw", {"indexes": "b"}, "cstore_fdw does not support indexes"),
        ("cstore_fdw", {"primary_key": "a"}, "primary keys"),
        ("cstore_fdw", {"partition_rows": 5, "partition_column": "a"}, "support partitions"),
        ("citus_cluster", {"tablespace": "x"}, "support tablespaces"),
        ("hydra", {"indexes": "a:brin"}, "Hydra cannot create the index a:brin"),
        ("citus_columnar", {"compression": "lz4"}, "compression with lz4"),
    ],
)
def test_what_an_engine_lacks_is_refused_where_it_is_wished(
    name: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words):
        engine(name).tables.create(TABLE, replace(PLAIN, **options))  # type: ignore[arg-type]
