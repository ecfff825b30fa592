"""Figures of `loadstone tsbs run-queries` as Go writes them, and digests of answers as they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from loadstone.personalities.tsbs.go_json import indented, number
from loadstone.personalities.tsbs.query_figures import lines_of
from loadstone.workload.queries.answer import compare, digest

GO_PERCENTILES = """ Value\tPercentile\tTotalCount\t1/(1-Percentile)

       0.001     0.000000            3         1.00
       0.001     0.050000            3         1.05
       0.001     0.100000            3         1.11
       0.001     0.150000            3         1.18
       0.150     0.200000           13         1.25
       0.150     0.250000           13         1.33
       0.150     0.300000           13         1.43
       0.150     0.350000           13         1.54
       0.150     0.400000           13         1.67
       0.150     0.450000           13         1.82
       0.150     0.500000           13         2.00
       0.150     0.525000           13         2.11
       0.150     0.550000           13         2.22
       0.150     0.575000           13         2.35
       0.150     0.600000           13         2.50
       0.150     0.625000           13         2.67
       0.150     0.650000           13         2.86
       2.000     0.675000           18         3.08
       2.000     0.700000           18         3.33
       2.000     0.725000           18         3.64
       2.000     0.750000           18         4.00
       2.000     0.762500           18         4.21
       2.000     0.775000           18         4.44
       2.000     0.787500           18         4.71
       2.000     0.800000           18         5.00
       2.000     0.812500           18         5.33
       2.000     0.825000           18         5.71
       2.000     0.837500           18         6.15
       2.000     0.850000           18         6.67
       2.000     0.862500           18         7.27
       2.000     0.875000           18         8.00
       2.000     0.881250           18         8.42
       2.000     0.887500           18         8.89
       2.000     0.893750           18         9.41
       2.000     0.900000           18        10.00
      40.001     0.906250           19        10.67
      40.001     0.912500           19        11.43
      40.001     0.918750           19        12.31
      40.001     0.925000           19        13.33
      40.001     0.931250           19        14.55
      40.001     0.937500           19        16.00
      40.001     0.940625           19        16.84
      40.001     0.943750           19        17.78
      40.001     0.946875           19        18.82
      40.001     0.950000           19        20.00
    5000.191     0.953125           20        21.33
    5000.191     1.000000           20          inf
#[Mean    =      252.578, StdDeviation   =     1089.182]
#[Max     =     5000.191, Total count    =           20]
#[Buckets =           18, SubBuckets     =        32768]
"""


def test_percentiles_are_written_as_by_gos_library() -> None:
    """The text is what hdrhistogram-go 1.0.0 prints for these values."""
    values = np.array([1, 150, 2000, 40000, 5000000], dtype=np.int64)
    counts = np.array([3, 10, 5, 1, 1], dtype=np.int64)
    assert lines_of(values - values % np.array([1, 1, 1, 2, 256]), counts) == GO_PERCENTILES


def test_numbers_are_written_as_by_go() -> None:
    shown = [
        number(x) for x in (0.0, -0.0, 1.0, 0.1, 1e20, 1e21, 1.5e-7, 1e-6, 123456789.125, -2.5e22, 5e-324)
    ]
    assert shown == [
        "0", "-0", "1", "0.1", "100000000000000000000", "1e+21", "1.5e-7", "0.000001", "123456789.125",
        "-2.5e+22", "5e-324",
    ]  # fmt: skip
    assert indented({"b": [], "a": {}, "c": ["<\u2028>"]}, " ", sort=True) == (
        '{\n "a": {},\n "b": [],\n "c": [\n  "\\u003c\\u2028\\u003e"\n ]\n}'
    )


def table(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def test_digests_agree_whatever_the_order_and_the_last_digit() -> None:
    rows = table(name=["a", "b", None], value=[1.0, 2.5, 3.25], n=[1, 2, 3])
    other = table(x=[None, "b", "a"], y=[3.25, 2.5, 1.0 + 1e-13], z=[3, 2, 1])
    assert compare(digest(rows), digest(other)) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"value": [1.0, 2.5, 3.26]}, "sums differ by"),
        ({"value": [2.5, 1.0, 3.25]}, "values are in other rows"),
        ({"value": [1.0, None, 3.25]}, "count of values that are not NULL 3 here, 2 there"),
        ({"value": [1.0, 2.5, float("nan")]}, "count of NaN 0 here, 1 there"),
        ({"name": ["a", "c", None]}, "texts differ"),
        ({"name": ["a", None, "b"]}, "are in other rows"),
        ({"value": ["1", "2", "3"]}, "a number here, a text there"),
    ],
)
def test_digests_see_what_is_wrong(changed: dict[str, list[Any]], words: str) -> None:
    right: dict[str, list[Any]] = {"name": ["a", "b", None], "value": [1.0, 2.5, 3.25]}
    found = compare(digest(table(**right)), digest(table(**(right | changed))))
    assert words in (found or "")


def test_digests_of_other_shapes_differ() -> None:
    one = digest(table(a=[1, 2]))
    assert "row count 2 here, 1 there" in (compare(one, digest(table(a=[1]))) or "")
    assert "column count 1 here, 2 there" in (compare(one, digest(table(a=[1, 2], b=[1, 2]))) or "")
