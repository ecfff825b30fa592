"""What of a run folder is missing or does not add up, in words that begin with the file."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents import Interval
    from loadstone.results.documents.summary import Summary
    from loadstone.results.manifest import Findings
    from loadstone.summary.run_files import PhaseFiles, RunFiles, TargetFiles

MEASURED = ("script", "load", "queries")
"""Kinds of phases that leave a drive.json."""
WARNING = "FolderDamaged"


def damage_in(summary: Summary) -> list[str]:
    """Return a sentence for each damage that was found when the summary was made."""
    return [warning.message for warning in summary.warnings if warning.kind == WARNING]


def damage(files: RunFiles, found: Findings) -> list[str]:
    """Return what the comparison with the manifest has found, and what contradicts itself, each once."""
    by_itself = [*_lost_phases(files), *(text for target in files.targets for text in _of_target(target))]
    told = " ".join(found.problems)
    return [*found.problems, *(text for text in by_itself if text.partition(" ")[0].rstrip(",") not in told)]


def _lost_phases(files: RunFiles) -> Iterator[str]:
    """Yield the phases that a complete run must have left, and that are not there."""
    if files.state != "complete":
        return
    there = {target.folder: {phase.folder.key for phase in target.phases} for target in files.targets}
    for target in files.plan.targets or []:
        for phase in target.phases or []:
            if not phase.skip and phase.key not in there.get(target.id, ()):
                yield f"targets/{target.id}/phases/{phase.key} is missing"


def _of_target(target: TargetFiles) -> Iterator[str]:
    for phase in target.phases:
        where = f"targets/{target.folder}/phases/{phase.folder.key}"
        if (
            phase.phase.state == "complete"
            and phase.phase.kind in MEASURED
            and not (phase.drive or phase.in_turn)
        ):
            yield f"{where}/drive.json is missing"
        yield from _of_series(phase, where)


def _of_series(phase: PhaseFiles, where: str) -> Iterator[str]:
    """Yield where intervals are doubled or out of order."""
    for lines, name in (
        (phase.series, where),
        (phase.mixed.series if phase.mixed else [], f"{where}/queries"),
    ):
        at = _overlap(lines)
        if at is not None:
            yield f"{name}/series.jsonl, line {at}: the interval begins before the previous one ends"


def _overlap(lines: Sequence[Interval]) -> int | None:
    pairs = enumerate(pairwise(lines), start=2)
    return next((at for at, (before, line) in pairs if line.start_ns < before.end_ns), None)
