"""Costs: a row for each import, query and number of clients, a column for each target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.imports import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.results.documents.summary import Summary, TargetCost


@dataclass(frozen=True, slots=True)
class CostRow:
    """What one thing costs, a cell for each target."""

    words: str
    cells: list[str]


@dataclass(frozen=True, slots=True)
class CostsBlock:
    """What the page says of costs, in the user's currency."""

    targets: list[str]
    head: list[str]
    groups: dict[str, list[CostRow]]
    unpriced: list[str]
    kind: str = "costs"
    id: str = "costs"
    title: str = "Costs"
    variant: str = ""
    why: str = ""


def costs_block(summary: Summary, names: Mapping[str, str]) -> CostsBlock:
    """Lay the costs out; `names` are the targets' names for people."""
    targets = [cost.target for cost in summary.costs]
    rows: dict[tuple[str, str], dict[str, float | None]] = {}
    for cost in summary.costs:
        for row, value in _costs(cost):
            rows.setdefault(row, {})[cost.target] = value
    groups: dict[str, list[CostRow]] = {}
    for (of, words), found in rows.items():
        cells = [formats.digits(found.get(target)) for target in targets]
        groups.setdefault(of, []).append(CostRow(words, cells))
    return CostsBlock(
        targets=[
            f"{names.get(cost.target, cost.target)} at {cost.price_per_hour:g} an hour"
            for cost in summary.costs
        ],
        head=[names.get(target, target) for target in targets],
        groups=groups,
        unpriced=[names.get(t.id, t.id) for t in summary.targets if t.id not in targets],
    )


def _costs(cost: TargetCost) -> Iterator[tuple[tuple[str, str], float | None]]:
    """Yield the costs of one target, each with the group and the words of its row."""
    for load in cost.imports:
        yield ("A million rows imported", title_of(load)), load.per_million_rows
    for query in cost.queries:
        yield ("A thousand queries, one by one and warm", query.name), query.per_thousand
    for point in cost.loads:
        words = f"{point.clients} client{'' if point.clients == 1 else 's'}"
        yield ("A thousand queries, under load", words), point.per_thousand
