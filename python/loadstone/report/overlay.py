"""Targets over each other: what the machine did while each of them went through the same phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from loadstone.report import formats
from loadstone.report.charts.choice import time_unit
from loadstone.report.charts.curves import Axis, Curve, colour, curves, linear
from loadstone.report.names import phase_title, variant_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.results.documents.summary import CoursePoint, PhaseFigures, Summary

MOST_VARIANTS = 4
"""Up to here each variant has its own charts; of more, one chart goes through all of them."""
GIBI = 2**30
OURS = (
    "cpu_server",
    "cpu_busy",
    "memory_used_bytes",
    "server_rss_bytes",
    "disk_read_ops_per_s",
    "disk_write_ops_per_s",
)
"""What is of our own machine, and so says nothing of a server on another one."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """Charts of one phase, and variant of it, on several targets."""

    id: str
    title: str
    label: str
    charts: list[Chart]


def blocks(summary: Summary, names: Mapping[str, str]) -> list[Overlay]:
    """Return charts of each phase that ran on several targets; `names` are the targets' names for people."""
    remote = {target.id for target in summary.targets if target.local is False}
    ours = {target.id for target in summary.targets if target.in_process}
    names = {**names, **{target: f"{names.get(target, target)} and Loadstone together" for target in ours}}
    members: dict[tuple[str | None, str | None], list[PhaseFigures]] = {}
    for phase in summary.phases:
        if phase.drive and phase.repeat == 1:
            shown = _shown(phase, remote=phase.target in remote, ours=phase.target in ours)
            members.setdefault((phase.scenario, phase.id), []).append(shown)
    found = []
    for number, phases in enumerate(members.values()):
        if len({phase.target for phase in phases}) > 1:
            found += _phase(f"beside-{number}", phases, names, summary)
    return found


def _shown(phase: PhaseFigures, *, remote: bool, ours: bool) -> PhaseFigures:
    """Return a phase without what its course does not know of the server, or knows of both together."""
    hidden = dict.fromkeys(OURS) if remote else {}
    course = [msgspec.structs.replace(point, **hidden) for point in phase.course]
    return msgspec.structs.replace(phase, course=[_together(p) for p in course] if ours else course)


def _phase(
    identity: str, phases: Sequence[PhaseFigures], names: Mapping[str, str], summary: Summary
) -> list[Overlay]:
    variants: dict[str, dict[str, list[PhaseFigures]]] = {}
    for phase in phases:
        label = variant_words(phase, summary)
        variants.setdefault(label, {}).setdefault(phase.target, []).append(phase)
    if len(variants) > MOST_VARIANTS:
        whole: dict[str, list[PhaseFigures]] = {}
        for targets in variants.values():
            for target, found in targets.items():
                whole.setdefault(target, []).extend(found)
        variants = {"all variants in turn": whole}
    blocks = []
    for at, (label, targets) in enumerate(variants.items()):
        courses = {names.get(target, target): _joined(found) for target, found in targets.items()}
        charts = _charts(f"{identity}-{at}", {name: points for name, points in courses.items() if points})
        if charts:
            blocks.append(Overlay(f"{identity}-{at}", phase_title(phases[0], summary), label, charts))
    return blocks


def _joined(phases: Sequence[PhaseFigures]) -> list[CoursePoint]:
    """Lay the phases of one target behind each other, without the time between them."""
    points: list[CoursePoint] = []
    begun_s = 0.0
    for phase in sorted(phases, key=lambda phase: phase.number or 0):
        points += [msgspec.structs.replace(point, t_s=point.t_s + begun_s) for point in phase.course]
        begun_s += (phase.end_s or 0.0) - (phase.start_s or 0.0)
    return points


def _charts(identity: str, courses: Mapping[str, Sequence[CoursePoint]]) -> list[Chart]:
    if len(courses) < 2:  # noqa: PLR2004 - one target has nothing to be laid over
        return []
    unit, scale, _ = time_unit(max(point.t_s for points in courses.values() for point in points))
    charts: list[Chart] = []
    for name, title, word, figure in _PANELS:
        lines = [
            Curve(
                target,
                colour(at),
                [round(point.t_s / scale, 4) for point in points],
                [figure(point) for point in points],
            )
            for at, (target, points) in enumerate(courses.items())
        ]
        known = [line for line in lines if any(y is not None for y in line.y)]
        if known:
            charts.append(
                curves(
                    identity=(
                        f"{identity}-{name}",
                        title,
                        "; ".join(_mean(line, word) for line in known) + ".",
                    ),
                    lines=known,
                    axes=(Axis(f"{unit} since the phase began"), linear(word, known)),
                    width="third",
                    height=150,
                    legend=not charts,
                )
            )
    return charts


def _together(point: CoursePoint) -> CoursePoint:
    """Take what our process takes for the server's: the engine works inside it."""
    return msgspec.structs.replace(
        point, cpu_server=point.cpu_client, server_rss_bytes=point.client_rss_bytes
    )


def _cpu(point: CoursePoint) -> float | None:
    share = _first(point.machine_cpu, point.cpu_server, point.cpu_busy)
    # Ticks of the two counters never fall together: a share may come out a little above the whole.
    return None if share is None else 100 * min(1.0, share)


def _memory(point: CoursePoint) -> float | None:
    held = _first(
        point.machine_memory_bytes,
        point.group_memory_bytes,
        point.server_rss_bytes,
        point.memory_used_bytes,
    )
    return None if held is None else held / GIBI


def _operations(point: CoursePoint) -> float | None:
    for read, write in (
        (point.machine_read_ops_per_s, point.machine_write_ops_per_s),
        (point.disk_read_ops_per_s, point.disk_write_ops_per_s),
    ):
        if read is not None and write is not None:
            return float(read + write)
    return None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _gpu(point: CoursePoint) -> float | None:
    return None if point.gpu_utilisation is None else 100 * point.gpu_utilisation


_PANELS: tuple[tuple[str, str, str, Callable[[CoursePoint], float | None]], ...] = (
    ("cpu", "CPU of the server", "% of the machine", _cpu),
    ("memory", "Memory of the server", "GiB", _memory),
    ("iops", "Disk operations of the machine", "ops/s", _operations),
    ("gpu", "GPU utilisation", "%", _gpu),
)


def _mean(line: Curve, unit: str) -> str:
    known = [y for y in line.y if y is not None]
    middle, most = formats.digits(sum(known) / len(known)), formats.digits(max(known))
    return f"{line.name}: mean {middle} {unit}, at most {most}"
