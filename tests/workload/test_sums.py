"""Counts and sums of a table's content, for engines that cannot hash: what they notice and what not."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from loadstone.engines.heavydb.tables import HeavyTables
from loadstone.model import BulkLoad, PlainTable, Rows
from loadstone.workload.load import look
from loadstone.workload.load.sums import ColumnSums, check_sums

if TYPE_CHECKING:
    from loadstone.workload.load import Content


def summed(kind: str, *parts: pa.Array) -> ColumnSums:
    known = ColumnSums({"name": "c", "type": kind})
    for part in parts:
        known.add(part)
    return known


@pytest.mark.parametrize(
    ("kind", "values", "answer"),
    [
        ("int16", pa.array([3, None, -5], pa.int16()), {"x_count": 2, "x_sum": -2}),
        ("int32", pa.array([2**31 - 1] * 3, pa.int32()), {"x_count": 3, "x_sum": 3 * (2**31 - 1)}),
        ("int64", pa.array([-65_522, 2**62], pa.int64()), {"x_count": 2, "x_sum": -1 + 2**62 % 65_521}),
        ("bool", pa.array([True, None, True, False]), {"x_count": 3, "x_sum": 2}),
        ("float64", pa.array([0.5, None, -2.0]), {"x_count": 2, "x_total": -1.5}),
        ("text", pa.array(["a", "", "a", None]), {"x_count": 3, "x_distinct": 2}),
        ("date", pa.array([date(1970, 1, 2), date(2008, 2, 29)]), {"x_count": 2, "x_sum": 20_879 + 32_741}),
        (
            "timestamp",
            pa.array([datetime(1970, 1, 1, 0, 0, 7, 999_999, UTC), None], pa.timestamp("us", "UTC")),
            {"x_count": 1, "x_sum": 7},
        ),
        ("json", pa.array(["{}", None]), {"x_count": 1}),
    ],
)
def test_the_same_content_agrees_and_another_does_not(
    kind: str, values: pa.Array, answer: dict[str, Any]
) -> None:
    known = summed(kind, values.slice(0, 1), values.slice(1))
    assert known.differing(answer, "x_") == []
    for name, value in answer.items():
        assert known.differing({**answer, name: value + 1}, "x_") == [name]


def test_no_values_are_nulls_in_sql() -> None:
    known = summed("int32", pa.array([None, None], pa.int32()))
    assert known.differing({"x_count": 0, "x_sum": None}, "x_") == []


def test_floats_may_be_added_in_another_order_but_not_be_others() -> None:
    known = summed("float32", pa.array([0.1] * 1000, pa.float32()))
    exact = float(pa.scalar(0.1, pa.float32()).as_py()) * 1000
    assert known.differing({"x_count": 1000, "x_total": exact * (1 + 1e-12)}, "x_") == []
    assert known.differing({"x_count": 1000, "x_total": exact * (1 + 1e-6)}, "x_") == ["x_total"]


def test_texts_are_told_apart_up_to_a_limit_and_memory_stays_flat() -> None:
    known = summed("text", pa.array([str(n) for n in range(10_001)]))
    assert known.differing({"x_count": 10_001, "x_distinct": 7}, "x_") == []
    assert known._distinct is None


def test_a_set_is_compared_whole() -> None:
    bulk = BulkLoad(rows=Rows(set="types", rows=500, options={"table": "union"}), table=PlainTable("t"))
    content = look(bulk, HeavyTables())
    names = [column["name"] for column in content.table["columns"]]
    answer = _answers_of(content)
    check = check_sums("t", content, answer)
    assert check["passed"], check
    assert check["expected"] == f"500 rows, {len(answer) - 1} counts and sums of columns"
    wrong = check_sums("t", content, answer | {"row_count": 499, "c0_count": 3})
    assert not wrong["passed"]
    assert wrong["detail"].endswith(f"; different: row_count, {names[0]} (count)")


def _answers_of(content: Content) -> dict[str, Any]:
    """Ask DuckDB, by HeavyDB's own query."""
    import json  # noqa: PLC0415 - for this only

    from loadstone import _core  # noqa: PLC0415

    stream = _core.DataStream(json.dumps(content.data), fingerprints=False)
    batches = []
    while (parts := stream.read(100)) is not None:
        batches += [pa.record_batch(part) for part in parts]
    database = duckdb.connect()
    database.register("t", pa.Table.from_batches(batches))
    query = HeavyTables().sums(content.table, "t")
    row: dict[str, Any] = database.sql(query).to_arrow_table().to_pylist()[0]
    return row
