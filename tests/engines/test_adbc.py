"""Connections of the core through ADBC, by DuckDB's library: answers, rows, errors by kind, interruption."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadstone import _core
from loadstone.engines.duckdb.adbc import spec
from loadstone.workload.queries.answer import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDLESS = "select max(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"
T = ("memory", "main", "t")


def opened(path: Path | None = None, **settings: str) -> _core.AdbcDatabase:
    return _core.AdbcDatabase(json.dumps(spec(path, settings)))


@pytest.fixture
def database() -> Iterator[_core.AdbcDatabase]:
    database = opened()
    yield database
    database.close()


@pytest.fixture
def connection(database: _core.AdbcDatabase) -> Iterator[_core.AdbcConnection]:
    connection = database.connect()
    yield connection
    connection.close()


def asked(connection: _core.AdbcConnection, sql: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pa.table(connection.query(sql)).to_pylist()
    return rows


def refused(connection: _core.AdbcConnection, sql: str) -> tuple[str, str]:
    with pytest.raises(_core.AdbcError) as error:
        connection.query(sql)
    state, said = error.value.args
    return state, said


@pytest.mark.parametrize(
    "sql",
    [
        "select 1 as one, null as nothing, true as yes, 'Größe' as text, 'x'::blob as bytes",
        "select i, i::varchar as s, i * 0.5 as x, i::hugeint as h from range(5000) r(i) order by i",
        "select 12.50::decimal(10, 2) as d, 3.5::float as f, 'nan'::double as n, '-inf'::double as low",
        "select timestamptz '2016-01-01 00:00:00+00' as t, date '2016-01-02' as d, time '01:02:03' as c",
        "select interval '1 month 2 days 3 seconds' as i, timestamp_ns '2016-01-01 00:00:00.000000001' as n",
        "select [1, 2, null] as l, {'a': 1, 'b': 'x'} as s, map {'k': 1} as m, '{\"j\": 1}'::json as j",
        "select uuid '00000000-0000-0000-0000-000000000001' as u, 'a'::enum('a', 'b') as e",
        "select 1 as a where false",
    ],
)
def test_answers_are_those_of_the_package(connection: _core.AdbcConnection, sql: str) -> None:
    with duckdb.connect() as package:
        package.execute("set TimeZone = 'UTC'")
        theirs = package.sql(sql).to_arrow_table()
    connection.query("set TimeZone = 'UTC'")
    ours = pa.table(connection.query(sql))
    assert ours.schema == theirs.schema
    assert ours.num_rows == theirs.num_rows
    assert digest(ours) == digest(theirs)


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("selec 1", "ParserException"),
        ("select * from nowhere", "CatalogException"),
        ("select nothing from range(3)", "BinderException"),
        ("select ('x' || i)::int from range(3) r(i)", "ConversionException"),
        ("select error('an error of the query')", "InvalidInputException"),
    ],
)
def test_errors_are_called_as_the_package_calls_them(
    connection: _core.AdbcConnection, sql: str, state: str
) -> None:
    with duckdb.connect() as package, pytest.raises(duckdb.Error) as theirs:
        package.sql(sql).to_arrow_table()
    assert refused(connection, sql)[0] == type(theirs.value).__name__ == state
    assert asked(connection, "select 1 as one") == [{"one": 1}]


def test_an_answer_that_fails_half_way_is_no_answer(connection: _core.AdbcConnection) -> None:
    state, said = refused(
        connection, "select (case when i < 900000 then '1' else 'x' end)::int from range(1000000) r(i)"
    )
    assert state == "ConversionException"
    assert said.startswith("Conversion Error: ")


def test_a_lack_of_memory_has_its_name(
    database: _core.AdbcDatabase, connection: _core.AdbcConnection
) -> None:
    connection.query("set memory_limit = '20MB'")
    connection.query("set temp_directory = ''")
    sql = "select count(*) from (select i, random() as x from range(3000000) r(i) order by x)"
    assert refused(connection, sql)[0] == "OutOfMemoryException"
    assert asked(database.connect(), "select 1 as one") == [{"one": 1}]


def test_a_conflict_of_two_transactions_has_its_name(
    database: _core.AdbcDatabase, connection: _core.AdbcConnection
) -> None:
    other = database.connect()
    connection.query("create table t as select 1 as i")
    connection.query("begin")
    other.query("begin")
    connection.query("update t set i = 2")
    assert refused(other, "update t set i = 3")[0] == "TransactionException"
    other.query("rollback")
    connection.query("commit")
    assert asked(other, "select i from t") == [{"i": 2}]
    other.close()


def test_a_full_disk_is_told_and_the_database_goes_on(tmp_path: Path) -> None:
    """A file that may not grow beyond a limit stands in for it: writing fails half way."""
    text = (
        "import pathlib, resource, signal, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_adbc import opened, refused, asked\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "connection = opened(pathlib.Path(sys.argv[1])).connect()\n"
        "connection.query('create table t (i bigint, x double)')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))\n"
        "print(refused(connection, 'insert into t select i, random() from range(2000000) r(i)')[0])\n"
        "print(asked(connection, 'select count(*) as n from t'))\n"
    )
    given = [sys.executable, "-c", text, f"{tmp_path}/small.duckdb", str(Path(__file__).parent)]
    done = subprocess.run(given, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["IOException", "[{'n': 0}]"]


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(0, 5000), piece=st.sampled_from([1, 7, 2048, 100_000]))
def test_rows_go_in_whole_whatever_the_pieces(rows: int, piece: int) -> None:
    piece = max(piece, rows // 50 + 1)  # a row at a time would take long
    database = opened()
    connection = database.connect()
    connection.query("create table t (i bigint, s varchar)")
    values = pa.record_batch({"i": range(rows), "s": [None if i % 3 == 0 else f"v{i}" for i in range(rows)]})
    connection.append(T, values, piece)
    assert pa.table(connection.query("select * from t order by i")).to_pylist() == values.to_pylist()
    connection.close()
    database.close()


def test_rows_of_other_types_are_cast(connection: _core.AdbcConnection) -> None:
    """DuckDB has room for one of its vectors where it casts: more rows at once would be written beyond it."""
    connection.query("create table t (i integer, t timestamptz, x double)")
    count = 20_000
    rows = pa.record_batch(
        {
            "i": pa.array(range(count), pa.int64()),
            "t": pa.array([i * 10**9 for i in range(count)], pa.timestamp("ns", "UTC")),
            "x": pa.array([float(i) for i in range(count)], pa.float32()),
        }
    )
    connection.append(T, rows, 2048)
    sql = "select count(*) as n, sum(i) as i, sum(epoch(t))::bigint as t, sum(x)::bigint as x from t"
    total = count * (count - 1) // 2
    assert asked(connection, sql) == [{"n": count, "i": total, "t": total, "x": total}]


def test_rows_that_are_refused_leave_nothing_behind(connection: _core.AdbcConnection) -> None:
    connection.query("create table t (i integer primary key)")
    rows = pa.record_batch({"i": pa.array([1, 2, 2], pa.int32())})
    with pytest.raises(_core.AdbcError) as error:
        connection.append(T, rows, 2048)
    assert error.value.args[0] == "ConstraintException"
    with pytest.raises(_core.AdbcError, match="does not exist"):
        connection.append(("memory", "main", "nowhere"), rows, 2048)
    assert asked(connection, "select count(*) as n from t") == [{"n": 0}]


def test_a_statement_runs_once_for_each_row(connection: _core.AdbcConnection) -> None:
    connection.query("create table t (i bigint, s varchar)")
    rows = pa.record_batch({"i": [0, 1, 2, 3], "s": ["a", None, "c", "d"]})
    connection.each("insert into t values (?, ?)", rows.slice(1, 3))
    assert asked(connection, "select * from t order by i") == rows.slice(1, 3).to_pylist()


def failing(connection: _core.AdbcConnection, told: list[str], begun: threading.Event) -> None:
    begun.set()
    told.append(refused(connection, ENDLESS)[0])


def test_a_call_is_interrupted_by_another_thread_and_the_next_is_not(
    connection: _core.AdbcConnection,
) -> None:
    connection.interrupt()
    assert asked(connection, "select 1 as one") == [{"one": 1}]
    told, begun = list[str](), threading.Event()
    thread = threading.Thread(target=failing, args=(connection, told, begun))
    thread.start()
    begun.wait()
    while thread.is_alive():
        connection.interrupt()
        thread.join(0.05)
    assert told == ["InterruptException"]
    assert asked(connection, "select 1 as one") == [{"one": 1}]


def test_closing_ends_the_call_that_another_thread_is_in(database: _core.AdbcDatabase) -> None:
    connection = database.connect()
    told, begun = list[str](), threading.Event()
    thread = threading.Thread(target=failing, args=(connection, told, begun))
    thread.start()
    begun.wait()
    connection.close()
    thread.join(20)
    assert told in (["InterruptException"], [""]), "before or after the call began"
    connection.close()
    assert refused(connection, "select 1") == ("", "the connection is closed")


def test_a_database_that_is_closed_gives_no_connection(database: _core.AdbcDatabase) -> None:
    database.close()
    database.close()
    with pytest.raises(_core.AdbcError, match="the database is closed"):
        database.connect()


def test_what_cannot_be_opened_says_why() -> None:
    with pytest.raises(ValueError, match="missing field"):
        _core.AdbcDatabase("{}")
    with pytest.raises(_core.AdbcError, match="not recognized: nonsense"):
        opened(nonsense="1")
    with pytest.raises(_core.AdbcError) as error:
        opened(Path("/nowhere/x.duckdb"))
    assert error.value.args[0] == "IOException"
