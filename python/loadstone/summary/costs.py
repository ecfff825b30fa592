"""What work costs at the prices that were given for an hour of each target, in the user's currency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.results.documents.summary import ImportCost, QueryCost, TargetCost, WidthCost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.results.documents.summary import (
        Concurrency,
        ImportFigures,
        Imports,
        PlainQueriesFigures,
        PlainQueryFigures,
        WidthPoint,
    )

SECONDS = 3600
MILLION, THOUSAND = 1e6, 1e3


def summarise_costs(
    prices: Mapping[str, float],
    imports: Sequence[Imports],
    plain_queries: Sequence[PlainQueriesFigures],
    concurrency: Sequence[Concurrency],
) -> list[TargetCost]:
    """Return for each priced target what a million rows imported and a thousand queries answered cost.

    One by one, a query keeps its target's machine to itself for the median of its warm runs; under a load,
    the machine is shared by all clients. Wrong answers cost nothing: they have no price at all.
    """
    return [
        TargetCost(
            target=target,
            price_per_hour=price,
            imports=[
                _import(load, price) for entry in imports for load in entry.loads if load.target == target
            ],
            queries=[
                QueryCost(
                    scenario=entry.scenario,
                    id=entry.id,
                    variant=entry.variant,
                    name=query.name,
                    per_thousand=_query(query, price),
                )
                for entry in plain_queries
                for one in entry.targets
                if one.target == target
                for query in one.queries
            ],
            loads=[
                WidthCost(
                    scenario=entry.scenario,
                    id=entry.id,
                    variant=entry.variant,
                    clients=point.clients,
                    per_thousand=_shared(point, price),
                )
                for entry in concurrency
                for one in entry.targets
                if one.target == target
                for point in one.points
            ],
        )
        for target, price in prices.items()
    ]


def _import(load: ImportFigures, price: float) -> ImportCost:
    rate = load.rows_per_s.value
    cost = price / SECONDS * MILLION / rate if rate else None
    return ImportCost(id=load.id, title=load.title, variant=load.variant, per_million_rows=cost)


def _query(query: PlainQueryFigures, price: float) -> float | None:
    seconds = query.warm.median_s
    return None if query.wrong or seconds is None else price / SECONDS * THOUSAND * float(seconds)


def _shared(point: WidthPoint, price: float) -> float | None:
    qps = point.qps and point.qps.value
    return price / SECONDS * THOUSAND / float(qps) if qps else None
