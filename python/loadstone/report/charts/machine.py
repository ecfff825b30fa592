"""What a target's machine did over the run: panels on one time axis, with the phases as bands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from loadstone.report import formats
from loadstone.report.charts import Axes, Band, Line, Mark, over_time, rounded
from loadstone.report.charts.choice import MEBI, course, time_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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


MIB_PER_S, OPS_PER_S = ("MiB/s", float(MEBI)), ("ops/s", 1.0)
MIB, GIB, SHARE = ("MiB", float(MEBI)), ("GiB", float(GIBI)), ("%", PER_CENT)
"""Units of panels: the name, and what a figure is divided by to have it."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart of its own."""

    name: str
    title: str
    unit: tuple[str, float]
    lines: Mapping[str, Figure]
    ours: Mapping[str, Figure] = field(default_factory=dict)
    """Of Loadstone's machine, drawn while `--watch` shows the server's: the two are compared, and on one
    machine its exporter with our own sampler."""


PANELS = (
    Panel("disk-bytes", "Disk throughput", MIB_PER_S,
          {"written": lambda p: p.disk_write_bytes_per_s, "read": lambda p: p.disk_read_bytes_per_s}),
    Panel("disk-ops", "Disk operations", OPS_PER_S,
          {"writes": lambda p: p.disk_write_ops_per_s, "reads": lambda p: p.disk_read_ops_per_s}),
    Panel("wal", "Write-ahead log; dashed lines: checkpoints", MIB_PER_S,
          {"WAL": lambda p: p.wal_bytes_per_s}),
    Panel("network", "Network", MIB_PER_S,
          {"sent": lambda p: p.network_tx_bytes_per_s, "received": lambda p: p.network_rx_bytes_per_s}),
    Panel("memory", "Memory", GIB,
          {"machine, in use": lambda p: p.memory_used_bytes, "server": lambda p: p.server_rss_bytes}),
    Panel("group-memory", "Memory of the server's control group, its files' page cache included", MIB,
          {"in use": lambda p: p.group_memory_bytes, "page cache": lambda p: p.group_cache_bytes,
           "limit": lambda p: p.group_limit_bytes}),
    Panel("group-bytes", "Disk throughput of the server's control group", MIB_PER_S,
          {"written": lambda p: p.group_write_bytes_per_s, "read": lambda p: p.group_read_bytes_per_s}),
    Panel("machine-cpu", "CPU of the server's machine", SHARE,
          {"busy": lambda p: p.machine_cpu, "server": lambda p: p.machine_server_cpu},
          {"busy": lambda p: p.cpu_busy}),
    Panel("machine-ops", "Disk operations of the server's machine", OPS_PER_S,
          {"writes": lambda p: p.machine_write_ops_per_s, "reads": lambda p: p.machine_read_ops_per_s},
          {"writes": lambda p: p.disk_write_ops_per_s, "reads": lambda p: p.disk_read_ops_per_s}),
    Panel("machine-memory", "Memory of the server's machine", GIB,
          {"in use": lambda p: p.machine_memory_bytes, "server": lambda p: p.machine_server_rss_bytes},
          {"in use": lambda p: p.memory_used_bytes}),
    Panel("machine-bytes", "Disk throughput of the server's machine", MIB_PER_S,
          {"written": lambda p: p.machine_write_bytes_per_s, "read": lambda p: p.machine_read_bytes_per_s},
          {"written": lambda p: p.disk_write_bytes_per_s, "read": lambda p: p.disk_read_bytes_per_s}),
    Panel("machine-network", "Network of the server's machine", MIB_PER_S,
          {"sent": lambda p: p.machine_tx_bytes_per_s, "received": lambda p: p.machine_rx_bytes_per_s},
          {"sent": lambda p: p.network_tx_bytes_per_s, "received": lambda p: p.network_rx_bytes_per_s}),
    Panel("gpu", "GPU, mean utilisation", SHARE, {"GPU": lambda p: p.gpu_utilisation}),
    Panel("gpu-memory", "GPU memory in use", GIB, {"GPU": lambda p: p.gpu_memory_bytes}),
)  # fmt: skip


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
    axes = Axes(word, f"{unit} since the run began", domain, "", y_extent=52, y_ticks=3, height=96)
    shared = _Shared(section, points, axes, bands, scale, in_process=in_process)
    checkpoints = [Mark(round(t / scale, 3), "checkpoint") for t in target.resources.checkpoints]
    charts = [
        shared.cpu(),
        *(shared.panel(panel, checkpoints if panel.name == "wal" else ()) for panel in PANELS),
        shared.waits(target.resources),
    ]
    return [chart for chart in charts if chart is not None]


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all panels of a target have in common."""

    section: str
    points: Sequence[ResourcePoint]
    axes: Axes
    bands: Sequence[Band]
    """With the phases' numbers, which the first panel alone shows."""
    scale: float
    """Seconds of the axis' unit."""
    in_process: bool

    def cpu(self) -> Chart:
        """Draw the shares of the machine's CPU."""
        lines = [
            Line(self._whose(label), self._times(), self._percent(figure), colour)
            for label, figure, colour in CPU_SERIES
            if any(figure(p) is not None for p in self.points)
        ]
        shares = ", ".join(f"{line.name} {formats.digits(_mean(line), 2)} %" for line in lines)
        said = f"Stacked shares of the machine's CPU; means: {shares}."
        whole = {"domain": [0, 100], "clamp": True}
        return over_time(
            "areas",
            identity=(f"{self.section}-cpu", "CPU of the whole machine", said),
            lines=lines,
            axes=replace(self.axes, y_title="%", y_scale=whole, height=130),
            bands=self.bands,
        )

    def panel(self, panel: Panel, marks: Sequence[Mark]) -> Chart | None:
        """Draw a panel; None where nothing of it was observed."""
        unit, divisor = panel.unit
        lines = [
            self._line(self._whose(label), figure, divisor)
            for label, figure in panel.lines.items()
            if any(figure(p) is not None for p in self.points)
        ]
        if not lines:
            return None
        lines += [
            self._line(f"Loadstone's machine, {label}", _while_watched(figure), divisor)
            for label, figure in panel.ours.items()
            if any(_while_watched(figure)(p) is not None for p in self.points)
        ]
        return over_time(
            "lines",
            identity=(f"{self.section}-{panel.name}", panel.title, course(lines, unit)),
            lines=lines,
            axes=replace(self.axes, y_title=unit),
            bands=_unlabelled(self.bands),
            marks=marks,
        )

    def waits(self, found: Resources) -> Chart | None:
        """Draw how many sessions waited for what; None where that was not observed."""
        if not found.waits:
            return None
        lines = [
            Line(name, self._times(), [rounded(p.waits.get(name, 0)) for p in found.points])
            for name in found.waits
        ]
        left_out = found.waits_left_out
        return over_time(
            "areas",
            identity=(f"{self.section}-waits", "Sessions waiting, by wait event", course(lines, "sessions")),
            lines=lines,
            axes=replace(self.axes, y_title="sessions"),
            bands=_unlabelled(self.bands),
            note=f"{left_out} rarer wait events are left out." if left_out else "",
        )

    def _times(self) -> list[float]:
        return [round(p.t_s / self.scale, 4) for p in self.points]

    def _percent(self, figure: Figure) -> list[float | None]:
        return [rounded((figure(p) or 0) * 100) for p in self.points]

    def _line(self, label: str, figure: Figure, divisor: float) -> Line:
        """Return a line that breaks where the monitor paused between two phases."""
        points = self.points
        xs: list[float] = []
        ys: list[float | None] = []
        usual = max(GAP_S, 3 * (points[-1].t_s - points[0].t_s) / max(1, len(points)))
        for before, point in zip([points[0], *points[:-1]], points, strict=True):
            if point.t_s - before.t_s > usual:
                xs.append(round((before.t_s + 0.001) / self.scale, 4))
                ys.append(None)
            value = figure(point)
            xs.append(round(point.t_s / self.scale, 4))
            ys.append(None if value is None else rounded(value / divisor))
        return Line(label, xs, ys)

    def _whose(self, label: str) -> str:
        return TOGETHER if self.in_process and label in ("server", "Loadstone") else label


def _while_watched(figure: Figure) -> Figure:
    return lambda point: None if point.machine_iowait is None else figure(point)


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
