"""Queries asked by more and more clients: throughput, latency, the machine's part, and who serialises."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

import msgspec

from loadstone.report import formats
from loadstone.report.charts.curves import DASHED, Axis, Curve, colour, curves, linear, logarithmic
from loadstone.report.published import PUBLISHED, notes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.results.documents.summary import (
        Concurrency,
        PublishedWidth,
        WidthPoint,
        WidthTarget,
        WidthVerdict,
    )

NS_PER_MS = 1e6
MANY_TIMES = 8
"""Most over fewest clients from which their axis is logarithmic."""
PUBLISHED_COLOUR = "var(--muted)"
PERCENTILES: tuple[tuple[int, Callable[[WidthPoint], float | None]], ...] = (
    (50, lambda point: point.p50_ns),
    (95, lambda point: point.p95_ns),
    (99, lambda point: point.p99_ns),
)


@dataclass(frozen=True, slots=True)
class WidthRow:
    """Queries at one number of clients, with their latencies in ns by percentile."""

    figures: WidthPoint
    percentiles: dict[int, float | None]


@dataclass(frozen=True, slots=True)
class WidthRows:
    """Queries by the number of clients on one target, by the target's name for people."""

    target: str
    in_process: bool
    points: list[WidthRow]
    verdict: WidthVerdict | None


@dataclass(frozen=True, slots=True)
class WidthColumns:
    """Which columns have anything in them."""

    cpu_server: bool
    cpu_client: bool
    server_rss_bytes: bool
    gpu_utilisation: bool
    gpu_memory_bytes: bool
    energy_j: bool

    @property
    def count(self) -> int:
        """How many of them are shown."""
        return sum(astuple(self))


@dataclass(frozen=True, slots=True)
class ConcurrencyBlock:
    """What the page says of queries that clients asked as a load."""

    id: str
    title: str | None
    variant: str
    why: str | None
    charts: list[Chart]
    targets: list[WidthRows]
    sentences: list[str]
    draws: list[str]
    shown: WidthColumns
    percentiles: list[int]
    failed: bool
    width: int
    """How many columns the table has."""
    busy: bool
    together: list[str]
    """Targets whose engine works in our process."""
    published: dict[str, list[PublishedWidth]]
    """By system."""
    published_notes: list[str]
    kind: str = "clients"


def concurrency_block(
    identity: str, entry: Concurrency, names: Mapping[str, str], ours: Collection[str]
) -> ConcurrencyBlock:
    """Return the block of a phase of queries by clients.

    `names` are the targets' names for people, `ours` the ids of those whose engine works in our process.
    """
    targets = [_target(one, names, in_process=one.target in ours) for one in entry.targets]
    points = [point for target in targets for point in target.points]
    shown = _shown([point.figures for point in points])
    percentiles = [p for p, _ in PERCENTILES if any(point.percentiles[p] is not None for point in points)]
    failed = any(point.figures.failed for point in points)
    return ConcurrencyBlock(
        id=identity,
        title=entry.title,
        variant=formats.variant(entry.variant),
        why=entry.why,
        charts=_charts(identity, targets, entry.published),
        targets=targets,
        sentences=[words for one in targets if (words := verdict_words(one.target, one.verdict))],
        draws=[f"{draw.name} from {draw.least:,} to {draw.most:,}" for draw in entry.draws],
        shown=shown,
        percentiles=percentiles,
        failed=failed,
        width=4 + len(percentiles) + failed + shown.count,
        busy=any(point.figures.client_busy_between for point in points),
        together=[target.target for target in targets if target.in_process],
        published=_by_system(entry.published),
        published_notes=notes_of(entry.published),
    )


def _shown(points: Sequence[WidthPoint]) -> WidthColumns:
    return WidthColumns(
        cpu_server=any(point.cpu_server is not None for point in points),
        cpu_client=any(point.cpu_client is not None for point in points),
        server_rss_bytes=any(point.server_rss_bytes is not None for point in points),
        gpu_utilisation=any(point.gpu_utilisation is not None for point in points),
        gpu_memory_bytes=any(point.gpu_memory_bytes is not None for point in points),
        energy_j=any(point.energy_j is not None for point in points),
    )


def _target(one: WidthTarget, names: Mapping[str, str], *, in_process: bool) -> WidthRows:
    """Return a target with its points as they are shown: an engine in our process is what both take."""
    points = [_with_ours(point) if in_process else point for point in one.points]
    return WidthRows(
        target=names.get(one.target, one.target),
        in_process=in_process,
        points=[_row(point) for point in points],
        verdict=one.verdict,
    )


def _with_ours(point: WidthPoint) -> WidthPoint:
    return msgspec.structs.replace(
        point, cpu_server=point.cpu_client, server_rss_bytes=point.client_rss_bytes, cpu_client=None
    )


def _row(point: WidthPoint) -> WidthRow:
    shown = msgspec.structs.replace(point, cpu_server=_share(point.cpu_server))
    return WidthRow(shown, {percentile: figure(point) for percentile, figure in PERCENTILES})


def _share(value: float | None) -> float | None:
    """Hold a share of the machine to the whole of it: ticks of two counters never fall together."""
    return None if value is None else min(1.0, value)


def _by_system(figures: Sequence[PublishedWidth]) -> dict[str, list[PublishedWidth]]:
    found: dict[str, list[PublishedWidth]] = {}
    for figure in figures:
        found.setdefault(figure.system or PUBLISHED.capitalize(), []).append(figure)
    return found


def verdict_words(target: str, found: WidthVerdict | None) -> str:
    """Say what more clients brought on one target, by its name for people."""
    if not found:
        return ""
    width = f"from {found.from_clients:g} to {found.to_clients:g} clients"
    more = f"{formats.times(found.qps_ratio)} the queries a second"
    slower = f", {formats.times(found.latency_ratio)} the latency" if found.latency_ratio else ""
    if found.fills_machine:
        share = formats.percent(_share(found.cpu_alone))
        return (
            f"{target} does not scale: one query already fills the machine ({share} of its CPU); "
            f"{width}, {more}{slower}."
        )
    if found.kind == "shared":
        return (
            f"{target}: {width}, {more}{slower}. Other programs used {formats.percent(found.cpu_others)} of "
            "the machine's CPU, so this does not show whether queries wait for each other."
        )
    if not found.serialises:
        return f"{target}: {width}, {more}{slower}."
    room = " although the machine is not fully used" if found.cpu_alone is not None else ""
    return f"{target} serialises: {width}, {more}{slower}. Queries wait for each other{room}."


def _charts(identity: str, targets: Sequence[WidthRows], published: Sequence[PublishedWidth]) -> list[Chart]:
    widths = sorted({_clients(point.figures) for target in targets for point in target.points})
    if len(widths) < 2:  # noqa: PLR2004 - one width is no course
        return []
    across = _across(widths)
    qps = [
        _line(target, at, lambda point: point.qps.value if point.qps else None)
        for at, target in enumerate(targets)
    ]
    qps += _published(published)
    mean = [
        _line(target, at, lambda point: point.mean_ns and point.mean_ns / NS_PER_MS)
        for at, target in enumerate(targets)
    ]
    found = []
    if any(y for line in qps for y in line.y):
        found.append(
            _chart(f"{identity}-qps", "Queries a second by clients", qps, (across, linear("queries/s", qps)))
        )
    positive = [y for line in mean for y in line.y if y]
    if positive:
        axes = (across, logarithmic("mean latency, ms", positive))
        found.append(_chart(f"{identity}-latency", "Latency by clients", mean, axes))
    return found


def _clients(point: WidthPoint) -> float:
    return float(point.clients or 0)


def _line(target: WidthRows, number: int, figure: Callable[[WidthPoint], float | None]) -> Curve:
    points = [point.figures for point in target.points]
    return Curve(target.target, colour(number), [_clients(p) for p in points], [figure(p) for p in points])


def _published(figures: Sequence[PublishedWidth]) -> list[Curve]:
    systems: dict[str, list[tuple[float, float]]] = {}
    for figure in figures:
        if figure.clients is not None and figure.value is not None:
            name = f"{figure.system or 'one system'}, published"
            systems.setdefault(name, []).append((float(figure.clients), float(figure.value)))
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
