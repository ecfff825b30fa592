"""How engines keep plain tables: index lists, DDL, partitions, fingerprints, on real servers."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.timeseries_data import control_of, indexes, rows

from loadstone.engine.dialect.indexes import Index, index_list
from loadstone.engine.dialect.tables import TableDialect, TableFacts, partition_ddl
from loadstone.engines import engine
from loadstone.errors import LoadstoneError
from loadstone.model import PlainTable
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from support.sandbox import Database

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.tables import RowTable

POSTGRES = TableDialect()
DUCKDB = engine("duckdb").tables
OPENGAUSS = engine("opengauss").tables
TIMESCALE = engine("timescaledb").tables
TYPES = {
    "n": "int32", "big": "int64", "x": "float64", "y": "float32", "word": "text", "doc": "json",
    "at": "timestamp", "ok": "bool", "k": "text",
}  # fmt: skip
START_US = 1_541_030_400_000_000
TABLE: RowTable = {
    "name": "t",
    "metrics": len(TYPES),
    "columns": [{"name": name, "type": kind} for name, kind in TYPES.items()],
    "usual_indexes": ["n", "big", "word", "at"],
    "sequence": "at",
    "sequence_first": START_US,
    "sequence_step": 10_000,
    "row_bytes": 60.0,
}
PLAIN = PlainTable("t")
THOUSAND = TableFacts(rows=1000)
FIVE_PARTS = replace(PLAIN, partition_column="at", partition_rows=200)
NAMES = st.sampled_from([*TYPES, "ß_ü", "Groß"])


def make(control: Control, options: PlainTable, where: TableFacts = THOUSAND) -> None:
    for text in (*POSTGRES.create(TABLE, options, where), *POSTGRES.indexes(TABLE, options, where)):
        control.execute(text)


# Index lists


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("0", []),
        (" none ", []),
        ("3", ["n", "big", "word"]),
        ("n, at:brin , (big,word), k:HASH", ["n", "at:brin", "(big,word)", "k:hash"]),
        ("word:gin(gin_trgm_ops)", ["word:gin(gin_trgm_ops)"]),
        ("(n)", ["n"]),
    ],
)
def test_index_lists_are_read(text: str, expected: list[str]) -> None:
    assert [str(index) for index in POSTGRES.index_list(text, TABLE)] == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "5 indexes are requested, but the table has only 4 columns"),
        ("nothing", "needs a column 'nothing', which the table does not have"),
        ("n,(word,missing)", "needs a column 'missing'"),
        ("n, n", "n twice"),
        ("(n,n)", r"contains the column 'n' twice"),
        ("n big", "cannot be read at 'big'"),
        ("n,", "cannot be read at its end"),
        ("(n,big", r"cannot be read at"),
        ("n:", "cannot be read at ':'"),
        ("-1", "cannot be read at '-1'"),
        ("n; drop table t", "cannot be read"),
    ],
)
def test_index_lists_that_cannot_be_are_refused(text: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        POSTGRES.index_list(text, TABLE)


@given(
    st.lists(
        st.builds(
            Index,
            st.lists(NAMES, min_size=1, max_size=3, unique=True).map(tuple),
            st.sampled_from(["", "brin", "hash"]),
            st.just(""),
        ),
        min_size=1,
        unique=True,
    )
)
def test_a_list_that_was_written_is_read_as_it_was_meant(wanted: list[Index]) -> None:
    columns = [*TYPES, "ß_ü", "Groß"]
    assert list(index_list(", ".join(map(str, wanted)), columns, columns)) == wanted


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        found = POSTGRES.index_list(text, TABLE)
    except LoadstoneError:
        pass
    else:
        assert all(column in TYPES for index in found for column in index.columns)


@given(st.text(min_size=1, max_size=200), st.lists(NAMES, min_size=1, max_size=3, unique=True))
def test_names_of_indexes_fit_what_postgres_keeps(table: str, columns: list[str]) -> None:
    name = Index(tuple(columns)).name(table)
    assert len(name.encode()) <= 63
    assert name != Index(tuple(columns), "brin").name(table)


# PostgreSQL


def test_a_table_has_its_columns_indexes_and_key(database: Database) -> None:
    options = replace(PLAIN, indexes="n, at:brin, (big,word), k:hash", primary_key="big", compression="pglz")
    with control_of(database) as control:
        POSTGRES.refuse(control, TABLE, options)
        make(control, options)
        kinds = {
            row["name"]: (row["type"], row["how"])
            for row in rows(
                control,
                "select attname as name, format_type(atttypid, atttypmod) as type, attcompression as how "
                "from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum",
            )
        }
        assert kinds["at"][0] == "timestamp without time zone"
        assert kinds["word"] == ("text", "p")
        assert kinds["doc"] == ("json", "p")
        assert kinds["n"] == ("integer", "")
        assert indexes(control, "t") == {
            "btree (big)", "btree (n)", "brin (at)", "btree (big, word)", "hash (k)",
        }  # fmt: skip
        assert POSTGRES.existing_columns(control, "t") == TABLE["columns"]


def test_values_may_be_kept_without_compression(database: Database) -> None:
    with control_of(database) as control:
        make(control, replace(FIVE_PARTS, compression="none"))
        control.execute("insert into t (at, word) values ('2018-11-01', repeat('x', 100000))")
        (found,) = rows(control, "select pg_column_size(word) as bytes from t")
        assert found["bytes"] == 100_000
        size = POSTGRES.size(control, "t")
        assert size.toast_bytes > 100_000 > size.table_bytes > 0


def test_partitions_hold_so_many_rows_and_none_is_lost(database: Database) -> None:
    options = replace(FIVE_PARTS, partition_rows=300, indexes="n,at")
    where = TableFacts(first=500, rows=1000)
    with control_of(database) as control:
        make(control, options, where)
        control.execute(
            "insert into t (n, at) select i, timestamp '2018-11-01' + i * interval '10 ms' "
            "from generate_series(400, 1600) as i"
        )
        counts = {
            row["place"]: row["rows"]
            for row in rows(
                control, "select tableoid::regclass::text as place, count(*) as rows from t group by 1"
            )
        }
        assert counts == {
            "t_before": 100, "t_p0000": 300, "t_p0001": 300, "t_p0002": 300, "t_p0003": 100, "t_after": 101,
        }  # fmt: skip
        assert indexes(control, "t_p0002") == {"btree (n)", "btree (at)"}
        # Those that are there stay, as when a broken load goes on.
        for text in POSTGRES.indexes(TABLE, options, where, again=True):
            control.execute(text)
        assert indexes(control, "t_p0002") == {"btree (n)", "btree (at)"}


def test_partitions_may_be_ranges_of_whole_numbers(database: Database) -> None:
    table: RowTable = {**TABLE, "sequence": "n", "sequence_first": 1, "sequence_step": 1}
    options = replace(PLAIN, partition_column="n", partition_rows=500, primary_key="n")
    with control_of(database) as control:
        for text in POSTGRES.create(table, options, THOUSAND):
            control.execute(text)
        control.execute("insert into t (n) select generate_series(1, 1000)")
        counts = rows(control, "select count(*) as rows from t group by tableoid")
        assert [row["rows"] for row in counts] == [500, 500]


def test_postgres_10_makes_the_indexes_of_each_partition() -> None:
    with EmbeddedServer(ServerSpec("pg10", clients=5)) as server, psycopg.connect(
        host=server.connection.host, port=server.connection.port, user=server.connection.user,
        dbname=server.connection.database, autocommit=True,
    ) as connection:  # fmt: skip
        where = TableFacts(100023, rows=1000)
        options = replace(FIVE_PARTS, indexes="n,at:brin", compression="pglz")
        connection.execute("create schema loadstone")
        statements = [*POSTGRES.create(TABLE, options, where), *POSTGRES.indexes(TABLE, options, where)]
        for text in statements:
            connection.execute(text.encode())
        found = connection.execute("select count(*) from pg_indexes where tablename like 't_%'").fetchone()
        assert found == (2 * 7,)
        assert len([note for note in POSTGRES.notes(options, where) if "before 1" in note]) == 2
    with pytest.raises(
        LoadstoneError, match="before version 11 a partitioned table cannot have a primary key"
    ):
        POSTGRES.create(TABLE, replace(FIVE_PARTS, primary_key="at"), where)


def test_tablespaces_hold_table_and_indexes(postgres: EmbeddedServer, database: Database) -> None:
    options = replace(PLAIN, indexes="n", tablespace="pg_default", index_tablespace="elsewhere")
    with control_of(database) as control:
        with pytest.raises(LoadstoneError, match="tablespace 'elsewhere'") as refused:
            POSTGRES.refuse(control, TABLE, options)
        assert "pg_default" in refused.value.hint
        folder = postgres.data_directory.parent / "elsewhere"
        folder.mkdir()
        owner = postgres.data_directory.stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
        control.execute(f"create tablespace elsewhere location '{folder}'")
        try:
            POSTGRES.refuse(control, TABLE, options)
            make(control, replace(options, primary_key="big"))
            found = rows(
                control,
                "select c.relname as name from pg_class c join pg_tablespace s on s.oid = c.reltablespace "
                "where s.spcname = 'elsewhere' order by 1",
            )
            assert [row["name"] for row in found] == ["t_n_idx", "t_pkey"]
            control.execute("drop table t")
        finally:
            control.execute("drop tablespace elsewhere")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("word:gin", "needs an operator class: text has no default operator class for gin"),
        ("word:gin(no_such_ops)", "needs an operator class for gin that the server does not have"),
        ("doc", "json has no default operator class for btree"),
        ("n:zonemap", "needs the access method 'zonemap'"),
        ("(n,word):hash", "an index with method 'hash' can have only one column"),
    ],
)
def test_indexes_that_the_server_cannot_make_are_refused(database: Database, text: str, words: str) -> None:
    with control_of(database) as control, pytest.raises(LoadstoneError, match=words) as refused:
        POSTGRES.refuse(control, TABLE, replace(PLAIN, indexes=text))
    assert refused.value.hint


def test_an_operator_class_of_another_schema_is_named_with_it(database: Database) -> None:
    with control_of(database) as control:
        control.execute("create extension pg_trgm schema public")
        with pytest.raises(LoadstoneError, match="is in the schema 'public'") as refused:
            POSTGRES.refuse(control, TABLE, replace(PLAIN, indexes="word:gin(gin_trgm_ops)"))
        assert "Write public.gin_trgm_ops" in refused.value.hint
        options = replace(PLAIN, indexes="word:gin(public.gin_trgm_ops)")
        POSTGRES.refuse(control, TABLE, options)
        make(control, options)
        assert indexes(control, "t") == {"gin (word public.gin_trgm_ops)"}


@pytest.mark.parametrize(
    ("options", "where", "words"),
    [
        ({"primary_key": "zz"}, THOUSAND, "the primary key of the table 't' needs a column 'zz'"),
        ({"partition_rows": 10, "partition_column": "n"}, THOUSAND, "cannot be partitioned by n"),
        ({"partition_rows": 10}, THOUSAND, "cannot be partitioned by no column"),
        ({"partition_rows": 10, "partition_column": "at"}, TableFacts(), "no column is known to grow"),
        (
            {"partition_rows": 100, "partition_column": "at", "primary_key": "n"},
            THOUSAND,
            "the primary key 'n'",
        ),
        (
            {"partition_rows": 1, "partition_column": "at"},
            TableFacts(rows=20_000),
            "20,000 partitions, and at most 10,000 are allowed",
        ),
        ({"form": "columnar"}, THOUSAND, "does not support tables of the form 'columnar'"),
        ({"indexes": "99"}, THOUSAND, "99 indexes are requested"),
    ],
)
def test_wishes_that_contradict_each_other_are_refused(
    options: dict[str, Any], where: TableFacts, words: str
) -> None:
    with pytest.raises(LoadstoneError, match=words) as refused:
        POSTGRES.create(TABLE, replace(PLAIN, **options), where)
    assert refused.value.hint


def test_ddl_for_partitions_is_ready_to_be_run(database: Database) -> None:
    text = partition_ddl(POSTGRES, TABLE, replace(FIVE_PARTS, indexes="2"), THOUSAND)
    with control_of(database) as control:
        for statement in text.split(";\n"):
            control.execute(statement)
        assert indexes(control, "t_p0004") == {"btree (n)", "btree (big)"}
    assert "for values from ('2018-11-01 00:00:02.000000') to ('2018-11-01 00:00:04.000000');" in text


# Fingerprints: those of generated rows are compared in test_bulk.py

EMPTY = {"rows": "0", "bytes": "0", "content": "0", "numbers": "0", "nulls": [0] * len(TYPES)}


def test_the_fingerprint_of_a_date_is_that_of_every_datestyle(database: Database) -> None:
    dated: RowTable = {**TABLE, "columns": [{"name": "day", "type": "date"}]}
    with control_of(database) as control:
        control.execute("create table dated (day date)")
        control.execute("insert into dated values ('2008-10-03'), (null), ('infinity'), ('0044-03-15 BC')")
        found = control.execute(POSTGRES.fingerprint(dated, "dated")).fetchone()
        control.execute("delete from dated where day is null or not isfinite(day) or day < '0001-01-01'")
        usual = control.execute(POSTGRES.fingerprint(dated, "dated")).fetchone()
        control.execute("set datestyle to 'German, DMY'")
        assert control.execute(POSTGRES.fingerprint(dated, "dated")).fetchone() == usual
    assert found is not None
    assert found["nulls"] == [1]


def test_fingerprints_are_the_same_on_both_engines(database: Database) -> None:
    values = (
        "insert into t values "
        "(1, -5, 1.5, 2.5, 'a|b', '{\"x\": 1}', '2018-11-01 00:00:01.500001', true, 'ü'), "
        "(null, null, null, null, null, null, null, null, null), "
        "(7, 9223372036854775807, -1e10, 0.1, '\\N', '[]', '1969-12-31 23:59:59.999999', false, '')"
    )
    with control_of(database) as control, open_target(parse_target("duckdb:"), 1) as opened:
        other = opened.connect("test")
        opened.engine.create_workspace(other)
        make(control, PLAIN)
        for text in DUCKDB.create(TABLE, PLAIN):
            other.execute(text)
        assert control.execute(POSTGRES.fingerprint(TABLE, "t")).fetchone() == EMPTY
        assert other.execute(DUCKDB.fingerprint(TABLE, "t")).fetchone() == EMPTY
        control.execute(values)
        other.execute(values)
        found = control.execute(POSTGRES.fingerprint(TABLE, "t")).fetchone()
        assert found == other.execute(DUCKDB.fingerprint(TABLE, "t")).fetchone()
        assert found is not None
        assert found["rows"] == "3"
        assert found["nulls"] == [1] * len(TYPES)
        assert found["bytes"] == str(len('a|b{"x": 1}ü'.encode()) + len("\\N[]"))
        control.execute("update t set word = 'a|c' where n = 1")
        changed = control.execute(POSTGRES.fingerprint(TABLE, "t")).fetchone()
        assert changed is not None
        assert changed["content"] != found["content"]


# Other engines


def test_duckdb_refuses_what_it_does_not_have() -> None:
    for options, words in (
        (FIVE_PARTS, "no partitions"),
        (replace(PLAIN, tablespace="x"), "no tablespaces"),
        (replace(PLAIN, indexes="n:brin"), "cannot create the index n:brin"),
        (replace(PLAIN, indexes="(n"), "cannot be read"),
    ):
        with pytest.raises(LoadstoneError, match=words):
            DUCKDB.create(TABLE, options, THOUSAND)
    made = DUCKDB.create(TABLE, replace(PLAIN, form="columnar", compression="lz4"), THOUSAND)
    assert made == DUCKDB.create(TABLE, PLAIN, THOUSAND)
    assert any(
        "how each column is compressed" in note for note in DUCKDB.notes(replace(PLAIN, compression="lz4"))
    )


def test_opengauss_has_its_partitions_in_one_statement() -> None:
    options = replace(FIVE_PARTS, indexes="n", form="columnar", index_tablespace="fast")
    (text,) = OPENGAUSS.create(TABLE, options, THOUSAND)
    assert (
        'with (orientation = column) partition by range ("at") (partition "t_p0000" values less than' in text
    )
    assert text.endswith('partition "t_after" values less than (maxvalue))')
    (index,) = OPENGAUSS.indexes(TABLE, options, THOUSAND)
    assert index == 'create index "t_n_idx" on "loadstone"."t" ("n") local tablespace "fast"'


def test_timescale_keeps_columns_in_chunks() -> None:
    options = replace(PLAIN, form="columnar", partition_rows=200, partition_column="at")
    made = TIMESCALE.create(TABLE, options, THOUSAND)
    assert made[-1].startswith(
        "select create_hypertable('\"loadstone\".\"t\"', by_range('at', interval '2000000 microseconds')"
    )
    assert any("enable_columnstore" in text for text in TIMESCALE.after_load(TABLE, options))
    assert not TIMESCALE.after_load(TABLE, PLAIN)
    with pytest.raises(LoadstoneError, match="no column is known to grow"):
        TIMESCALE.create({**TABLE, "sequence": None}, options, THOUSAND)
    with pytest.raises(LoadstoneError, match="the primary key 'n'"):
        TIMESCALE.create(TABLE, replace(options, primary_key="n"), THOUSAND)


@pytest.mark.parametrize("name", ["pg", "pg10"])
def test_engines_offer_what_scenarios_ask_for(name: str) -> None:
    with open_target(parse_target(name), 2) as opened, closing(opened.connect("test")) as control:
        words = opened.engine.capabilities(control)
        assert {"load", "load:insert", "load:files", "compression:none", "partitioning", "brin"} <= words
        assert "form:columnar" not in words
        try:
            control.execute("set default_toast_compression = lz4")
        except psycopg.Error:
            assert "compression:lz4" not in words
        else:
            assert "compression:lz4" in words
