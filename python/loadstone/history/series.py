"""The lines of a history put together: what was measured in the same way again and again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.report import formats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from loadstone.history.documents import HistoryLine, Machine, MetricLine, PhaseLine

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Point:
    """A phase of one run."""

    line: HistoryLine
    phase: PhaseLine

    def metric(self, name: str) -> MetricLine | None:
        """Return one of its metrics."""
        return next((metric for metric in self.phase.metrics if metric.name == name), None)


@dataclass(slots=True)
class Series:
    """A phase and variant on one target, with the same plan on a machine of the same kind, oldest first."""

    target: str
    machine: str
    plan: str
    digest: str
    points: list[Point] = field(default_factory=list)

    @property
    def newest(self) -> Point:
        """The last point."""
        return self.points[-1]

    def metrics(self) -> list[str]:
        """Return the names of all metrics, that which decides first."""
        every = [metric for point in reversed(self.points) for metric in point.phase.metrics]
        return list(dict.fromkeys(metric.name for metric in sorted(every, key=lambda one: not one.primary)))

    def having(self, name: str) -> list[tuple[Point, MetricLine]]:
        """Return the points that have a metric, in the unit that the newest of them has."""
        found = [(point, metric) for point in self.points if (metric := point.metric(name))]
        return [entry for entry in found if entry[1].unit == found[-1][1].unit]


@dataclass(slots=True)
class Block:
    """A phase and variant, with all its series."""

    title: str
    series: list[Series] = field(default_factory=list)

    def label(self, series: Series) -> str:
        """Return what tells a series from the others of the block, its target first."""
        parts = [series.target]
        if len({one.machine for one in self.series}) > 1:
            parts.append(series.machine)
        if len({one.plan for one in self.series}) > 1:
            parts.append(f"plan {series.plan or 'unknown'}")
        return ", ".join(parts)


def blocks_of(lines: Iterable[HistoryLine]) -> list[Block]:
    """Return the phases of a history in the order of their first run; `lines` are oldest first."""
    blocks: dict[str, Block] = {}
    series: dict[str, Series] = {}
    for line, phase in _phases(lines):
        name = json.dumps([phase.scenario, phase.id, phase.variant], sort_keys=True)
        machine = kind_of(line.machine)
        key = json.dumps([name, line.target.id, machine, phase.plan])
        block = blocks.setdefault(name, Block(""))
        block.title = _title(phase)
        if key not in series:
            series[key] = Series(line.target.id, machine, phase.plan or "", digest_of(key))
            block.series.append(series[key])
        series[key].points.append(Point(line, phase))
    return list(blocks.values())


def _phases(lines: Iterable[HistoryLine]) -> Iterator[tuple[HistoryLine, PhaseLine]]:
    return ((line, phase) for line in lines for phase in line.phases if phase.metrics)


def _title(phase: PhaseLine) -> str:
    words = formats.variant(phase.variant)
    title = f"{phase.title}, {words}" if words else phase.title
    return f"{phase.scenario}: {title}" if phase.scenario else title


def digest_of(*words: str) -> str:
    """Return a few letters that tell a name from others."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]


def kind_of(machine: Machine) -> str:
    """Return what counts of a machine: CI gives the same kind another name each time."""
    parts: list[str] = [str(machine.cpu or "unknown CPU")]
    if machine.cores:
        parts.append(f"{machine.cores} cores")
    if isinstance(machine.memory_bytes, int | float):
        parts.append(f"{machine.memory_bytes / _GIB:.0f} GiB")
    return ", ".join(parts)


def name_of(point: Point, parts: Sequence[str] = ()) -> str:
    """Return a name of a point's series for other tools: SCENARIO/PHASE/VARIANT/TARGET."""
    phase = point.phase
    variant = [f"{name}={formats.word(value)}" for name, value in phase.variant.items()]
    words = [phase.scenario, phase.id or phase.title, *variant, point.line.target.id, *parts]
    return "/".join(word for word in words if word)
