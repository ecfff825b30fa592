"""The server's machine beside ours, phase by phase, where `--watch` has shown it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.names import phase_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.report.view import TargetSection
    from loadstone.results.documents.summary import PhaseFigures, Summary, Usage, WatchFigures


@dataclass(frozen=True, slots=True)
class Row:
    """A machine in a phase: cells as they are shown."""

    label: str
    machine: str
    cells: list[str]


@dataclass(frozen=True, slots=True)
class SourceNote:
    """What there is to know of a source, in sentences."""

    source: str
    about: str
    words: list[str]


@dataclass(frozen=True, slots=True)
class WatchedBlock:
    """The table of one target, and how its machine was watched."""

    heading: str
    rows: list[Row]
    sources: list[SourceNote]


COLUMNS = (
    "CPU busy",
    "iowait",
    "stolen",
    "server's processes",
    "Loadstone",
    "memory in use",
    "disk busy",
    "read",
    "written",
    "received",
    "sent",
)


def blocks(targets: Sequence[TargetSection], summary: Summary) -> list[WatchedBlock]:
    """Return a block for each target whose machine was watched."""
    return [
        WatchedBlock(
            target.heading,
            [row for phase in _phases(target, summary) for row in _rows(phase, summary)],
            [_note(watch) for watch in target.figures.resources.watch],
        )
        for target in targets
        if target.figures.resources.watch
    ]


def _phases(target: TargetSection, summary: Summary) -> list[PhaseFigures]:
    return [phase for phase in summary.phases if phase.target == target.figures.id and phase.usage]


def _rows(phase: PhaseFigures, summary: Summary) -> list[Row]:
    usage, label = phase.usage, phase_label(phase, summary)
    return [] if usage is None else [Row(label, "server's", _theirs(usage)), Row(label, "ours", _ours(usage))]


def _theirs(usage: Usage) -> list[str]:
    shares = (usage.machine_cpu, usage.machine_iowait, usage.machine_steal, usage.machine_server_cpu)
    return [
        *map(_share, shares),
        formats.NONE,
        formats.size(usage.machine_memory_bytes),
        _share(usage.machine_disk_busy),
        _flow(usage.machine_read_bytes_per_s),
        _flow(usage.machine_write_bytes_per_s),
        _flow(usage.machine_rx_bytes_per_s),
        _flow(usage.machine_tx_bytes_per_s),
    ]


def _ours(usage: Usage) -> list[str]:
    shares = (usage.cpu_busy, usage.cpu_iowait, usage.cpu_steal, usage.cpu_server, usage.cpu_client)
    return [*map(_share, shares), formats.NONE, _share(usage.disk_busy), *[formats.NONE] * 4]


def _share(value: float | None) -> str:
    return formats.NONE if value is None else f"{formats.digits(value * 100)} %"


def _flow(value: float | None) -> str:
    return formats.NONE if value is None else f"{formats.size(value)}/s"


def _note(watch: WatchFigures) -> SourceNote:
    samples = f"{watch.samples:,} samples" + (f", {watch.missed:,} missed" if watch.missed else "")
    return SourceNote(watch.source, watch.about, [samples, _clock(watch), *_gaps(watch), *_missing(watch)])


def _clock(watch: WatchFigures) -> str:
    if watch.clock_offset_s is None:
        return "it shows no clock: samples are placed in the middle of their round trips"
    way = "ahead of" if watch.clock_offset_s >= 0 else "behind"
    error = formats.milliseconds((watch.clock_error_s or 0) * 1e9)
    return f"its wall clock was {abs(watch.clock_offset_s):.3f} s {way} ours (± {error} ms)"


def _gaps(watch: WatchFigures) -> list[str]:
    shown = [f"{gap.start_s:.0f}–{gap.end_s:.0f} s" for gap in watch.gaps]
    more = [f"{watch.gaps_left_out} more"] if watch.gaps_left_out else []
    return [f"gaps, in seconds of the run: {', '.join([*shown, *more])}"] if shown else []


def _missing(watch: WatchFigures) -> list[str]:
    return [f"not observed: {words}" for words in watch.not_observed]
