"""The noise floor: how much blocks scatter where nothing differs, as a history of this machine has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.ab.documents import FORMAT, NAME, Experiment
from loadstone.compare.metrics import PhaseValues, values_of
from loadstone.errors import LoadstoneError
from loadstone.history.file import read
from loadstone.history.lines import line_of, machine_of
from loadstone.host.environment import collect
from loadstone.report import formats
from loadstone.results.document_reader import decode, exists, read_bytes
from loadstone.summary.stored import read_summary

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.history.documents import HistoryLine, MetricLine, PhaseLine

__all__ = ["NAME", "lines_of_experiment", "noise_of"]


def noise_of(history: Path, scenario: str, size: str) -> float | None:
    """Return the largest standard deviation of ln(A'/A) over the phases of a scenario on this machine.

    None where the history has none. Raises LoadstoneError for a history that cannot be read.
    """
    if not exists(history):
        return None
    here = machine_of(collect({}))
    for line in reversed(read(history)[0]):
        if msgspec.structs.replace(line.machine, kernel=here.kernel) == here and line.size == size:
            spreads = [
                metric.aa_spread
                for phase in line.phases
                if phase.scenario == scenario
                for metric in phase.metrics
                if metric.aa_spread is not None
            ]
            if spreads:
                return max(spreads)
    return None


def lines_of_experiment(folder: Path, commit: str | None) -> list[HistoryLine]:
    """Return the line of side A of a complete experiment, one value a block, with the noise floor it found.

    Raises LoadstoneError where its figures must not be used.
    """
    experiment = _read(folder)
    blocks = len(experiment.orders)
    trials = [trial for trial in experiment.trials if trial.arm == "A" and trial.block <= blocks]
    values: dict[str, PhaseValues] = {}
    for trial in trials:
        summary = read_summary(folder / trial.folder)
        for key, phase in values_of(summary, summary.targets[0].id).items():
            new = PhaseValues(phase.scenario, phase.id, phase.title, phase.variant, primary=phase.primary)
            entry = values.setdefault(key, new)
            for series in phase.series.values():
                for value in series.by_repeat().values():
                    entry.add(series.metric, (trial.block, 0), value)
    first = folder / trials[0].folder
    summary = read_summary(first)
    line = line_of(first, summary, summary.targets[0], commit, values)
    phases = [_with_noise(phase, experiment) for phase in line.phases]
    return [msgspec.structs.replace(line, run=experiment.id, time=experiment.started_at, phases=phases)]


def _with_noise(phase: PhaseLine, experiment: Experiment) -> PhaseLine:
    title = ", ".join(part for part in (phase.title, formats.variant(phase.variant)) if part)
    spreads = {check.metric: check.aa_spread for check in experiment.checks if check.phase == title}

    def noted(metric: MetricLine) -> MetricLine:
        return msgspec.structs.replace(metric, aa_spread=spreads.get(metric.name))

    return msgspec.structs.replace(phase, metrics=[noted(metric) for metric in phase.metrics])


def _read(folder: Path) -> Experiment:
    path = folder / NAME
    document = decode(read_bytes(path), str(path))
    version = document.get("format")
    if version != FORMAT:
        raise LoadstoneError(
            f"{path} has format {version}, but this version reads {FORMAT}", "Update Loadstone."
        )
    try:
        found = msgspec.convert(document, Experiment)
    except msgspec.ValidationError as error:
        raise LoadstoneError(f"{path}: {error}", "Use an untouched copy of the folder.") from error
    if found.state != "complete" or found.comparison is None:
        raise LoadstoneError(
            f"the experiment in {folder} is {found.state}, with {len(found.orders)} blocks: its figures do "
            "not belong in a history",
            "Add complete ones only.",
        )
    if any(row.verdict == "invalid" for row in found.comparison.rows):
        raise LoadstoneError(
            f"the experiment in {folder} is invalid: its set-up cannot compare", "Do not use its figures."
        )
    return found
