"""Rows of users' Parquet files: order, columns, types, values that do not fit, damage."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from loadstone.errors import LoadstoneError
from loadstone.formats.casts import UnfitError, cast, fits, shown
from loadstone.formats.parquet import open_rows

if TYPE_CHECKING:
    from pathlib import Path

WANTED = [
    ("name", "text"),
    ("id", "int64"),
    ("at", "timestamp"),
    ("day", "date"),
    ("small", "int16"),
    ("real", "float32"),
    ("is", "bool"),
]
STRICT = [
    ("small", "int16"),
    ("gaps", "int32"),
    ("real", "float32"),
    ("word", "text"),
    ("at", "timestamp"),
    ("day", "date"),
]


def batch(first: int, count: int) -> pa.Table:
    """Return rows of several types, as a program would write them."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([f"text {n}" if n % 3 else None for n in numbers], pa.large_string()),
            "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
            "at": pa.array([n * 1001 for n in numbers], pa.timestamp("ms")),
            "small": pa.array([n % 99 for n in numbers], pa.int16()),
            "is": pa.array([n % 2 == 0 for n in numbers]),
            "real": pa.array([n % 100 / 8 for n in numbers], pa.float32()),
        }
    )


def loosely_typed(numbers: list[int]) -> pa.Table:
    """Return columns that are typed as programs do by themselves."""
    words = pa.array(["ab"[n % 2] for n in numbers]).dictionary_encode()
    return pa.table(
        {
            "small": pa.array(numbers, pa.int64()),
            "gaps": pa.array([float(n) for n in numbers]),
            "real": pa.array([n / 8 for n in numbers]),
            "word": words,
            "at": pa.array([n * 5000 for n in numbers], pa.timestamp("ns")),
            "day": pa.array([n * 86_400_000 for n in numbers], pa.timestamp("ms")),
        }
    )


def write(folder: Path, name: str, table: pa.Table, **options: Any) -> str:
    path = str(folder / name)
    parquet.write_table(table, path, row_group_size=50, compression="zstd", **options)
    return path


def rows_of(paths: list[str], columns: Any = (), size: int = 1000) -> list[pa.RecordBatch]:
    rows = open_rows(paths, columns)
    batches = []
    while (found := rows.read(size)) is not None:
        assert 0 < len(found) <= size
        assert found.schema == rows.schema
        batches.append(found)
    return batches


def refusal(paths: list[str], columns: Any = (), size: int = 1000) -> str:
    with pytest.raises(LoadstoneError) as refused:
        rows_of(paths, columns, size)
    return refused.value.message


def test_rows_come_in_the_order_of_files_and_columns_whatever_the_pieces(tmp_path: Path) -> None:
    paths = [write(tmp_path, "a", batch(0, 130)), write(tmp_path, "b", batch(130, 7))]
    (whole,) = rows_of(paths, WANTED)
    assert whole.schema.names == [name for name, _ in WANTED]
    assert whole.column("name").to_pylist() == [f"text {n}" if n % 3 else None for n in range(137)]
    assert whole.column("at").cast(pa.int64())[136].as_py() == 136 * 1_001_000
    for size in (1, 10, 50, 136):
        pieces = rows_of(paths, WANTED, size)
        assert len(pieces[0]) == size
        assert pa.concat_batches(pieces) == whole


def test_the_first_difference_of_columns_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a", batch(0, 3))
    for column, words in [
        (("small", "text"), 'a: column "small" is int16, but text is needed'),
        (("small", "money"), 'a: column "small" cannot be money'),
        (("tiny", "int16"), 'a: the column "tiny" is missing'),
    ]:
        assert refusal([path], [*WANTED[:4], column, *WANTED[5:]]).endswith(words)
    assert refusal([path], WANTED[:6]).endswith('the table has no column "is"')
    strange = write(tmp_path, "u", pa.table({"u": pa.array([1], pa.uint8())}))
    assert refusal([strange]).endswith('column "u" is of the type uint8, which cannot be loaded')
    price = write(tmp_path, "d", pa.table({"d": pa.array([1], pa.decimal128(10, 2))}))
    assert refusal([price]).endswith('column "d" is of the type decimal128(10, 2), which cannot be loaded')
    wanted = 'column "d" is decimal128(10, 2), but float64 is needed'
    assert refusal([price], [("d", "float64")]).endswith(wanted)
    second = write(tmp_path, "b", pa.table({"id": [1]}))
    assert refusal([path, second]).endswith('b: the column "name" is missing')
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    assert refusal([write(tmp_path, "t", twice)], [("id", "int64")]).endswith(
        "two columns have the same name"
    )


def test_values_of_other_types_are_cast_to_those_of_the_table(tmp_path: Path) -> None:
    numbers = list(range(-60, 60))
    loose = write(tmp_path, "a", loosely_typed(numbers))
    (rows,) = rows_of([loose], STRICT)
    kinds = [str(kind) for kind in rows.schema.types]
    assert kinds == ["int16", "int32", "float", "string", "timestamp[us]", "date32[day]"]
    assert rows.column("small").to_pylist() == rows.column("gaps").to_pylist() == numbers
    assert rows.column("real").to_pylist() == [n / 8 for n in numbers]
    assert rows.column("at").cast(pa.int64()).to_pylist() == [n * 5 for n in numbers]
    assert rows.column("day")[0].as_py() == dt.date(1970, 1, 1) - dt.timedelta(60)
    # It is the first file that decides, here of small numbers.
    both = [write(tmp_path, "first", pa.Table.from_batches([rows])), loose]
    (rows,) = rows_of(both)
    assert rows.slice(0, 120) == rows.slice(120)


def test_a_value_that_does_not_fit_is_refused_early_where_the_file_knows_else_in_its_row(
    tmp_path: Path,
) -> None:
    numbers = [40_000 if n == 107 else n for n in range(130)]
    table = loosely_typed(numbers).select(["small"])
    unfit = 'column "small" has 40000, which does not fit into int16'
    known = write(tmp_path, "known", table)
    with pytest.raises(LoadstoneError, match=f"known: rows 101 to 130: {unfit}") as refused:
        open_rows([known], STRICT[:1])
    assert refused.value.hint == "correct that value, or remove its row"
    unknown = write(tmp_path, "unknown", table, write_statistics=False)
    open_rows([unknown], STRICT[:1])
    assert refusal([unknown], STRICT[:1], size=10).endswith(f"unknown: row 108: {unfit}")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_bounds_of_times_are_read_in_their_unit(tmp_path: Path, unit: str) -> None:
    noon = pa.array([dt.datetime(2024, 2, 29, 12)], pa.timestamp(unit))  # noqa: DTZ001 - without a zone
    path = write(tmp_path, "noon", pa.table({"day": noon}))
    words = 'noon: rows 1 to 1: column "day" has 2024-02-29 12:00:00, which does not fit into date'
    assert refusal([path], [("day", "date")]).endswith(words)


def test_times_of_two_zones_are_no_one_column(tmp_path: Path) -> None:
    times = pa.array([1], pa.timestamp("ms"))
    paths = [
        write(tmp_path, name, pa.table({"at": times.cast(pa.timestamp("ms", zone))}))
        for name, zone in (("a", "Europe/Berlin"), ("b", "UTC"), ("c", None))
    ]
    assert rows_of(paths[:2])[0].schema.field("at").type == pa.timestamp("us", "UTC")
    assert refusal(paths).endswith('c: times in column "at" have another time zone than in the first file')


def test_what_is_no_parquet_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("1,2,3\n4,5,6\n" * 10)
    assert "text is not a Parquet file: " in refusal([str(path)])
    assert refusal([str(tmp_path / "nosuch")]).startswith("opening ")


def test_texts_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    path = write(tmp_path, "a", pa.table({"t": broken}))
    assert "Invalid UTF8" in refusal([path])
    path = write(tmp_path, "b", pa.table({"t": pa.array([b"good", b"\xff"])}))
    assert 'row 2: column "t" has bytes that are not UTF-8' in refusal([path], [("t", "text")])


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([s * 2**b + d for b in (15, 16, 31, 32, 53) for s in (-1, 1) for d in (-1, 0, 1)]),
)
REALS = st.one_of(st.floats(), NUMBERS.map(float), st.sampled_from([2.0**63, -(2.0**63), 1e39, -0.0, 0.5]))
COLUMNS = st.one_of(
    st.lists(st.none() | NUMBERS).map(lambda values: pa.array(values, pa.int64())),
    st.lists(st.none() | REALS).map(lambda values: pa.array(values, pa.float64())),
)
TYPES = [pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]


def holds(value: float, to: pa.DataType) -> bool:
    """Return whether a type has a value: the nearest one, of floats."""
    if pa.types.is_integer(to):
        bound = 2 ** (to.bit_width - 1)
        return value == value // 1 and -bound <= value < bound
    if isinstance(value, int):
        return abs(value) <= 2**53
    return to == pa.float64() or not abs(value) < float("inf") or abs(value) < 2.0**128 - 2.0**103


@given(COLUMNS, st.sampled_from(TYPES))
def test_a_cast_changes_no_number_and_names_the_first_that_it_would(
    column: pa.Array, to: pa.DataType
) -> None:
    values = column.to_pylist()
    wrong = [row for row, value in enumerate(values) if value is not None and not holds(value, to)]
    assert fits(column.type, to)
    if wrong:
        with pytest.raises(UnfitError) as refused:
            cast(column, to)
        assert refused.value.row == wrong[0]
        return
    found = cast(column, to).to_pylist()
    expected = [value if value is None else nearest(value, to) for value in values]
    assert list(map(repr, found)) == list(map(repr, expected))


def nearest(value: float, to: pa.DataType) -> float:
    """Return what a type has of a value that it holds."""
    if pa.types.is_integer(to):
        return int(value)
    return float(np.float32(value)) if to == pa.float32() else float(value)


def test_a_value_is_shown_as_it_is() -> None:
    for value, words in [
        (pa.scalar(1_000_000, pa.timestamp("us")), "1970-01-01 00:00:01"),
        (pa.scalar(1_500_000, pa.timestamp("us", "UTC")), "1970-01-01 00:00:01.5"),
        (pa.scalar(1, pa.timestamp("ns")), "1970-01-01 00:00:00.000000001"),
        (pa.scalar(dt.date(1969, 11, 2)), "1969-11-02"),
        (pa.scalar(2**64 - 1, pa.uint64()), "18446744073709551615"),
        (pa.scalar(1.5), "1.5"),
        (pa.scalar(True), "True"),  # noqa: FBT003 - a value
    ]:
        assert shown(value) == words


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    damage=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=5
    ),
    cut=st.none() | st.floats(0, 1),
    table=st.sampled_from([batch(0, 60), loosely_typed(list(range(60)))]),
)
def test_a_damaged_file_is_an_error_or_rows(
    tmp_path: Path, damage: list[tuple[float, int]], cut: float | None, table: pa.Table
) -> None:
    wanted = STRICT if "gaps" in table.column_names else ()
    path = tmp_path / "a"
    write(tmp_path, "a", table)
    content = bytearray(path.read_bytes())
    for place, byte in damage:
        content[int(place * len(content))] = byte
    path.write_bytes(content if cut is None else content[: int(cut * len(content))])
    try:
        read = sum(len(found) for found in rows_of([str(path)], wanted, 25))
    except LoadstoneError:
        return
    assert read < 1000
