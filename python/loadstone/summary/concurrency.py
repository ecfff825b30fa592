"""Plain queries asked as a load: throughput and latency by the number of clients, and who serialises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loadstone.summary.series import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from loadstone.summary.reading import Json

OVER = "clients"
FLAT = 1.2
"""Throughput of the most clients over that of the fewest, up to which it counts as flat."""
IN_PROPORTION = 0.7
"""Growth of the latency over growth of the clients, from which clients wait for each other."""
WHOLE_MACHINE = 1 / FLAT
"""Share of the machine from which one query alone leaves room for flat throughput only."""
IN_FLIGHT = 0.85
"""Queries in flight over clients, under which the clients did something else between answers."""
PERCENTILES = (50, 95, 99)


def summarise_concurrency(
    groups: Sequence[Json], phases: Sequence[Json], in_process: Collection[str] = ()
) -> list[Json]:
    """Return an entry for each phase of questions asked as a load: every target, a point for each width.

    `in_process` are the targets whose engine works in our own process.
    """
    by_key = {(phase["target"], phase["folder"]): phase for phase in phases}
    found: dict[str, dict[str, list[Json]]] = {}
    heads: dict[str, Json] = {}
    for group in groups:
        members = [by_key[group["target"], folder] for folder in group["phases"]]
        if group["kind"] == "query" and members[0]["asking"] is not None:
            variant = {name: value for name, value in group["variant"].items() if name != OVER}
            identity = json.dumps([group["scenario"], group["id"], variant], sort_keys=True)
            heads.setdefault(identity, {**group, "variant": variant, "asking": members[0]["asking"]})
            points = found.setdefault(identity, {}).setdefault(group["target"], [])
            points.append(_point(group, members))
    return [_entry(heads[identity], targets, groups, in_process) for identity, targets in found.items()]


def _entry(
    head: Json, targets: dict[str, list[Json]], groups: Sequence[Json], in_process: Collection[str]
) -> Json:
    same = [g for g in groups if (g["scenario"], g["id"]) == (head["scenario"], head["id"])]
    published = [
        {OVER: group["variant"].get(OVER), **figure}
        for group in same
        if group["target"] == head["target"]
        for figure in group["published"]
        if figure["metric"] == "qps"
    ]
    ordered = {target: sorted(points, key=lambda p: int(p[OVER] or 0)) for target, points in targets.items()}
    return {
        **{name: head[name] for name in ("scenario", "id", "title", "why", "variant")},
        "draws": head["asking"].get("draws") or [],
        "rows": head["asking"].get("rows"),
        "targets": [
            {
                "target": target,
                "points": points,
                "verdict": judge_width(points, in_process=target in in_process),
            }
            for target, points in ordered.items()
        ],
        "published": published,
    }


def _point(group: Json, members: Sequence[Json]) -> Json:
    percentiles = {entry["percentile"]: entry for entry in group["percentiles"]}
    drives = [member["drive"] for member in members]
    in_flight = _in_flight(group)
    return {
        OVER: group["clients"],
        "qps": group["tps"],
        "mean_ns": group["latency"]["mean_ns"],
        "in_flight": in_flight,
        "client_busy_between": _busy_between(group, in_flight),
        **{f"p{p}_ns": (percentiles.get(p) or {}).get("value_ns") for p in PERCENTILES},
        "done": group["done"],
        "failed": group["failed"],
        "reason": next((e.get("message") for drive in drives for e in drive["errors"]), None),
        "energy_j": _energy_each(members),
        **{name: _mean([(member["usage"] or {}).get(name) for member in members]) for name in USED},
    }


USED = (
    "cpu_server",
    "cpu_client",
    "server_rss_bytes",
    "client_rss_bytes",
    "gpu_utilisation",
    "gpu_memory_bytes",
)
"""What of the machine is shown beside a number of clients: shares of the whole, bytes."""


def _in_flight(group: Json) -> float | None:
    """Return how many queries were under way in the mean: throughput times latency (Little's law)."""
    qps, mean_ns = (group["tps"] or {}).get("value"), group["latency"]["mean_ns"]
    return qps * mean_ns / NS_PER_S if qps and mean_ns else None


def _busy_between(group: Json, in_flight: float | None) -> bool:
    """Whether clients kept the engine waiting, even if each has another query that the end cut off."""
    clients, done = group["clients"], group["done"]
    if in_flight is None or not clients or not done:
        return False
    return bool(in_flight * (done + clients) / done < IN_FLIGHT * clients)


def judge_width(points: Sequence[Json], *, in_process: bool = False) -> Json | None:
    """Say what more clients brought; None where that cannot be told.

    Throughput that stays flat while latency grows about as the clients do has two reasons: one query alone
    fills the machine (it does not scale), or queries wait for each other (the engine serialises). The CPU
    time of an engine in our process is counted as ours.
    """
    known = [point for point in points if (point["qps"] or {}).get("value") and point[OVER]]
    if len(known) < 2 or known[-1][OVER] <= known[0][OVER]:  # noqa: PLR2004 - one width has nothing beside it
        return None
    few, many = known[0], known[-1]
    wider = many[OVER] / few[OVER]
    more = many["qps"]["value"] / few["qps"]["value"]
    slower = many["mean_ns"] / few["mean_ns"] if many["mean_ns"] and few["mean_ns"] else None
    waits = more <= FLAT and slower is not None and slower >= IN_PROPORTION * wider
    alone = few["cpu_client"] if in_process else few["cpu_server"]
    full = waits and (alone or 0.0) >= WHOLE_MACHINE
    flat = "flat" if more <= FLAT else "scales"
    return {
        "kind": "fills_machine" if full else "serialises" if waits else flat,
        "serialises": waits and not full,
        "fills_machine": full,
        "from_clients": few[OVER],
        "to_clients": many[OVER],
        "qps_ratio": more,
        "latency_ratio": slower,
        "cpu_alone": alone,
    }


def _energy_each(members: Sequence[Json]) -> float | None:
    known = [(m["energy_j"], m["drive"]["counts"]["done"]) for m in members if m.get("energy_j") is not None]
    done = sum(count for _, count in known)
    return sum(joules for joules, _ in known) / done if done else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
