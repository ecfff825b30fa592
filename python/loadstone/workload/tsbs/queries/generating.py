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
class Order:
    """Which queries are to be made."""

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


def generate(order: Order) -> Iterator[Query]:
    """Return the queries of an order, one at a time.

    Raises LoadstoneError at the call when the use case has no such kind or the data set is too small.
    """
    kind = kind_named(order.kind, order.use_case)
    data = Range(order.scale, order.start_ns, order.end_ns)
    if order.end_ns < order.start_ns:
        raise LoadstoneError("the data set ends before it starts", "Set a later end.")
    draw(kind, data, _core.GoRand(order.seed))  # one to no purpose: what is refused is refused now
    return _queries(kind, data, order)


def mixed(orders: Sequence[Order]) -> Iterator[Query]:
    """Return the queries of several orders, taking one of each in turn until all are at their end."""
    streams: list[Iterable[Query]] = [generate(order) for order in orders]
    left = [iter(stream) for stream in streams]
    while left:
        for stream in list(left):
            for query in islice(stream, 1):
                yield query
                break
            else:
                left.remove(stream)


def _queries(kind: Kind, data: Range, order: Order) -> Iterator[Query]:
    rand, text = _core.GoRand(order.seed), renderer(kind, order.dialect, order.layout)
    for number in range(order.count):
        drawn = draw(kind, data, rand)
        if number % order.groups != order.group:
            continue
        yield Query(kind.human_label, _description(kind, drawn), kind.table, text(drawn.parameters))


def _description(kind: Kind, drawn: Drawn) -> str:
    if kind.remark:
        return f"{kind.human_label}: {kind.remark}"
    if kind.says:
        return f"{kind.human_label}: {rfc3339(drawn.start_ns if kind.says == 'start' else drawn.end_ns)}"
    return kind.human_label
