"""What a target's machine did over the run: panels on one time axis, with the phases as bands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from loadstone.report import formats
from loadstone.report.charts import Axes, Band, Line, Mark, over_time, rounded
from loadstone.report.charts.choice import MEBI, course, time_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.report.charts import Chart
    from loadstone.results.documents.summary import PhaseFigures, ResourcePoint, Resources, TargetFigures

    Figure = Callable[[ResourcePoint], float | None]

GAP_S = 5.0
GIBI = 2**30
PER_CENT = 0.01
NARROW_BAND = 0.02
"""Share of the axis under which a phase's number has no room."""
TOGETHER = "engine and Loadstone together"
"""An engine that works inside our process: what it takes cannot be distinguished from what we take."""
CPU_SERIES: tuple[tuple[str, Figure, str], ...] = (
    ("server", lambda point: point.cpu_server, "var(--series-1)"),
    ("Loadstone", lambda point: point.cpu_client, "var(--series-3)"),
    ("other", lambda point: point.cpu_other, "var(--series-2)"),
    ("stolen", lambda point: point.cpu_steal, "var(--series-4)"),
)


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of its own; a value is divided by `divisor` to have the unit."""

    name: str
    title: str
    unit: str
    divisor: float
    lines: tuple[tuple[str, Figure], ...]


def _ours_beside(point: ResourcePoint) -> float | None:
    """Return our own machine's CPU where the server's is watched, to be compared."""
    return None if point.machine_iowait is None else point.cpu_busy


PANELS = (
    Panel(
        "disk-bytes",
        "Disk throughput",
        "MiB/s",
        MEBI,
        (
            ("written", lambda point: point.disk_write_bytes_per_s),
            ("read", lambda point: point.disk_read_bytes_per_s),
        ),
    ),
    Panel(
        "disk-ops",
        "Disk operations",
        "ops/s",
        1,
        (
            ("writes", lambda point: point.disk_write_ops_per_s),
            ("reads", lambda point: point.disk_read_ops_per_s),
        ),
    ),
    Panel(
        "wal",
        "Write-ahead log; dashed lines: checkpoints",
        "MiB/s",
        MEBI,
        (("WAL", lambda point: point.wal_bytes_per_s),),
    ),
    Panel(
        "network",
        "Network",
        "MiB/s",
        MEBI,
        (
            ("sent", lambda point: point.network_tx_bytes_per_s),
            ("received", lambda point: point.network_rx_bytes_per_s),
        ),
    ),
    Panel(
        "memory",
        "Memory",
        "GiB",
        GIBI,
        (
            ("machine, in use", lambda point: point.memory_used_bytes),
            ("server", lambda point: point.server_rss_bytes),
        ),
    ),
    Panel(
        "group-memory",
        "Memory of the server's control group, its files' page cache included",
        "MiB",
        MEBI,
        (
            ("in use", lambda point: point.group_memory_bytes),
            ("page cache", lambda point: point.group_cache_bytes),
            ("limit", lambda point: point.group_limit_bytes),
        ),
    ),
    Panel(
        "group-bytes",
        "Disk throughput of the server's control group",
        "MiB/s",
        MEBI,
        (
            ("written", lambda point: point.group_write_bytes_per_s),
            ("read", lambda point: point.group_read_bytes_per_s),
        ),
    ),
    Panel(
        "machine-cpu",
        "CPU of the server's machine",
        "%",
        PER_CENT,
        (
            ("busy", lambda point: point.machine_cpu),
            ("server", lambda point: point.machine_server_cpu),
            ("Loadstone's machine", _ours_beside),
        ),
    ),
    Panel(
        "machine-ops",
        "Disk operations of the server's machine",
        "ops/s",
        1,
        (
            ("writes", lambda point: point.machine_write_ops_per_s),
            ("reads", lambda point: point.machine_read_ops_per_s),
        ),
    ),
    Panel(
        "machine-memory",
        "Memory of the server's machine",
        "GiB",
        GIBI,
        (
            ("in use", lambda point: point.machine_memory_bytes),
            ("server", lambda point: point.machine_server_rss_bytes),
        ),
    ),
    Panel(
        "machine-bytes",
        "Disk throughput of the server's machine",
        "MiB/s",
        MEBI,
        (
            ("written", lambda point: point.machine_write_bytes_per_s),
            ("read", lambda point: point.machine_read_bytes_per_s),
        ),
    ),
    Panel(
        "machine-network",
        "Network of the server's machine",
        "MiB/s",
        MEBI,
        (
            ("sent", lambda point: point.machine_tx_bytes_per_s),
            ("received", lambda point: point.machine_rx_bytes_per_s),
        ),
    ),
    Panel("gpu", "GPU, mean utilisation", "%", PER_CENT, (("GPU", lambda point: point.gpu_utilisation),)),
    Panel("gpu-memory", "GPU memory in use", "GiB", GIBI, (("GPU", lambda point: point.gpu_memory_bytes),)),
)


def resources(
    section: str, target: TargetFigures, phases: Sequence[PhaseFigures], domain_s: tuple[float, float]
) -> list[Chart]:
    """Panels on one shared time axis, with the phases as bands; only those with data."""
    in_process = bool(target.in_process)
    points = target.resources.points
    if in_process:
        points = [msgspec.structs.replace(p, server_rss_bytes=p.client_rss_bytes) for p in points]
    if not points:
        return []
    unit, scale, word = time_unit(domain_s[1] - domain_s[0])
    domain = (round(domain_s[0] / scale, 3), round(domain_s[1] / scale, 3))
    bands = _bands(phases, scale, (domain[1] - domain[0]) * NARROW_BAND)
    checkpoints = [Mark(round(t / scale, 3), "checkpoint") for t in target.resources.checkpoints]
    axes = Axes(word, f"{unit} since the run began", domain, "", y_extent=52, y_ticks=3, height=96)
    charts = [_cpu(section, points, axes, (bands, scale), in_process=in_process)]
    for panel in PANELS:
        lines = [
            line
            for label, figure in panel.lines
            if (line := _line(_whose(label, in_process), points, figure, (scale, panel.divisor)))
        ]
        if lines:
            charts.append(
                over_time(
                    "lines",
                    identity=(f"{section}-{panel.name}", panel.title, course(lines, panel.unit)),
                    lines=lines,
                    axes=replace(axes, y_title=panel.unit),
                    bands=_unlabelled(bands),
                    marks=checkpoints if panel.name == "wal" else (),
                )
            )
    waits = _waits(section, target.resources, axes, (bands, scale))
    return [*charts, waits] if waits else charts


def _cpu(
    section: str,
    points: Sequence[ResourcePoint],
    axes: Axes,
    at: tuple[Sequence[Band], float],
    *,
    in_process: bool,
) -> Chart:
    bands, scale = at
    known = [
        (_whose(label, in_process), figure, colour)
        for label, figure, colour in CPU_SERIES
        if any(figure(p) is not None for p in points)
    ]
    lines = [
        Line(
            label,
            [round(p.t_s / scale, 4) for p in points],
            [rounded((figure(p) or 0) * 100) for p in points],
            colour,
        )
        for label, figure, colour in known
    ]
    shares = ", ".join(f"{line.name} {formats.digits(_mean(line), 2)} %" for line in lines)
    cpu = Axes(
        axes.x_field,
        axes.x_title,
        axes.x_domain,
        "%",
        {"domain": [0, 100], "clamp": True},
        None,
        axes.y_extent,
        3,
        130,
    )
    return over_time(
        "areas",
        identity=(
            f"{section}-cpu",
            "CPU of the whole machine",
            f"Stacked shares of the machine's CPU; means: {shares}.",
        ),
        lines=lines,
        axes=cpu,
        bands=bands,
    )


def _waits(section: str, found: Resources, axes: Axes, at: tuple[Sequence[Band], float]) -> Chart | None:
    bands, scale = at
    if not found.waits:
        return None
    xs = [round(p.t_s / scale, 4) for p in found.points]
    lines = [Line(name, xs, [rounded(p.waits.get(name, 0)) for p in found.points]) for name in found.waits]
    left_out = found.waits_left_out
    return over_time(
        "areas",
        identity=(f"{section}-waits", "Sessions waiting, by wait event", course(lines, "sessions")),
        lines=lines,
        axes=replace(axes, y_title="sessions"),
        bands=_unlabelled(bands),
        note=f"{left_out} rarer wait events are left out." if left_out else "",
    )


def _line(
    label: str, points: Sequence[ResourcePoint], figure: Figure, scales: tuple[float, float]
) -> Line | None:
    """Return a line that breaks where the monitor paused between two phases."""
    if all(figure(point) is None for point in points):
        return None
    scale, divisor = scales
    xs: list[float] = []
    ys: list[float | None] = []
    usual = max(GAP_S, 3 * (points[-1].t_s - points[0].t_s) / max(1, len(points)))
    for before, point in zip([points[0], *points[:-1]], points, strict=True):
        if point.t_s - before.t_s > usual:
            xs.append(round((before.t_s + 0.001) / scale, 4))
            ys.append(None)
        value = figure(point)
        xs.append(round(point.t_s / scale, 4))
        ys.append(None if value is None else rounded(value / divisor))
    return Line(label, xs, ys)


def _mean(line: Line) -> float:
    known = [y for y in line.y if y is not None]
    return sum(known) / len(known) if known else 0.0


def _bands(phases: Sequence[PhaseFigures], scale: float, narrow: float) -> list[Band]:
    """Return a band for each phase that began, every second one shaded."""
    begun = [(phase, phase.start_s) for phase in phases if phase.start_s is not None]
    bands = [_band(phase, start_s, scale, fill=(at + 1) % 2) for at, (phase, start_s) in enumerate(begun)]
    return [band if band.end - band.start > narrow else replace(band, label="") for band in bands]


def _band(phase: PhaseFigures, start_s: float, scale: float, *, fill: int) -> Band:
    end_s = phase.end_s
    if end_s is None:
        end_s = (phase.drive and phase.drive.end_s) or start_s
    return Band(round(start_s / scale, 3), round(end_s / scale, 3), str(phase.number), fill)


def _unlabelled(bands: Sequence[Band]) -> list[Band]:
    return [replace(band, label="") for band in bands]


def _whose(label: str, in_process: bool) -> str:  # noqa: FBT001 - the only thing that it asks
    return TOGETHER if in_process and label in ("server", "Loadstone") else label
