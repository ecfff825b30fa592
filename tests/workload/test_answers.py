"""Answers as digests: what they see, and that every way to an answer leads to the same one."""

from __future__ import annotations

import dataclasses
import json
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support import digest_reference

from loadstone import _core
from loadstone.workload.drive import connection_document
from loadstone.workload.queries.answer import compare, digest

if TYPE_CHECKING:
    from support.sandbox import Database

Row = tuple[Any, ...]
# How long an example takes says nothing on a machine that others use too.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = ["bucket", "name", "count", "mean", "other"]
BUCKET = st.integers(0, 4).map(lambda hours: datetime(2016, 1, 1, tzinfo=UTC) + timedelta(hours=hours))
ROW = st.tuples(
    BUCKET,
    st.none() | st.text("abc", max_size=3),
    st.integers(0, 3),
    st.floats(-90, 90),
    st.none() | st.floats(0, 100),
)
ROWS = st.lists(ROW, min_size=2, max_size=30)
TYPES = [pa.timestamp("us", tz="UTC"), pa.string(), pa.int64(), pa.float64(), pa.float64()]


def told(rows: list[Row]) -> dict[str, Any]:
    """The digest of rows of `ROW`; both ways to it must agree on them, however they were made."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in NAMES]
    arrays = [pa.array(values, kind) for values, kind in zip(columns, TYPES, strict=True)]
    found = digest(pa.table(arrays, names=NAMES))
    assert_same(found, digest_reference.digest(NAMES, rows))
    return found


def of(names: list[str], *rows: Row) -> dict[str, Any]:
    """The digest of rows whose values have whatever type Arrow gives them."""
    return digest(pa.table([pa.array(list(column)) for column in zip(*rows, strict=True)], names=names))


def replaced(rows: list[Row], at: int, column: int, value: object) -> list[Row]:
    row = list(rows[at])
    row[column] = value
    return [*rows[:at], tuple(row), *rows[at + 1 :]]


@unhurried
@given(ROWS, st.randoms())
def test_the_order_of_rows_does_not_matter(rows: list[Row], order: Any) -> None:
    shuffled = list(rows)
    order.shuffle(shuffled)
    assert compare(told(rows), told(shuffled)) is None


@unhurried
@given(ROWS, st.data(), st.integers(0, 4))
def test_a_changed_value_is_seen(rows: list[Row], data: Any, column: int) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    before = rows[at][column]
    more = [timedelta(microseconds=1), "x", 1, 1e-4, 1e-4][column]
    after = [datetime(2017, 1, 1, tzinfo=UTC), "", 0, 0.0, 0.0][column] if before is None else before + more
    words = compare(told(rows), told(replaced(rows, at, column, after)))
    assert words is not None
    assert f"column {column + 1} ({NAMES[column]})" in words


@unhurried
@given(ROWS, st.data(), st.integers(0, 4))
def test_values_of_two_rows_swapped_are_seen(rows: list[Row], data: Any, column: int) -> None:
    places = st.integers(0, len(rows) - 1)
    one, other = data.draw(places), data.draw(places)
    swapped = replaced(rows, one, column, rows[other][column])
    swapped = replaced(swapped, other, column, rows[one][column])
    gap = [abs((rows[one][c] or 0) - (rows[other][c] or 0)) for c in (3, 4)]
    assume(all(apart == 0 or apart > 1e-4 for apart in gap))  # below, it is noise
    same = sorted(map(repr, rows)) == sorted(map(repr, swapped))
    assume(same or -0.0 not in (rows[one][column], rows[other][column]))
    assert (compare(told(rows), told(swapped)) is None) == same


@unhurried
@given(ROWS, st.data())
def test_a_missing_row_and_a_duplicate_are_seen(rows: list[Row], data: Any) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    whole, count = told(rows), len(rows)
    fewer = compare(whole, told(rows[:at] + rows[at + 1 :]))
    assert fewer == f"row count {count} here, {count - 1} there"
    assert compare(whole, told([*rows, rows[at]])) == f"row count {count} here, {count + 1} there"


@unhurried
@given(ROWS)
def test_noise_in_the_last_digits_is_no_difference(rows: list[Row]) -> None:
    noisy = [(*row[:3], row[3] * (1 + 1e-13), row[4] and row[4] * (1 - 1e-13)) for row in rows]
    assert compare(told(rows), told(noisy)) is None


def test_it_is_what_the_core_computes_for_the_same_rows() -> None:
    # crates/drive/src/answer/tests.rs holds the same figures.
    moment = datetime(2000, 1, 1, microsecond=7, tzinfo=UTC)
    rows: list[Row] = [("a", 2.0, None), ("b", -1.0, moment)]
    for found in (of(["Name"] * 3, *rows), digest_reference.digest(["Name"] * 3, rows)):
        assert [column["name"] for column in found["columns"]] == ["name"] * 3
        assert found["keys"] == 2_732_375_162
        assert found["columns"][1]["weighted"] == 2.128461355803964
        assert found["columns"][2]["crc"] == 1_413_236_640
        assert found["columns"][2]["min_us"] == 946_684_800_000_007


def test_kinds_of_values() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    pairs: list[tuple[object, object]] = [
        (datetime(2016, 1, 1, 5, 30, tzinfo=zone), datetime(2016, 1, 1)),  # noqa: DTZ001 - naive means UTC
        (date(2016, 1, 1), datetime(2016, 1, 1, tzinfo=UTC)),
        (Decimal("1.50"), 1.5),
        (True, 1),
        (bytearray(b"ab"), "ab"),
        (None, None),
    ]
    for one, other in pairs:
        assert compare(of(["x"], (one,)), of(["x"], (other,))) is None, (one, other)
        assert compare(of(["x"], (one,)), digest_reference.digest(["x"], [(other,)])) is None, (one, other)
    beyond_arrow: list[tuple[object, float]] = [
        (Decimal("NaN"), float("nan")),
        (10**400, float("inf")),
    ]
    for rare, usual in beyond_arrow:
        assert compare(digest_reference.digest(["x"], [(rare,)]), of(["x"], (usual,))) is None, rare


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ((datetime(2016, 1, 1, tzinfo=UTC),), (1,), "a time here, a number there"),
        ((None,), (1,), "not NULL 0 here, 1 there"),
        ((1.0,), (float("nan"),), "count of NaN 0 here, 1 there"),
        (
            (datetime(2016, 1, 1, tzinfo=UTC),),
            (datetime(2016, 1, 1, 1, tzinfo=UTC),),
            "2016-01-01T00:00:00Z here, 2016-01-01T01:00:00Z to",
        ),
        ((5.0,), (5.001,), "column 1 (x): sums differ by 2.0e-04"),
        (("a",), ("b",), "column 1 (x): texts differ"),
        ((1, 2), (1,), "column count 2 here, 1 there"),
    ],
)
def test_differences_are_said_in_words(one: Row, other: Row, words: str) -> None:
    found = compare(of(["x", "y"][: len(one)], one), of(["x"], other))
    assert found is not None
    assert words in found


TABLE = """
create table t as select i,
  timestamptz '2016-01-01 00:00:00+00' + i * interval '17 minutes 0.25 second' as ts,
  case when i % 7 = 0 then null else 'host_' || i % 11 end as name,
  i * 1.25 - 40 as mean
from generate_series(1, 500) as s(i)
"""
EVERYWHERE = {
    "buckets": "select date_trunc('hour', ts) as h, name, count(*), avg(mean), max(i) from t group by 1, 2",
    "rows": "select ts, name, i, mean, i % 2 = 0 as even from t",
    "numbers": "select i, mean, sum(i) from t group by i, mean",
    "spans": "select name, avg(age(ts, timestamp '2016-01-01 00:00:00')) as since from t group by name",
    "nothing": "select ts, name, mean from t where i < 0",
    "one null": "select null::text as a, max(mean) as b from t where i < 0",
    "dates": "select cast(ts as date) as day, min(mean), stddev_samp(mean) from t group by 1",
}
ON_POSTGRES = {
    "types": """select true, 1::int2, 2::int4, 3::int8, 4::oid, 1.5::real, 2.5::float8, 12345.678901::numeric,
        'NaN'::numeric, '-Infinity'::float8, 'x'::text, 'y'::varchar, 'z'::name, 'w'::char(3),
        '{"a": 1}'::json, '{"b": [1, 2]}'::jsonb, '\\x00ff'::bytea, date '2016-02-29',
        timestamp '1969-12-31 23:59:59.999999',
        timestamptz '2016-01-01 12:00:00+05:30', interval '-3 days 04:05:06.7', time '04:05:06.789',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, null::int4""",
    "numerics": "select (i - 3) * power(10::numeric, i * 9 - 90) / 7 from generate_series(1, 20) as s(i)",
}


def driven(database: Database, sql: str, *, binary: bool) -> dict[str, Any]:
    connection = dataclasses.replace(database.server.connection, database=database.name)
    document = {
        "connection": connection_document(connection),
        "queries": {"labels": ["q"], "queries": [[0, sql]], "binary": binary},
        "clients": 1,
        "seed": 1,
    }
    drive = _core.Drive(json.dumps(document))
    drive.start()
    text = drive.wait(30.0)
    assert text is not None
    account = json.loads(text)
    assert account["errors"] == []
    (answer,) = account["queries"]["answers"]
    found: dict[str, Any] = answer["digest"]
    return found


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert compare(one, other) is None
    # And more than that: the same figures, but for a column that has no value to tell its kind.
    assert (one["rows"], one["keys"]) == (other["rows"], other["keys"])
    for mine, theirs in zip(one["columns"], other["columns"], strict=True):
        if mine["count"] == theirs["count"] == 0:
            continue
        for key, value in mine.items():
            if key in ("sum", "abs", "weighted"):
                assert value == pytest.approx(theirs[key], rel=1e-12, abs=1e-300), key
            elif key != "name":
                assert value == theirs[key], key


@pytest.mark.parametrize("name", [*EVERYWHERE, *ON_POSTGRES])
def test_the_wire_in_both_forms_and_psycopg_lead_to_the_same_digest(database: Database, name: str) -> None:
    database.execute(f"alter database {database.name} set timezone to 'UTC'")
    database.execute(TABLE)
    sql = (EVERYWHERE | ON_POSTGRES)[name]
    binary, text = driven(database, sql, binary=True), driven(database, sql, binary=False)
    assert_same(binary, text)
    with database.connect() as connection:
        if name in ("rows", "types"):  # truncation to hours and days would follow the zone
            connection.execute("set timezone to 'Asia/Kolkata'")
        cursor = connection.execute(sql.encode())
        names = [column.name for column in cursor.description or ()]
        assert_same(binary, digest_reference.digest(names, cursor))


@pytest.mark.parametrize("name", EVERYWHERE)
def test_duckdb_and_postgresql_agree(database: Database, name: str) -> None:
    database.execute(f"alter database {database.name} set timezone to 'UTC'")
    database.execute(TABLE)
    sql = EVERYWHERE[name]
    with duckdb.connect() as duck:
        duck.execute("create table t (i integer, ts timestamp, name text, mean decimal(12, 2))")
        with database.connect() as connection:
            duck.executemany(
                "insert into t values (?, ?, ?, ?)",
                connection.execute("select i, ts at time zone 'UTC', name, mean from t").fetchall(),
            )
        duck.execute(sql)
        names = [column[0] for column in duck.description or ()]
        by_rows = digest_reference.digest(names, duck.fetchall())
        by_arrow = digest(duck.sql(sql).to_arrow_table())
    on_postgres = driven(database, sql, binary=True)
    assert compare(on_postgres, by_rows) is None
    assert compare(on_postgres, by_arrow) is None
    assert_same(by_rows, by_arrow)


def test_a_type_of_unknown_form_is_named_and_can_be_compared_as_text(database: Database) -> None:
    sql = "select inet '10.0.0.1', array[1, 2], uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"
    binary, text = driven(database, sql, binary=True), driven(database, sql, binary=False)
    assert binary["columns"][0]["type_oid"] == 869
    assert "compare in text format" in str(compare(binary, text))
    assert text["columns"][0]["crc"] == of(["x"], ("10.0.0.1",))["columns"][0]["crc"]
    assert (
        text["columns"][2]
        == digest_reference.digest(["uuid"], [(uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),)])[
            "columns"
        ][0]
    )


def test_text_in_another_style_is_an_error_that_says_what_is_needed(database: Database) -> None:
    database.execute(f"alter database {database.name} set datestyle to 'German'")
    connection = dataclasses.replace(database.server.connection, database=database.name)
    document = {
        "connection": connection_document(connection),
        "queries": {"labels": ["q"], "queries": [[0, "select now()"]], "binary": False},
        "clients": 1,
        "seed": 1,
    }
    drive = _core.Drive(json.dumps(document))
    drive.start()
    account = json.loads(drive.wait(30.0) or "{}")
    assert account["counts"]["failed"] == 1
    assert account["errors"][0]["sqlstate"] == "answer"
    assert "DateStyle ISO" in account["errors"][0]["message"]
