"""Bulk phases of a scenario: [[phase]] with rows in `data`, `table` and steps → BulkLoad."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from loadstone.model import (
    FEWEST_STEPS,
    LOAD_FILES,
    BulkLoad,
    LongTransactions,
    PlainTable,
    PublishedCurve,
    Rows,
)
from loadstone.scenario.schema import Problem, key_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.model import Value

CAUTIOUS_ROWS_PER_S = 200_000
"""Rows that a bulk load into a table without index sends in a second, for estimates."""
CAUTIOUS_INSERTS_PER_S = {True: 20_000, False: 5_000}
"""The same of single-row INSERTs: pipelined, and each awaited."""

BULK_ONLY = frozenset(
    {"table", "step_rows", "transactions", "after", "settle", "storage", "verify", "knee", "curves"},
)
"""Keys that only a load of plain rows can have."""
SERIES_ONLY = frozenset({"tables", "hash_workers", "pace", "rate_per_s"})
"""Keys of loads that one of plain rows cannot have."""

_BULK = ("step_rows", "method", "batch_rows", "workers", "settle", "storage", "verify", "timeout_s")
_INDEX_METHOD = re.compile(r":\s*([a-z_]\w*)", re.IGNORECASE)
_IN_PARENTHESES = re.compile(r"\([^()]*\)")

Path = tuple[str | int, ...]


def is_bulk(table: Mapping[str, Any]) -> bool:
    """Tell a load of plain rows from one of a time series."""
    return table.get("kind") == "load" and "use_case" not in table.get("data", {})


def bulk_of(table: Mapping[str, Any], after: Sequence[str]) -> BulkLoad:
    """Return the bulk load that a phase's table, filled in, asks for; `after` is its SQL, split."""
    transactions = table.get("transactions")
    return BulkLoad(
        rows=_rows(table["data"]),
        table=PlainTable(**table["table"]),
        transactions=LongTransactions(**transactions) if transactions else None,
        after=tuple(after),
        **{key: table[key] for key in _BULK if key in table},
    )


def curves_of(body: Mapping[str, Any], values: Mapping[str, Value]) -> Iterator[PublishedCurve]:
    """Yield the published curves that belong to the variant with these values."""
    for curve in body.get("curves", ()):
        if all(values[name] == value for name, value in curve.get("when", {}).items()):
            seconds = tuple(float(value) for value in curve["seconds"])
            yield PublishedCurve(curve["name"], curve["step_rows"], seconds, curve.get("note", ""))


def needs_of_bulk(bulk: BulkLoad) -> Iterator[str]:
    """Yield the capabilities that a target must have."""
    table = bulk.table
    method = "insert" if bulk.transactions is not None else bulk.method
    wished = {
        LOAD_FILES: bulk.rows.as_they_are,
        "load" if method == "best" else f"load:{method}": True,
        "parallel loads": bulk.workers > 1,
        f"form:{table.form}": table.form != "default",
        f"compression:{table.compression}": table.compression != "default",
        "partitioning": table.partition_rows > 0,
        "tablespace": bool(table.tablespace or table.index_tablespace),
        "primary keys": bool(table.primary_key),
        "indexes": table.indexes.strip().lower() not in ("", "0", "none"),
    }
    yield from (word for word, is_wished in wished.items() if is_wished)
    yield from (method.lower() for method in _INDEX_METHOD.findall(table.indexes))


def seconds_of_bulk(bulk: BulkLoad) -> float:
    """Return about how long a bulk load takes; files whose rows nobody has counted yet count with 0.

    Each index is taken to cost as much as the table itself.
    """
    if bulk.transactions is not None:
        return bulk.rows.rows / CAUTIOUS_INSERTS_PER_S[bulk.transactions.pipeline]
    return bulk.rows.rows * (1 + _index_count(bulk.table)) / CAUTIOUS_ROWS_PER_S


def bulk_clashes(table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield keys of a bulk phase, filled in, that cannot stand together."""
    data, options = table["data"], table["table"]
    yield from _data_clashes(data, (*path, "data"))
    sent = "files" in data and data.get("format") != "parquet"
    if sent and table.get("method", "best") not in ("best", f"copy_{data.get('format', 'text')}"):
        where = key_path((*path, "method"))
        yield Problem(where, "files are sent in their own format", 'Remove it, or set "best".')
    if "transactions" in table:
        for key in ("method", "batch_rows"):
            if key in table and table[key] != "insert":
                where = key_path((*path, key))
                yield Problem(where, "long transactions are single-row INSERTs", "Remove one of the two.")
    if options.get("partition_rows") and not options.get("partition_column"):
        where = key_path((*path, "table", "partition_column"))
        yield Problem(where, "only partitions by ranges of a column are possible", "Name the column.")
    yield from _knee_clashes(table, path)


def _data_clashes(data: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    made = "files" not in data
    wrong = ("format", "header") if made else ("seed", "options", "first")
    for key in wrong:
        if key in data:
            other = "files" if made else "rows that are made"
            yield Problem(key_path((*path, key)), f"only {other} can have this key", "Remove it.")
    if made and not data.get("rows"):
        yield Problem(
            key_path((*path, "rows")), "the number of rows to generate is missing", "Use a number from 1."
        )
    if data.get("header") and data.get("format") != "csv":
        yield Problem(key_path((*path, "header")), "only CSV files have a header", 'Set format = "csv".')


def _knee_clashes(table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield what keeps a knee from being looked for; how many rows files hold is not known yet."""
    rows, step_rows = table["data"].get("rows", 0), table.get("step_rows", 0)
    if not table.get("knee"):
        return
    if not step_rows:
        yield Problem(key_path((*path, "step_rows")), "a knee is searched for in steps", "Set step_rows.")
    elif rows and math.ceil(rows / step_rows) < FEWEST_STEPS:
        steps = math.ceil(rows / step_rows)
        words = f"{rows:,} rows in steps of {step_rows:,} are {steps} steps; a knee needs {FEWEST_STEPS}."
        hint = f"Load {FEWEST_STEPS * step_rows:,} rows or more, or use steps of {rows // FEWEST_STEPS:,}."
        if rows < FEWEST_STEPS:
            hint = f"Load {FEWEST_STEPS * step_rows:,} rows or more."
        yield Problem(key_path((*path, "knee")), words, hint)


def _rows(data: Mapping[str, Any]) -> Rows:
    given = dict(data)
    files = given.pop("files", ())
    if isinstance(files, str):
        files = [name.strip() for name in files.split(",")]
    return Rows(files=tuple(name for name in files if name), **given)


def _index_count(table: PlainTable) -> int:
    text = table.indexes.strip()
    if text.isdecimal():
        return int(text)
    return len([part for part in _IN_PARENTHESES.sub("x", text).split(",") if part.strip()])
