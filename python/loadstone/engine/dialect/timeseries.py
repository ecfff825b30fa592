"""How an engine keeps time series: tables, partitions, fingerprints, time buckets. PostgreSQL's answers.

The tables are TSBS's (`time`, `tags_id`, the fields, `additional_tags`; a row of `tags` for each state of a
device).
"""

# ruff: noqa: S608 - identifiers and values are written by `quoted` and `literal`
from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from loadstone.engine.dialect.loads import LoadDialect
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine.control import Control
    from loadstone.model import SeriesTables
    from loadstone.sqltext import Qualified

DriveResult = dict[str, Any]
"""drive.json of docs/run-folder.md, or a progress document of the same shape."""

ADDITIONAL = "additional_tags"
_PARTITIONS_MOST = 10_000
_HASH_SINCE = 110000
_SECOND_US = 1_000_000
_UNITS_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


class Column(TypedDict):
    """A column of a data set; `type`: timestamp, date, int16 to int64, float32, float64, text, json, bool."""

    name: str
    type: str
    nulls: NotRequired[bool]
    """Whether it may hold NULLs; it may where that is not said."""
    repeats: NotRequired[bool]
    """Whether the first rows show that a text comes again and again."""
    text_bytes: NotRequired[float]
    """Of texts: mean bytes of a value in the first rows."""


class Table(TypedDict):
    """A table of a data set; `metrics` of its columns are fields."""

    name: str
    metrics: int
    columns: list[Column]


class Dataset(TypedDict):
    """What `_core.DataStream.dataset()` describes."""

    tags: Table | None
    tables: list[Table]


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the form of the tables depends on beside the options."""

    version_number: int = 180000
    """The server's, as in `Identity`."""
    span_us: tuple[int, int] | None = None
    """First and last time of the rows, microseconds since 1970, the last one exclusive; None: not known."""


USUAL = TableFacts()


@dataclass(frozen=True, slots=True)
class TableSize:
    """What a table takes on disk, with all its partitions or chunks."""

    table_bytes: int
    """Rows, out-of-line values included."""
    index_bytes: int


@dataclass(frozen=True, slots=True)
class Compression:
    """What compressing a table came to, as the engine says."""

    before_bytes: int
    after_bytes: int

    @property
    def ratio(self) -> float | None:
        """How many times smaller it is; None when nothing was compressed."""
        return self.before_bytes / self.after_bytes if self.after_bytes else None


class TimeSeriesDialect(LoadDialect):
    """What PostgreSQL answers; an engine overrides what differs. Statements come without semicolon."""

    types: Mapping[str, str] = {
        "timestamp": "timestamptz",
        "int32": "integer",
        "int64": "bigint",
        "float32": "double precision",
        "float64": "double precision",
        "text": "text",
        "bool": "boolean",
    }
    json_type = "jsonb"

    def refuse(self, control: Control) -> None:
        """Raise LoadstoneError when the server cannot hold such tables; touches nothing."""

    def tables(self, dataset: Dataset, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Return the statements that make the tables, their partitions and indexes, in order.

        Raises LoadstoneError when they cannot be made as wished.
        """
        made = [self.tags_table(dataset["tags"], options)] if dataset["tags"] else []
        made += [self.series_table(table, dataset, options, where) for table in dataset["tables"]]
        return tuple(chain.from_iterable(made))

    def after_load(self, dataset: Dataset, options: SeriesTables) -> tuple[str, ...]:
        """Return what is to be done once the rows are in; each statement is a transaction of its own."""
        del options
        tags = dataset["tags"]
        sequence = [_sequence(self.qualified(tags["name"]))] if tags else []
        return (*sequence, *(f"analyze {self.qualified(name)}" for name in names(dataset)))

    def notes(self, options: SeriesTables, where: TableFacts = USUAL) -> tuple[str, ...]:
        """Say which options have no meaning here, and what is done instead."""
        found = list(common_notes(options))
        if options.compress or options.compress_after_s is not None:
            found.append(f"{self.title} cannot compress partitions: nothing is compressed")
        if options.hash_partitions and where.version_number < _HASH_SINCE:
            found.append(
                f"{self.title} before 11 has no hash partitions: tables are partitioned by time only"
            )
        if options.chunk_time_s is not None:
            found.append(
                "partitions cover the time range of the data; two more, _before and _after, contain "
                "rows outside it"
            )
        return tuple(found)

    def bucket(self, width: str, column: str) -> str:
        """Return an expression for the begin of the bucket (`10 minutes`, `1 day`) that holds a time."""
        seconds = width_s(width)
        return f"to_timestamp(floor(extract(epoch from {column}) / {seconds}) * {seconds})"

    def fingerprint(self, table: Table) -> str:
        """Return the query for a table's fingerprint, as `loadstone_gen::fingerprint` computes it: one row.

        Its columns are rows, time_sum, tags_sum, content, as text, and nulls: an array of one count for each
        field. Each step is exact or one operation on doubles, in the same order everywhere.
        """
        columns = fields(table)
        nulls = ", ".join(f"count(*) - count({quoted(name)})" for name in columns)
        terms = " + ".join(
            f"coalesce({quoted(name)}, 0) * {place}::float8" for place, name in enumerate(columns, 1)
        )
        key = "1 + ((t + d * 7919) % 65521 + 65521) % 65521"
        value = "floor((s - floor(s / 65521) * 65521) * 1048576)::bigint"
        return (
            "select count(*)::text as rows, coalesce(sum(t), 0)::text as time_sum, "
            f"coalesce(sum(d), 0)::text as tags_sum, coalesce(sum(({key}) * {value}), 0)::text as content, "
            f"array[{nulls}]::bigint[] as nulls "
            f"from (select {self.microseconds(quoted('time'))} as t, tags_id::bigint as d, "
            f"{', '.join(map(quoted, columns))}, {terms} as s from {self.qualified(table['name'])}) as r"
        )

    def read_fingerprint(self, control: Control, table: Table) -> Mapping[str, Any]:
        """Ask for the fingerprint, and return its columns."""
        return control.execute(self.fingerprint(table)).fetchone() or {}

    def size(self, control: Control, table: str) -> TableSize:
        """Read what a table takes on disk."""
        row = control.execute(_SIZE.format(table=literal(self.qualified(table)))).fetchone() or {}
        return TableSize(int(row["table_bytes"]), int(row["index_bytes"]))

    def compression(self, control: Control, table: str) -> Compression | None:
        """Read what compressing a table came to; None where nothing is compressed."""
        del control, table
        return None

    def strays(self, control: Control, table: str) -> int | None:
        """Count the rows outside the span of the partitions; None where there is no such place."""
        places = [f"{table}_before", f"{table}_after"]
        found = self.existing(control, places)
        if not found:
            return None
        counts = " + ".join(f"(select count(*) from {self.qualified(name)})" for name in found)
        return int((control.execute(f"select {counts} as rows").fetchone() or {})["rows"])

    def tags_table(self, tags: Table, options: SeriesTables) -> Iterator[str]:
        """Yield the statements that make the table of devices."""
        name = self.qualified(tags["name"])
        if options.jsonb_tags:
            yield f"create table {name} (id serial primary key, tagset {self.json_type})"
            yield f"create unique index uniq1 on {name} (tagset)"
            yield f"create index idxginp on {name} using gin (tagset jsonb_path_ops)"
            return
        columns = tags["columns"][1:]
        listed = ", ".join(f"{quoted(c['name'])} {self.types[c['type']]}" for c in columns)
        yield f"create table {name} (id serial primary key, {listed})"
        yield f"create unique index uniq1 on {name} ({', '.join(quoted(c['name']) for c in columns)})"
        yield f"create index on {name} ({quoted(columns[0]['name'])})"

    def series_table(
        self, table: Table, dataset: Dataset, options: SeriesTables, where: TableFacts
    ) -> Iterator[str]:
        """Yield the statements that make one table of rows with its partitions and indexes."""
        device = device_column(dataset, options)
        name, leaves = table["name"], list(self.partitions(table["name"], options, where, device))
        split = self.partitioned(options, where, device)
        kept = "" if split else self.keeping
        columns = self.columns(table, dataset, options)
        yield f"create {self.relation} {self.qualified(name)} ({columns}){split}{kept}"
        yield from (leaf.statement + ("" if leaf.split else self.keeping) for leaf in leaves)
        # Before version 11 an index cannot be made for all partitions at once.
        whole = not leaves or where.version_number >= _HASH_SINCE
        for target in [name] if whole else [leaf.name for leaf in leaves]:
            yield from (
                f"create index on {self.qualified(target)} {keys}"
                for keys in index_keys(table, options, device)
            )

    def columns(self, table: Table, dataset: Dataset, options: SeriesTables) -> str:
        """Return the definitions of a table's columns."""
        first = first_tag(dataset) if options.in_table_tag else None
        listed = [f"{quoted('time')} timestamptz", "tags_id integer"]
        listed += [f"{quoted(first['name'])} {self.types[first['type']]}"] if first else []
        listed += [f"{quoted(name)} {self.types['float64']}" for name in fields(table)]
        if any(column["name"] == ADDITIONAL for column in table["columns"]):
            listed.append(f"{ADDITIONAL} {self.json_type} default null")
        return ", ".join(listed)

    def partitioned(self, options: SeriesTables, where: TableFacts, device: str) -> str:
        """Return what CREATE TABLE says of how the table is split."""
        if options.chunk_time_s is not None:
            return f" partition by range ({quoted('time')})"
        if options.hash_partitions and where.version_number >= _HASH_SINCE:
            return f" partition by hash ({quoted(device)})"
        return ""

    def partitions(
        self, table: str, options: SeriesTables, where: TableFacts, device: str
    ) -> Iterator[Partition]:
        """Yield the partitions in order; only those without parts of their own hold rows."""
        parts = options.hash_partitions if where.version_number >= _HASH_SINCE else 0
        if options.chunk_time_s is None:
            yield from self._hash_parts(table, parts)
            return
        bounds = chunk_bounds(options, where)
        first, last = stamp_literal(bounds[0]), stamp_literal(bounds[-1])
        yield self._partition(table, f"{table}_before", f"from (minvalue) to ({first})")
        for low, high in pairwise(bounds):
            name = f"{table}_p{stamp(low):%Y%m%d_%H%M%S}"
            span = f"from ({stamp_literal(low)}) to ({stamp_literal(high)})"
            by = f" partition by hash ({quoted(device)})" if parts else ""
            yield self._partition(table, name, span, by)
            yield from self._hash_parts(name, parts)
        yield self._partition(table, f"{table}_after", f"from ({last}) to (maxvalue)")

    def _hash_parts(self, table: str, parts: int) -> Iterator[Partition]:
        for part in range(parts):
            bounds = f"with (modulus {parts}, remainder {part})"
            yield self._partition(table, f"{table}_h{part}", bounds)

    def _partition(self, parent: str, name: str, bounds: str, by: str = "") -> Partition:
        """Return a partition for values in the bounds; `by` is how it is split itself."""
        whole = self.qualified(parent)
        text = f"create table {self.qualified(name)} partition of {whole} for values {bounds}{by}"
        return Partition(name, text, split=bool(by))


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition and the statement that makes it."""

    name: str
    statement: str
    split: bool = False
    """Whether it is split itself, and holds no rows."""


_SIZE = """
with recursive family(oid) as (
  select {table}::regclass::oid union all
  select i.inhrelid from pg_inherits i join family f on i.inhparent = f.oid)
select coalesce(sum(pg_table_size(oid)), 0)::bigint as table_bytes,
       coalesce(sum(pg_indexes_size(oid)), 0)::bigint as index_bytes
from family
"""


def _sequence(tags: Qualified) -> str:
    """Return what makes the sequence of ids go on behind those that were loaded."""
    sequence = f"pg_get_serial_sequence({literal(tags)}, 'id')"
    return f"select setval({sequence}, coalesce(max(id), 0) + 1, false) from {tags}"


def names(dataset: Dataset) -> list[str]:
    """Return the names of all tables, that of the devices first."""
    tags = [dataset["tags"]["name"]] if dataset["tags"] else []
    return [*tags, *(table["name"] for table in dataset["tables"])]


def fields(table: Table) -> list[str]:
    """Return the names of a table's fields, in order."""
    return [column["name"] for column in table["columns"] if column["type"] == "float64"]


def first_tag(dataset: Dataset) -> Column | None:
    """Return the first tag of a device: its name, as a rule."""
    tags = dataset["tags"]
    return tags["columns"][1] if tags and len(tags["columns"]) > 1 else None


def device_column(dataset: Dataset, options: SeriesTables) -> str:
    """Return the column that tells the device of a row."""
    first = first_tag(dataset)
    return first["name"] if options.in_table_tag and first else "tags_id"


def index_keys(table: Table, options: SeriesTables, device: str) -> Iterator[str]:
    """Yield the columns of each index, in TSBS's order."""
    time, device = quoted("time"), quoted(device)
    if options.partition_index:
        yield f"({device}, {time} desc)"
    if options.time_partition_index:
        yield f"({time} desc, {device})"
    elif options.time_index:
        yield f"({time} desc)"
    columns = fields(table)
    chosen = columns if options.field_index_count < 0 else columns[: options.field_index_count]
    for name in map(quoted, chosen):
        yield f"({time} desc, {name})" if options.field_index == "TIME-VALUE" else f"({name}, {time} desc)"


def common_notes(options: SeriesTables) -> Iterator[str]:
    """Yield what is true of every engine that has indexes."""
    if options.time_partition_index and options.time_index:
        yield "time-partition-index replaces time-index, as in TSBS"


def chunk_bounds(options: SeriesTables, where: TableFacts) -> list[int]:
    """Return the bounds of the partitions, microseconds since 1970: whole multiples of the chunk's length.

    Raises LoadstoneError when the span is not known, or would take too many partitions.
    """
    length = round((options.chunk_time_s or 0) * _SECOND_US)
    if length < _SECOND_US:
        raise LoadstoneError(
            "the time range of a partition is less than one second", "Set a longer --chunk-time."
        )
    if where.span_us is None:
        raise LoadstoneError(
            "partitions by time need the first and last time of the data, which are unknown",
            "Set --timestamp-start and --timestamp-end, or name the data with --file.",
        )
    first, last = where.span_us[0] // length, -(-max(where.span_us[1], where.span_us[0] + 1) // length)
    count = (last - first) * max(1, options.hash_partitions)
    if count > _PARTITIONS_MOST:
        raise LoadstoneError(
            f"each table would need {count:,} partitions, and at most {_PARTITIONS_MOST:,} are allowed",
            "Set a longer --chunk-time or fewer --partitions.",
        )
    return [number * length for number in range(first, last + 1)]


def stamp(time_us: int) -> datetime:
    """Return a time of so many microseconds since 1970."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time_us)


def stamp_literal(time_us: int) -> str:
    """Write a time as SQL does."""
    return literal(f"{stamp(time_us):%Y-%m-%d %H:%M:%S.%f}+00")


def width_s(width: str) -> int:
    """Return a bucket's width (`60 seconds`, `1 day`) in seconds."""
    number, _, unit = width.strip().lower().partition(" ")
    length = _UNITS_S.get(unit.strip().removesuffix("s"))
    if length is None or not number.isdecimal() or not int(number):
        raise LoadstoneError(
            f"'{width}' is not the width of a time bucket", "Write '10 minutes', '1 hour' or '1 day'."
        )
    return int(number) * length
