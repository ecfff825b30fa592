"""Queries asked by more and more clients: throughput, latency, the machine's part, and who serialises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts.curves import DASHED, Axis, Curve, colour, curves, linear, logarithmic
from loadstone.report.published import PUBLISHED, notes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from loadstone.report.charts import Chart

Json = dict[str, Any]

NS_PER_MS = 1e6
MANY_TIMES = 8
"""Most over fewest clients from which their axis is logarithmic."""
PUBLISHED_COLOUR = "var(--muted)"


def concurrency_block(identity: str, entry: Json, names: Mapping[str, str], ours: Collection[str]) -> Json:
    """Return the block of a phase of queries by clients.

    `names` are the targets' names for people, `ours` the ids of those whose engine works in our process.
    """
    targets = [_target(one, names, in_process=one["target"] in ours) for one in entry["targets"]]
    points = [point for target in targets for point in target["points"]]
    shown = {name: any(point[name] is not None for point in points) for name in SHOWN}
    percentiles = [p for p in PERCENTILES if any(point[f"p{p}_ns"] is not None for point in points)]
    failed = any(point["failed"] for point in points)
    return {
        "kind": "clients",
        "id": identity,
        "title": entry["title"],
        "variant": formats.variant(entry["variant"]),
        "why": entry["why"],
        "charts": _charts(identity, targets, entry["published"]),
        "targets": targets,
        "sentences": [words for target in targets if (words := verdict_words(target))],
        "draws": [f"{draw['name']} from {draw['least']:,} to {draw['most']:,}" for draw in entry["draws"]],
        "shown": shown,
        "percentiles": percentiles,
        "failed": failed,
        "width": 4 + len(percentiles) + failed + sum(shown.values()),
        "busy": any(point["client_busy_between"] for point in points),
        "together": [target["target"] for target in targets if target["in_process"]],
        "published": _by_system(entry["published"]),
        "published_notes": notes_of(entry["published"]),
    }


def _target(one: Json, names: Mapping[str, str], *, in_process: bool) -> Json:
    """Return a target with its points as they are shown: an engine in our process is what both take."""
    points = [_with_ours(point) if in_process else point for point in one["points"]]
    return {
        **one,
        "target": names.get(one["target"], one["target"]),
        "in_process": in_process,
        "points": [{**point, "cpu_server": _share(point["cpu_server"])} for point in points],
    }


def _with_ours(point: Json) -> Json:
    both = {"cpu_server": point["cpu_client"], "server_rss_bytes": point["client_rss_bytes"]}
    return {**point, **both, "cpu_client": None}


def _share(value: float | None) -> float | None:
    """Hold a share of the machine to the whole of it: ticks of two counters never fall together."""
    return None if value is None else min(1.0, value)


def _by_system(figures: Sequence[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for figure in figures:
        found.setdefault(str(figure.get("system") or PUBLISHED.capitalize()), []).append(figure)
    return found


PERCENTILES = (50, 95, 99)
SHOWN = ("cpu_server", "cpu_client", "server_rss_bytes", "gpu_utilisation", "gpu_memory_bytes", "energy_j")


def verdict_words(target: Json) -> str:
    """Say what more clients brought on one target."""
    found = target["verdict"]
    if not found:
        return ""
    width = f"from {found['from_clients']:g} to {found['to_clients']:g} clients"
    more = f"{formats.times(found['qps_ratio'])} the queries a second"
    slower = f" at {formats.times(found['latency_ratio'])} the latency" if found["latency_ratio"] else ""
    if found["fills_machine"]:
        share = formats.percent(_share(found["cpu_alone"]))
        return (
            f"{target['target']} does not scale: one query already fills the machine ({share} of its CPU); "
            f"{width}, {more}{slower}."
        )
    if not found["serialises"]:
        return f"{target['target']}: {width}, {more}{slower}."
    room = " while the machine has room" if found["cpu_alone"] is not None else ""
    return f"{target['target']} serialises: {width}, {more}{slower}. Queries wait for each other{room}."


def _charts(identity: str, targets: Sequence[Json], published: Sequence[Json]) -> list[Chart]:
    widths = sorted({float(point["clients"]) for target in targets for point in target["points"]})
    if len(widths) < 2:  # noqa: PLR2004 - one width is no course
        return []
    across = _across(widths)
    qps = [
        _line(target, at, lambda point: (point["qps"] or {}).get("value"))
        for at, target in enumerate(targets)
    ]
    qps += _published(published)
    mean = [
        _line(target, at, lambda point: point["mean_ns"] and point["mean_ns"] / NS_PER_MS)
        for at, target in enumerate(targets)
    ]
    found = []
    if any(y for line in qps for y in line.y):
        found.append(
            _chart(f"{identity}-qps", "Queries a second by clients", qps, (across, linear("1/s", qps)))
        )
    positive = [y for line in mean for y in line.y if y]
    if positive:
        axes = (across, logarithmic("mean latency, ms", positive))
        found.append(_chart(f"{identity}-latency", "Latency by clients", mean, axes))
    return found


def _line(target: Json, number: int, figure: Any) -> Curve:
    points = target["points"]
    xs = [float(point["clients"]) for point in points]
    return Curve(target["target"], colour(number), xs, [figure(point) for point in points])


def _published(figures: Sequence[Json]) -> list[Curve]:
    systems: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        if figure["clients"] is not None:
            name = f"{figure['system'] or 'one system'}, published"
            systems.setdefault(name, []).append((float(figure["clients"]), float(figure["value"])))
    return [
        Curve(
            name,
            PUBLISHED_COLOUR,
            [x for x, _ in sorted(points)],
            [y for _, y in sorted(points)],
            style=DASHED,
        )
        for name, points in systems.items()
    ]


def _chart(identity: str, title: str, lines: Sequence[Curve], axes: tuple[Axis, Axis]) -> Chart:
    words = "; ".join(
        f"{line.name}: {formats.digits(known[0])} at {line.x[0]:g}, "
        f"{formats.digits(known[-1])} at {line.x[-1]:g}"
        for line in lines
        if (known := [y for y in line.y if y is not None])
    )
    return curves(identity=(identity, title, f"{words}."), lines=lines, axes=axes, width="half", height=190)


def _across(xs: Sequence[float]) -> Axis:
    if xs[0] > 0 and xs[-1] / xs[0] >= MANY_TIMES:
        return Axis("clients", {"type": "log", "domain": [xs[0], xs[-1]], "nice": False}, xs)
    return Axis("clients", {"zero": False, "nice": False}, xs)
