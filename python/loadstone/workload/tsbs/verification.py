"""Whether tables hold what was generated: counts and fingerprints, asked of the server and compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.workload.load.fingerprints import compared, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.timeseries import Dataset, Table, TimeSeriesDialect
    from loadstone.workload.load.fingerprints import Check

_NUMBERS = ("rows", "time_sum", "tags_sum", "content")


def checks(
    control: Control, series: TimeSeriesDialect, dataset: Dataset, loaded: Mapping[str, Any]
) -> Iterator[Check]:
    """Compare each table with what the driver's account (`load`) says was generated."""
    made = {table["name"]: table for table in loaded["tables"]}
    for table in dataset["tables"]:
        found = made.get(table["name"])
        expected = {"rows": 0} if found is None else found["fingerprint"]
        yield check_table(control, series, table, expected)
    if dataset["tags"]:
        expected_tags = loaded.get("tags_total", loaded["tags_rows"])
        yield _check_tags(control, series, dataset["tags"]["name"], int(expected_tags))


def fingerprint(control: Control, series: TimeSeriesDialect, table: Table) -> dict[str, Any]:
    """Read a table's fingerprint in the form of the core's."""
    return plain(series.read_fingerprint(control, table), _NUMBERS)


def check_table(
    control: Control, series: TimeSeriesDialect, table: Table, expected: Mapping[str, Any]
) -> Check:
    """Compare one table's content with a fingerprint of the core's."""
    actual = fingerprint(control, series, table)
    wanted: dict[str, Any] = {name: expected.get(name, 0) for name in _NUMBERS}
    wanted["nulls"] = expected.get("nulls") or ["0"] * len(actual["nulls"])
    return compared(table["name"], plain(wanted, _NUMBERS), actual)


def _check_tags(control: Control, series: TimeSeriesDialect, name: str, expected: int) -> Check:
    statement = 'select count(*) as "rows", coalesce(min(id), 1) as first, coalesce(max(id), 0) as last '
    statement += f"from {series.qualified(name)}"
    row = control.execute(statement).fetchone() or {}
    actual = f"{row['rows']:,} rows, ids {row['first']} to {row['last']}"
    wanted = f"{expected:,} rows, ids 1 to {expected}"
    return {
        "name": f"{name} contains one row for each state of a device",
        "expected": wanted,
        "actual": actual,
        "passed": actual == wanted,
        "detail": "ids have no gaps, and the sums of tags_id agree: no row is without its device",
    }
