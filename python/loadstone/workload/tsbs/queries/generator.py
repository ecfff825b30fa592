"""Making queries: parameters drawn, texts filled in, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from loadstone import _core
from loadstone.errors import LoadstoneError
from loadstone.workload.tsbs.queries.dialects import TIMESCALEDB
from loadstone.workload.tsbs.queries.draws import Range, draw, rfc3339
from loadstone.workload.tsbs.queries.kinds import kind_named
from loadstone.workload.tsbs.queries.texts import Layout, renderer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadstone.workload.tsbs.queries.dialects import Dialect
    from loadstone.workload.tsbs.queries.draws import Drawn
    from loadstone.workload.tsbs.queries.kinds import Kind


class Query(msgspec.Struct, frozen=True, gc=False):
    """One query as TSBS's files hold it."""

    label: str
    description: str
    table: str
    sql: str


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """Which queries are made."""

    use_case: str
    kind: str
    scale: int
    start_ns: int
    """Beginning of the data set, nanoseconds since 1970."""
    end_ns: int
    seed: int
    count: int
    """How many are drawn; those of other groups count."""
    group: int = 0
    groups: int = 1
    dialect: Dialect = TIMESCALEDB
    layout: Layout = field(default_factory=Layout)


def generate(spec: QuerySpec) -> Iterator[Query]:
    """Return the queries of a specification, one at a time.

    Raises LoadstoneError at the call when the use case has no such kind or the data set is too small.
    """
    kind = kind_named(spec.kind, spec.use_case)
    data = Range(spec.scale, spec.start_ns, spec.end_ns)
    if spec.end_ns < spec.start_ns:
        raise LoadstoneError("the data set ends before it starts", "Set a later end.")
    draw(kind, data, _core.GoRand(spec.seed))  # one to no purpose: what is refused is refused now
    return _queries(kind, data, spec)


def mixed(specs: Sequence[QuerySpec]) -> Iterator[Query]:
    """Return the queries of several specifications, taking one of each in turn until all are at their end."""
    streams: list[Iterable[Query]] = [generate(spec) for spec in specs]
    left = [iter(stream) for stream in streams]
    while left:
        for stream in list(left):
            for query in islice(stream, 1):
                yield query
                break
            else:
                left.remove(stream)


def _queries(kind: Kind, data: Range, spec: QuerySpec) -> Iterator[Query]:
    rand, text = _core.GoRand(spec.seed), renderer(kind, spec.dialect, spec.layout)
    for number in range(spec.count):
        drawn = draw(kind, data, rand)
        if number % spec.groups != spec.group:
            continue
        yield Query(kind.human_label, _description(kind, drawn), kind.table, text(drawn.parameters))


def _description(kind: Kind, drawn: Drawn) -> str:
    if kind.remark:
        return f"{kind.human_label}: {kind.remark}"
    if kind.says:
        return f"{kind.human_label}: {rfc3339(drawn.start_ns if kind.says == 'start' else drawn.end_ns)}"
    return kind.human_label
