"""Every trial of an experiment as a table of its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.compare.page import Listing
from loadstone.report import formats

if TYPE_CHECKING:
    from loadstone.ab.documents import Trial
    from loadstone.ab.experiment import Experiment

_MOST_PHASES = 6
"""Columns of figures that a page has room for."""


def trials(experiment: Experiment) -> Listing:
    """Return a row for each trial, in the order in which they ran."""
    rows = [row for row in experiment.findings.rows if row.primary and row.ratio is not None][:_MOST_PHASES]
    names = [f"{row.phase}{_variant(row.variant)}: {row.metric}" for row in rows]
    keys = [(row.scenario, row.phase, row.variant, row.metric) for row in rows]
    lines = [[*_facts(trial), *(_value(trial, key) for key in keys)] for trial in experiment.document.trials]
    return Listing(
        "Trials",
        ("Trial", "Block", "Side", "Control: CPU", "Control: fsync", "Checkpoints", *names),
        lines,
        "In the order in which they ran. Controls are times in µs: less is faster. Each trial has a run "
        f"folder of its own in {experiment.folder}/trials.",
    )


def _variant(variant: object) -> str:
    words = formats.variant(variant) if isinstance(variant, dict) else ""
    return f", {words}" if words else ""


def _facts(trial: Trial) -> list[str]:
    return [
        str(trial.number), str(trial.block), trial.arm, formats.digits(trial.cpu_us),
        formats.digits(trial.fsync_us), str(trial.checkpoints),
    ]  # fmt: skip


def _value(trial: Trial, key: tuple[object, ...]) -> str:
    from loadstone.compare.metrics import identity  # noqa: PLC0415 - only here

    scenario, phase, variant, metric = key
    values = trial.values.get(identity(scenario, phase, variant), {})  # type: ignore[arg-type]
    return formats.digits(values.get(str(metric)))
