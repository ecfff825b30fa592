"""DuckDB by the C interface of its library: answers, errors by kind, interruption, one instance of a file."""

from __future__ import annotations

import contextlib
import os
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

import loadstone
from loadstone import _core
from loadstone.engines.duckdb.library import opened
from loadstone.workload.queries.answer import digest

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDLESS = "select max(a.i * b.i) from range(10000000) a(i), range(10000000) b(i)"


@pytest.fixture
def database() -> Iterator[_core.DuckDatabase]:
    database = opened(None, {})
    yield database
    database.close()


@pytest.fixture
def connection(database: _core.DuckDatabase) -> Iterator[_core.DuckConnection]:
    connection = database.connect()
    yield connection
    connection.close()


def asked(connection: _core.DuckConnection, sql: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pa.table(connection.query(sql)).to_pylist()
    return rows


def refused(connection: _core.DuckConnection, sql: str) -> tuple[str, str]:
    with pytest.raises(duckdb.Error) as error:
        connection.query(sql)
    return type(error.value).__name__, str(error.value)


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
def test_answers_are_those_of_the_package(connection: _core.DuckConnection, sql: str) -> None:
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
    connection: _core.DuckConnection, sql: str, state: str
) -> None:
    with duckdb.connect() as package, pytest.raises(duckdb.Error) as theirs:
        package.sql(sql).to_arrow_table()
    assert refused(connection, sql)[0] == type(theirs.value).__name__ == state
    assert asked(connection, "select 1 as one") == [{"one": 1}]


def test_an_answer_that_fails_half_way_is_no_answer(connection: _core.DuckConnection) -> None:
    state, said = refused(
        connection, "select (case when i < 900000 then '1' else 'x' end)::int from range(1000000) r(i)"
    )
    assert state == "ConversionException"
    assert said.startswith("Conversion Error: ")


def test_a_lack_of_memory_has_its_name(
    database: _core.DuckDatabase, connection: _core.DuckConnection
) -> None:
    connection.query("set memory_limit = '20MB'")
    connection.query("set temp_directory = ''")
    sql = "select count(*) from (select i, random() as x from range(3000000) r(i) order by x)"
    assert refused(connection, sql)[0] == "OutOfMemoryException"
    assert asked(database.connect(), "select 1 as one") == [{"one": 1}]


def test_a_conflict_of_two_transactions_has_its_name(
    database: _core.DuckDatabase, connection: _core.DuckConnection
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


@pytest.mark.slow
def test_a_full_disk_is_told_and_the_database_goes_on(tmp_path: Path) -> None:
    """A file that may not grow beyond a limit stands in for it: writing fails half way."""
    text = (
        "import pathlib, resource, signal, sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_duckdb_library import opened, refused, asked\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "connection = opened(pathlib.Path(sys.argv[1]), {}).connect()\n"
        "connection.query('create table t (i bigint, x double)')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))\n"
        "print(refused(connection, 'insert into t select i, random() from range(2000000) r(i)')[0])\n"
        "print(asked(connection, 'select count(*) as n from t'))\n"
    )
    given = [sys.executable, "-c", text, f"{tmp_path}/small.duckdb", str(Path(__file__).parent)]
    done = subprocess.run(given, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["IOException", "[{'n': 0}]"]


@given(
    values=st.dictionaries(
        st.from_regex("[a-z]{1,8}", fullmatch=True),
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=30, deadline=None)
def test_parameters_arrive_as_they_were_given(values: dict[str, object]) -> None:
    values = {f"p_{name}": value for name, value in values.items()}
    with (
        contextlib.closing(opened(None, {})) as database,
        contextlib.closing(database.connect()) as connection,
    ):
        said = ", ".join(f"${name} as {name}" for name in values)
        (row,) = pa.table(connection.query(f"select {said}", values)).to_pylist()
    assert repr(row) == repr(values), "also of NaN"


def test_wrong_parameters_and_texts_are_refused(connection: _core.DuckConnection) -> None:
    with pytest.raises(duckdb.InvalidInputException, match="has no parameter called b"):
        connection.query("select $a", {"a": 1, "b": 2})
    with pytest.raises(duckdb.Error, match=r"(?i)parameter"):
        connection.query("select $a, $b", {"a": 1})
    with pytest.raises(TypeError, match="cannot be a list"):
        connection.query("select $a", {"a": [1]})
    with pytest.raises(duckdb.ParserException, match="zero byte at place 8"):
        connection.query("select '\0'")
    assert asked(connection, "select 1 as one; select 2 as two") == [{"two": 2}]


def failing(connection: _core.DuckConnection, told: list[str], begun: threading.Event) -> None:
    begun.set()
    told.append(refused(connection, ENDLESS)[0])


def test_a_call_is_interrupted_by_another_thread_and_the_next_is_not(
    connection: _core.DuckConnection,
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


def test_closing_ends_the_call_that_another_thread_is_in(database: _core.DuckDatabase) -> None:
    connection = database.connect()
    told, begun = list[str](), threading.Event()
    thread = threading.Thread(target=failing, args=(connection, told, begun))
    thread.start()
    begun.wait()
    connection.close()
    thread.join(120)
    assert told in (["InterruptException"], ["ConnectionException"]), "after or before the call began"
    connection.close()
    assert refused(connection, "select 1") == ("ConnectionException", "the connection is closed")


def test_a_database_that_is_closed_gives_no_connection(database: _core.DuckDatabase) -> None:
    database.close()
    database.close()
    with pytest.raises(duckdb.ConnectionException, match="the database is closed"):
        database.connect()


def test_a_file_has_one_instance_until_its_last_connection_is_closed(tmp_path: Path) -> None:
    """Two instances in one process would each lose what the other commits."""
    path = tmp_path / "one.duckdb"
    database = opened(path, {})
    connection = database.connect()
    database.close()
    for name in (path, tmp_path / "." / "one.duckdb", Path(os.path.relpath(path))):
        with pytest.raises(duckdb.ConnectionException, match="is open in this process"):
            opened(name, {})
    connection.query("create table t as select 42 as answer")
    connection.close()
    with contextlib.closing(opened(path, {})) as again:
        assert asked(again.connect(), "select answer from t") == [{"answer": 42}]


def test_nothing_of_ours_opens_a_file_by_the_package() -> None:
    assert loadstone.__file__ is not None
    modules = list(Path(loadstone.__file__).parent.rglob("*.py"))
    assert len(modules) > 100
    assert [path for path in modules if "duckdb.connect(" in path.read_text()] == []


def test_a_file_may_be_opened_to_be_read(tmp_path: Path) -> None:
    path = tmp_path / "read.duckdb"
    with (
        contextlib.closing(opened(path, {})) as database,
        contextlib.closing(database.connect()) as connection,
    ):
        connection.query("create table t as select 42 as answer")
    path.chmod(0o444)
    with contextlib.closing(opened(path, {"access_mode": "READ_ONLY"})) as database:
        connection = database.connect()
        assert asked(connection, "select answer from t") == [{"answer": 42}]
        assert refused(connection, "insert into t values (1)")[0] == "InvalidInputException"
        connection.close()


def test_what_cannot_be_opened_says_why() -> None:
    with pytest.raises(ValueError, match="missing field"):
        _core.DuckDatabase("{}")
    with pytest.raises(duckdb.InvalidInputException, match="nonsense"):
        opened(None, {"nonsense": "1"})
    with pytest.raises(duckdb.InvalidInputException, match="threads"):
        opened(None, {"threads": "few"})
    with pytest.raises(duckdb.IOException):
        opened(Path("/nowhere/x.duckdb"), {})


def test_another_library_is_refused(tmp_path: Path) -> None:
    text = (
        "import json, sys, duckdb\n"
        "from loadstone import _core\n"
        "try: _core.DuckDatabase(json.dumps({'library': sys.argv[1]}))\n"
        "except duckdb.Error as error: print(error)\n"
    )
    (tmp_path / "no-library.so").write_text("text")
    for library in (_core.__file__, str(tmp_path / "no-library.so")):
        command = [sys.executable, "-c", text, library]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "is not usable as DuckDB" in said
