"""Answers as TSBS prints them with --print-responses: one JSON object a query, keys sorted."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Loader

from loadstone.personalities.tsbs.go_json import indented

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from loadstone.engine.control import Control

_FLOATS, _INTEGERS, _BOOL, _JSON, _TIMES = {700, 701}, {20, 21, 23, 26}, 16, {114, 3802}, {1082, 1114, 1184}
_EXPLAIN = "EXPLAIN ANALYZE "


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as names and rows of what JSON can hold."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class _Raw(Loader):
    """Hands over a value as the server wrote it."""

    def load(self, data: bytes | bytearray | memoryview) -> str:
        return bytes(data).decode("utf-8", "replace")


def explained(sql: str) -> str:
    """Return the statement that shows how a query is carried out."""
    return _EXPLAIN + sql


def ask_postgres(control: Control, sql: str) -> Reply:
    """Run a query on a server of PostgreSQL's family, and return its answer in TSBS's types."""
    assert isinstance(control, psycopg.Connection), "a server of PostgreSQL's family"  # noqa: S101
    with control.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        cursor.adapters.register_loader(0, _Raw)
        for oid in (
            16,
            17,
            20,
            21,
            23,
            25,
            26,
            700,
            701,
            1042,
            1043,
            1082,
            1114,
            1184,
            1186,
            1700,
            114,
            3802,
        ):
            cursor.adapters.register_loader(oid, _Raw)
        cursor.execute(sql.encode())
        described = cursor.description or []
        readers = [_reader(column.type_code) for column in described]
        rows = [_row(readers, row) for row in cursor]
        return Reply([column.name for column in described], rows)


def _row(readers: Sequence[Callable[[str], Any]], row: Sequence[str | None]) -> list[Any]:
    try:
        return [None if value is None else read(value) for read, value in zip(readers, row, strict=True)]
    except ValueError as error:
        raise psycopg.DataError(f"the server's answer cannot be read: {error}") from error


def of_table(table: pa.Table) -> Reply:
    """Return an answer that came as Arrow."""
    columns = [
        [_plain(value) for value in column.to_pylist()] for column in map(_without_zone, table.columns)
    ]
    return Reply(table.column_names, list(zip(*columns, strict=True)) if columns else [])


def response(sql: str, reply: Reply) -> str:
    """Return what TSBS prints of a query and its answer."""
    # Of columns of one name the last one counts.
    rows = [dict(zip(reply.columns, row, strict=True)) for row in reply.rows]
    return indented({"query": sql, "results": rows}, "  ", sort=True) + "\n\n"


def plan_text(sql: str, reply: Reply) -> str:
    """Return what TSBS prints of a query's plan: the last column of each row, if it has any."""
    lines = "".join(f"{row[-1]}\n" for row in reply.rows if row)
    return f"{explained(sql)}\n\n{lines}\n-----\n\n"


def _reader(oid: int) -> Callable[[str], Any]:
    if oid in _FLOATS:
        return float
    if oid in _INTEGERS:
        return int
    if oid == _BOOL:
        return lambda text: text == "t"
    if oid in _JSON:
        return lambda text: base64.b64encode(text.encode()).decode()
    return _moment if oid in _TIMES else str


def _moment(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text  # infinity, or before our era
    return _rfc3339(moment)


def _rfc3339(moment: datetime) -> str:
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone()
    fraction = f".{moment.microsecond:06d}".rstrip("0").rstrip(".")
    zone = f"{moment:%z}"
    return (
        f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{'Z' if zone in {'', '+0000'} else zone[:3] + ':' + zone[3:]}"
    )


def _without_zone(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # Zones by name would need a database of them; a moment is the same without.
    import pyarrow as pa  # noqa: PLC0415 - only answers that came as Arrow need it

    return column.cast(pa.timestamp("us")) if pa.types.is_timestamp(column.type) else column


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return _rfc3339(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
