"""Plain queries asked as a load: throughput and latency by the number of clients, and who serialises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.summary.reading import Json

OVER = "clients"
FLAT = 1.2
"""Throughput of the most clients over that of the fewest, up to which it counts as flat."""
IN_PROPORTION = 0.7
"""Growth of the latency over growth of the clients, from which clients wait for each other."""
WHOLE_MACHINE = 0.85
"""Share of the machine from which one query alone leaves nothing for a second one."""
PERCENTILES = (50, 95, 99)


def summarise_concurrency(groups: Sequence[Json], phases: Sequence[Json]) -> list[Json]:
    """Return an entry for each phase of questions asked as a load: every target, a point for each width."""
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
    return [_entry(heads[identity], targets, groups) for identity, targets in found.items()]


def _entry(head: Json, targets: dict[str, list[Json]], groups: Sequence[Json]) -> Json:
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
            {"target": target, "points": points, "verdict": judge_width(points)}
            for target, points in ordered.items()
        ],
        "published": published,
    }


def _point(group: Json, members: Sequence[Json]) -> Json:
    percentiles = {entry["percentile"]: entry for entry in group["percentiles"]}
    drives = [member["drive"] for member in members]
    return {
        OVER: group["clients"],
        "qps": group["tps"],
        "mean_ns": group["latency"]["mean_ns"],
        **{f"p{p}_ns": (percentiles.get(p) or {}).get("value_ns") for p in PERCENTILES},
        "done": group["done"],
        "failed": group["failed"],
        "reason": next((e.get("message") for drive in drives for e in drive["errors"]), None),
        "energy_j": _energy_each(members),
        **{name: _mean([(member["usage"] or {}).get(name) for member in members]) for name in USED},
    }


USED = ("cpu_server", "cpu_client", "server_rss_bytes", "gpu_utilisation", "gpu_memory_bytes")
"""What of the machine is shown beside a number of clients: shares of the whole, bytes."""


def judge_width(points: Sequence[Json]) -> Json | None:
    """Say whether more clients got more done; None where that cannot be told.

    An engine serialises when throughput stays flat while latency grows about as the clients do. One query
    that fills the machine by itself shows the same, and that is said.
    """
    known = [point for point in points if (point["qps"] or {}).get("value") and point[OVER]]
    if len(known) < 2 or known[-1][OVER] <= known[0][OVER]:  # noqa: PLR2004 - one width has nothing beside it
        return None
    few, many = known[0], known[-1]
    wider = many[OVER] / few[OVER]
    more = many["qps"]["value"] / few["qps"]["value"]
    slower = many["mean_ns"] / few["mean_ns"] if many["mean_ns"] and few["mean_ns"] else None
    serialises = more <= FLAT and slower is not None and slower >= IN_PROPORTION * wider
    full = (few["cpu_server"] or 0.0) >= WHOLE_MACHINE
    return {
        "serialises": serialises,
        "fills_machine": serialises and full,
        "from_clients": few[OVER],
        "to_clients": many[OVER],
        "qps_ratio": more,
        "latency_ratio": slower,
        "cpu_server": few["cpu_server"],
    }


def _energy_each(members: Sequence[Json]) -> float | None:
    known = [(m["energy_j"], m["drive"]["counts"]["done"]) for m in members if m.get("energy_j") is not None]
    done = sum(count for _, count in known)
    return sum(joules for joules, _ in known) / done if done else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
