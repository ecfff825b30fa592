"""Counts and sums of a table's content, for engines whose SQL cannot hash: weaker than a fingerprint.

A column's values may be swapped among rows, and a text may be another of the same number of distinct ones,
without any of these noticing. Compared of each column, beside the number of rows:

* how many values are not NULL;
* of whole numbers and truths their sum, of 64-bit numbers, times and dates (as seconds since 1970) the sum of
  their remainders by 65521 (truncated, as SQL's MOD), of floats the sum of doubles, to one part in 10^9 of
  the sum of absolute values;
* of texts how many are distinct, up to 10,000: beyond, it is not counted.

An engine's query (`TableDialect.sums`) names its columns `row_count`, and `cN_count`, `cN_sum`, `cN_total`
(of floats), `cN_distinct`, N being the column's place counted from 0.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from loadstone import _core
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine.dialect.timeseries import Column
    from loadstone.workload.load.content import Content
    from loadstone.workload.load.fingerprints import Check

_MODULUS = 65521
_DISTINCT_MOST = 10_000
_BATCH_ROWS = 100_000
_TOLERANCE = 1e-9
_DAY_S = 86_400
_WHOLE = ("int16", "int32", "bool")
_FLOATS = ("float32", "float64")


class ColumnSums:
    """What is known of one column so far."""

    def __init__(self, column: Column) -> None:
        """Begin with no rows."""
        self._kind = column["type"]
        self._count = self._sum = 0
        self._total = self._size = 0.0
        self._distinct: set[str] | None = set()

    def add(self, values: pa.Array) -> None:
        """Count more rows in."""
        held = values.drop_null()
        self._count += len(held)
        if self._kind in _FLOATS:
            doubles = held.cast(pa.float64())
            self._total += pc.sum(doubles).as_py() or 0.0
            self._size += pc.sum(pc.abs(doubles)).as_py() or 0.0
        elif self._kind in _WHOLE:
            self._sum += pc.sum(held.cast(pa.int64())).as_py() or 0
        elif self._kind == "text":
            self._add_texts(held)
        elif self._kind in ("int64", "timestamp", "date"):
            self._sum += int(np.fmod(_seconds(held), _MODULUS).sum())

    def _add_texts(self, held: pa.Array) -> None:
        if self._distinct is None:
            return
        self._distinct.update(pc.unique(held).to_pylist())
        if len(self._distinct) > _DISTINCT_MOST:
            self._distinct = None

    def differing(self, row: Mapping[str, Any], prefix: str) -> list[str]:
        """Return which of an engine's answers are others, by their names."""
        wanted: dict[str, int] = {"count": self._count, "sum": self._sum}
        if self._distinct is not None:
            wanted["distinct"] = len(self._distinct)
        names = {name: f"{prefix}{name}" for name in wanted}
        found = [
            names[name]
            for name, value in wanted.items()
            if names[name] in row and int(row[names[name]] or 0) != value
        ]
        total = f"{prefix}total"
        if total in row and abs(float(row[total] or 0.0) - self._total) > _TOLERANCE * self._size:
            found.append(total)
        return found


def check_sums(name: str, content: Content, row: Mapping[str, Any]) -> Check:
    """Make the rows once more, and compare their counts and sums with an engine's.

    Raises LoadstoneError when they cannot be made.
    """
    columns = content.table["columns"]
    sums, rows = [ColumnSums(column) for column in columns], 0
    try:
        stream = _core.DataStream(json.dumps(content.data), fingerprints=False)
        while (parts := stream.read(_BATCH_ROWS)) is not None:
            for part in parts:
                batch = pa.record_batch(part)
                rows += batch.num_rows
                for known, values in zip(sums, batch.columns, strict=True):
                    known.add(values)
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    wrong = [] if int(row["row_count"]) == rows else ["row_count"]
    for number, known in enumerate(sums):
        places = known.differing(row, f"c{number}_")
        wrong += [f"{columns[number]['name']} ({place.partition('_')[2]})" for place in places]
    asked, found = sum(1 for answer in row if answer != "row_count"), int(row["row_count"])
    same = asked - len(set(wrong) - {"row_count"})
    return {
        "name": f"{name} contains the rows that were generated",
        "expected": f"{rows:,} rows, {asked} counts and sums of columns",
        "actual": f"{found:,} rows, {same} of them the same",
        "passed": not wrong,
        "detail": "count, and counts and sums of each column, because the engine's SQL cannot hash"
        + (f"; different: {', '.join(wrong)}" if wrong else ""),
    }


def _seconds(held: pa.Array) -> Any:
    """Return whole numbers as they are, times and dates as seconds since 1970."""
    kind = held.type
    if pa.types.is_date32(kind):
        return held.cast(pa.int32()).to_numpy(zero_copy_only=False).astype(np.int64) * _DAY_S
    if pa.types.is_timestamp(kind):
        micros = held.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return micros.to_numpy(zero_copy_only=False) // 1_000_000
    return held.cast(pa.int64()).to_numpy(zero_copy_only=False)
