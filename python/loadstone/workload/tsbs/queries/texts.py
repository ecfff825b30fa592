"""The texts of TSBS's queries, filled in for one dialect and one layout of the tables.

A text in `texts/` has the form of Python's format strings. `{start}` is a parameter;
`{bucket:10 minutes|time}` is a macro with arguments, which the dialect or the layout fills in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from loadstone.workload.tsbs.queries.draws import Parameters
from loadstone.workload.tsbs.queries.kinds import CPU_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.workload.tsbs.queries.dialects import Dialect
    from loadstone.workload.tsbs.queries.kinds import Kind


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the tags are, as TSBS's flags of the same names say."""

    use_json: bool = False
    """In one column `tagset` of the table `tags`."""
    use_tags: bool = True
    """In columns of the table `tags`; False: the host's name is in every row (devops only)."""
    use_time_bucket: bool = True
    """False: TSBS's own expression without `time_bucket` (devops only)."""


_MARKS = "\ue000\ue001\ue002"
_FIRST_DEVICE = 0xE100
"""Characters of private use stand for parameters while a text is made."""


@dataclass(frozen=True, slots=True)
class _Macro:
    expand: Callable[[str], str]

    def __format__(self, arguments: str) -> str:
        return self.expand(arguments)


def render(kind: Kind, parameters: Parameters, dialect: Dialect, layout: Layout) -> str:
    """Return a query's text."""
    return _text(_file(kind, layout), dialect.texts).format_map(_values(kind, parameters, dialect, layout))


@cache
def renderer(kind: Kind, dialect: Dialect, layout: Layout) -> Callable[[Parameters], str]:
    """Return what gives `render`'s text in a fraction of its time: all but parameters is filled in once."""
    devices = tuple(chr(_FIRST_DEVICE + number) for number in range(kind.devices))
    blank = Parameters(f"{_MARKS[0]} +0000", f"{_MARKS[1]} +0000", devices, _MARKS[2])
    pieces = re.split(f"([{_MARKS[0]}-{chr(_FIRST_DEVICE + 999)}])", render(kind, blank, dialect, layout))
    template = "%s".join(piece.replace("%", "%%") for piece in pieces[0::2])
    holes = [(*_MARKS, *devices).index(mark) for mark in pieces[1::2]]

    def fill(parameters: Parameters) -> str:
        values = (parameters.start[:-6], parameters.end[:-6], parameters.fleet, *parameters.devices)
        return template % tuple(values[hole] for hole in holes)

    return fill


@cache
def _text(name: str, folder: str) -> str:
    texts = resources.files("loadstone.workload.tsbs.queries") / "texts"
    own = texts / folder / f"{name}.sql"
    path = own if folder and own.is_file() else texts / f"{name}.sql"
    return path.read_text("utf-8").removesuffix("\n")


def _file(kind: Kind, layout: Layout) -> str:
    if kind.text != "lastpoint" or layout.use_tags:
        return kind.text  # of the two ways to keep tags, this kind prefers the other one than the rest
    return "lastpoint-json" if layout.use_json else "lastpoint-plain"


def _values(kind: Kind, parameters: Parameters, dialect: Dialect, layout: Layout) -> Mapping[str, object]:
    def time(text: str) -> str:
        return text.removesuffix(" +0000") + dialect.offset if text else ""

    return {
        "start": time(parameters.start),
        "end": time(parameters.end),
        "fleet": parameters.fleet,
        "periods": kind.periods,
        "div": dialect.integer_division,
        "bucket": _Macro(lambda given: dialect.bucket(*given.split("|"))),
        "mean_age": _Macro(lambda given: dialect.mean_age.format(*given.split("|"))),
        **(_devops(kind, parameters, dialect, layout) if kind.family == "devops" else {}),
        **(_iot(parameters, dialect, layout) if kind.family == "iot" else {}),
    }


def _devops(kind: Kind, parameters: Parameters, dialect: Dialect, layout: Layout) -> dict[str, object]:
    fields = CPU_FIELDS[: kind.fields]
    named = {field: f"{'mean' if kind.aggregate == 'avg' else kind.aggregate}_{field}" for field in fields}
    hosts = _hosts(parameters.devices, dialect, layout)
    by_tags = layout.use_json or layout.use_tags
    host = "hostname"
    if layout.use_json:
        # TSBS takes the key from the table, which is no value; no database understands it.
        host = "tags->>'hostname'" if dialect.exact else "tags.tagset->>'hostname'"
    elif layout.use_tags:
        host = "tags.hostname"
    return {
        "seconds": _Macro(lambda given: _seconds(int(given), dialect, layout)),
        "aggregates": ", ".join(f"{kind.aggregate}({field}) as {name}" for field, name in named.items()),
        "means": ", ".join(named.values()),
        "hosts": f"AND {hosts}" if hosts and kind.text == "high-cpu" else hosts,
        "host": host,
        "partition": "tags_id" if by_tags else "hostname",
        "join": "JOIN tags ON cpu_avg.tags_id = tags.id" if by_tags else "",
    }


def _seconds(width: int, dialect: Dialect, layout: Layout) -> str:
    if dialect.exact and not layout.use_time_bucket:
        return f"to_timestamp(((extract(epoch from time)::int)/{width})*{width})"
    return dialect.bucket(f"{width} seconds", "time")


def _hosts(names: tuple[str, ...], dialect: Dialect, layout: Layout) -> str:
    if not names:
        return ""
    if layout.use_json:
        return f"tags_id IN (SELECT id FROM tags WHERE {_json('hostname', names, dialect)})"  # noqa: S608 - names are ours
    listed = _listed(names)
    if layout.use_tags:
        return f"tags_id IN (SELECT id FROM tags WHERE hostname IN ({listed}))"  # noqa: S608 - names are ours
    return f"hostname IN ({listed})"


def _iot(parameters: Parameters, dialect: Dialect, layout: Layout) -> dict[str, object]:
    def tag(column: str) -> str:
        table, _, name = column.rpartition(".")
        if not layout.use_json:
            return column
        return f"{table}.tagset->>'{name}'" if table else f"tagset->>'{name}'"

    def number(column: str) -> str:
        # TSBS calculates with the text that ->> gives; no database does.
        return f"({tag(column)})::double precision" if layout.use_json and not dialect.exact else tag(column)

    def named(value: Callable[[str], str]) -> _Macro:
        return _Macro(lambda column: f"{value(column)} AS {column.rpartition('.')[2]}")

    return {
        "tag": _Macro(tag),
        "tag_as": named(tag),
        "number": _Macro(number),
        "number_as": named(number),
        "trucks": _trucks(parameters.devices, dialect, layout),
    }


def _trucks(names: tuple[str, ...], dialect: Dialect, layout: Layout) -> str:
    if not layout.use_json:
        return f"t.name IN ({_listed(names)})"
    if dialect.exact:
        # TSBS's text names a column that the table `tags` does not have.
        return f"t.tags_id IN (SELECT id FROM tags WHERE {_json('name', names, dialect)})"  # noqa: S608 - names are ours
    return f"t.tagset->>'name' IN ({_listed(names)})"


def _json(key: str, values: tuple[str, ...], dialect: Dialect) -> str:
    return " OR ".join(dialect.contains.format(column="tagset", key=key, value=value) for value in values)


def _listed(names: tuple[str, ...]) -> str:
    return ",".join(f"'{name}'" for name in names)
