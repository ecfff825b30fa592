"""Plain queries asked as a load: throughput and latency by the number of clients, and who serialises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.summary import (
    Concurrency,
    PublishedWidth,
    WidthPoint,
    WidthTarget,
    WidthVerdict,
)
from loadstone.summary.intervals import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.results.documents.summary import (
        ConcurrentQueriesFigures,
        Group,
        PhaseFigures,
        Usage,
        Variant,
    )

OVER = "clients"
FLAT = 1.2
"""Throughput of the most clients over that of the fewest, up to which it counts as flat."""
IN_PROPORTION = 0.7
"""Growth of the latency over growth of the clients, from which clients wait for each other."""
WHOLE_MACHINE = 1 / FLAT
"""Share of the machine from which one query alone leaves room for flat throughput only."""
OTHER_BUSY = 0.10
"""Share of the machine from which on others count: as where a warning says that it was busy."""
IN_FLIGHT = 0.85
"""Queries in flight over clients, under which the clients did something else between answers."""


def summarise_concurrency(
    groups: Sequence[Group], phases: Sequence[PhaseFigures], in_process: Collection[str] = ()
) -> list[Concurrency]:
    """Return an entry for each phase of queries asked as a load: every target, a point for each width.

    `in_process` are the targets whose engine works in our own process.
    """
    by_key = {(phase.target, phase.folder): phase for phase in phases}
    found: dict[str, dict[str, list[WidthPoint]]] = {}
    heads: dict[str, tuple[Group, Variant, ConcurrentQueriesFigures]] = {}
    for group in groups:
        members = [by_key[group.target, folder] for folder in group.phases]
        plain_queries = members[0].plain_queries
        if group.kind == "queries" and plain_queries is not None:
            variant = {name: value for name, value in group.variant.items() if name != OVER}
            identity = json.dumps([group.scenario, group.id, variant], sort_keys=True)
            heads.setdefault(identity, (group, variant, plain_queries))
            points = found.setdefault(identity, {}).setdefault(group.target, [])
            points.append(_point(group, members, in_process=group.target in in_process))
    return [_entry(heads[identity], targets, groups, in_process) for identity, targets in found.items()]


def _entry(
    head: tuple[Group, Variant, ConcurrentQueriesFigures],
    targets: Mapping[str, list[WidthPoint]],
    groups: Sequence[Group],
    in_process: Collection[str],
) -> Concurrency:
    first, variant, plain_queries = head
    same = [g for g in groups if (g.scenario, g.id, g.target) == (first.scenario, first.id, first.target)]
    ordered = {
        target: sorted(points, key=lambda p: int(p.clients or 0)) for target, points in targets.items()
    }
    return Concurrency(
        scenario=first.scenario,
        id=first.id,
        title=first.title,
        why=first.why,
        variant=variant,
        draws=plain_queries.draws or [],
        rows=plain_queries.rows,
        targets=[
            WidthTarget(
                target=target,
                points=points,
                verdict=judge_width(points, in_process=target in in_process),
            )
            for target, points in ordered.items()
        ],
        published=[
            PublishedWidth(clients=group.variant.get(OVER), **msgspec.structs.asdict(figure))
            for group in same
            for figure in group.published
            if figure.metric == "qps"
        ],
    )


def _point(group: Group, members: Sequence[PhaseFigures], *, in_process: bool) -> WidthPoint:
    percentiles = {entry.percentile: entry.value_ns for entry in group.percentiles}
    drives = [member.drive for member in members if member.drive]
    in_flight = _in_flight(group)
    used = [member.usage for member in members if member.usage]
    return WidthPoint(
        clients=group.clients,
        qps=group.tps,
        mean_ns=group.latency.mean_ns,
        in_flight=in_flight,
        client_busy_between=_busy_between(group, in_flight),
        p50_ns=percentiles.get(50),
        p95_ns=percentiles.get(95),
        p99_ns=percentiles.get(99),
        done=group.done,
        failed=group.failed,
        reason=next((e.message for drive in drives for e in drive.errors), None),
        energy_j=_energy_each(members),
        cpu_server=_mean([usage.cpu_server for usage in used]),
        cpu_client=_mean([usage.cpu_client for usage in used]),
        cpu_others=_mean([_of_others(usage, in_process=in_process) for usage in used]),
        server_rss_bytes=_mean([usage.server_rss_bytes for usage in used]),
        client_rss_bytes=_mean([usage.client_rss_bytes for usage in used]),
        gpu_utilisation=_mean([usage.gpu_utilisation for usage in used]),
        gpu_memory_bytes=_mean([usage.gpu_memory_bytes for usage in used]),
    )


def _of_others(usage: Usage, *, in_process: bool) -> float | None:
    """Return the share of the machine that neither server nor client used; None where that is not known."""
    if usage.cpu_other is None or (usage.cpu_server is None and not in_process):
        return None
    return usage.cpu_other + (usage.cpu_steal or 0.0)


def _in_flight(group: Group) -> float | None:
    """Return how many queries were in flight in the mean: throughput times latency (Little's law)."""
    qps, mean_ns = (group.tps and group.tps.value), group.latency.mean_ns
    return qps * mean_ns / NS_PER_S if qps and mean_ns else None


def _busy_between(group: Group, in_flight: float | None) -> bool:
    """Whether clients kept the engine waiting, even if each has another query that the end cut off."""
    clients, done = group.clients, group.done
    if in_flight is None or not clients or not done:
        return False
    return bool(in_flight * (done + clients) / done < IN_FLIGHT * clients)


def judge_width(points: Sequence[WidthPoint], *, in_process: bool = False) -> WidthVerdict | None:
    """Say what more clients brought; None where that cannot be told.

    Throughput that stays flat while latency grows about as the clients do has three reasons: one query alone
    fills the machine (it does not scale), other programs take what it leaves (nobody can tell), or queries
    wait for each other (the engine serialises). The CPU time of an engine in our process is counted as ours.
    """
    known = [
        (point, int(point.clients), point.qps.value)
        for point in points
        if point.clients and point.qps and point.qps.value
    ]
    if len(known) < 2 or known[-1][1] <= known[0][1]:  # noqa: PLR2004 - one width has nothing beside it
        return None
    (few, fewest, slow), (many, most, fast) = known[0], known[-1]
    wider = most / fewest
    more = fast / slow
    slower = many.mean_ns / few.mean_ns if many.mean_ns and few.mean_ns else None
    waits = more <= FLAT and slower is not None and slower >= IN_PROPORTION * wider
    alone = few.cpu_client if in_process else few.cpu_server
    full = waits and (alone or 0.0) >= WHOLE_MACHINE
    shared = waits and not full and _is_crowded(many)
    flat = "flat" if more <= FLAT else "scales"
    kind = "fills_machine" if full else "shared" if shared else "serialises" if waits else flat
    return WidthVerdict(
        kind=kind,
        serialises=kind == "serialises",
        fills_machine=full,
        from_clients=fewest,
        to_clients=most,
        qps_ratio=more,
        latency_ratio=slower,
        cpu_alone=alone,
        cpu_others=many.cpu_others,
    )


def _is_crowded(point: WidthPoint) -> bool:
    """Whether other programs used so much of the machine that more queries at once had no room."""
    others = point.cpu_others or 0.0
    ours = (point.cpu_server or 0.0) + (point.cpu_client or 0.0)
    return others >= OTHER_BUSY and ours + others >= WHOLE_MACHINE


def _energy_each(members: Sequence[PhaseFigures]) -> float | None:
    known = [(m.energy_j, m.drive.counts.done) for m in members if m.drive and m.energy_j is not None]
    done = sum(count for _, count in known)
    return sum(joules for joules, _ in known) / done if done else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
