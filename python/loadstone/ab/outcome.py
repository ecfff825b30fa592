"""An experiment as a comparison, so that every output of `loadstone compare` can show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.ab.analysis import interval, order_notes
from loadstone.ab.checkpoints import SHORTEST_S, windows_of
from loadstone.compare.comparable import differences
from loadstone.compare.documents import FORMAT, Comparison, Document, Side
from loadstone.compare.notes import durability
from loadstone.compare.sides import Pair, RunSide
from loadstone.experiment.arms import SAME, A, B
from loadstone.report import formats
from loadstone.summary.stored import read_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.ab.experiment import Experiment
    from loadstone.compare.documents import Difference

_DECIDED = ("worse", "better", "small", "same")


def finished(experiment: Experiment) -> Comparison:
    """Return B against A as far as the blocks go; there is at least one."""
    pair = pair_of(experiment, 0)
    overall = experiment.findings.overall
    return Comparison(
        a=_side(experiment, pair.a),
        b=_side(experiment, pair.b),
        comparable=True,
        paired=True,
        unit="blocks",
        differences=_differences(pair),
        notes=list(notes(experiment, pair)),
        rows=experiment.findings.rows,
        overall=overall,
        advice=None,
    )


def pair_of(experiment: Experiment, block: int) -> Pair:
    """Return the trials of a block as two sides of a comparison."""
    return Pair(_run_side(experiment, 0, block), _run_side(experiment, 1, block), paired=True)


def _run_side(experiment: Experiment, at: int, block: int) -> RunSide:
    arm = experiment.arms[at]
    folder = experiment.folder / experiment.blocks[block][arm.name].document.folder
    summary = read_summary(folder)
    for phase in summary.phases:  # what an arm has of its own does not tell its phases from the other's
        phase.variant = {
            name: value for name, value in phase.variant.items() if name not in experiment.bench.ignored
        }
    return RunSide(arm.name, folder, summary, summary.targets[0], arm.label)


def typical_pair(experiment: Experiment) -> Pair:
    """Return the trials of the block whose ratio of the first deciding metric is the median one."""
    ratios = []
    for block in experiment.blocks:
        phases = [block[arm].document.values for arm in (A, B)]
        rates = [next((one["rate"] for one in each.values() if "rate" in one), 1.0) for each in phases]
        ratios.append(rates[1] / rates[0])
    return pair_of(experiment, sorted(range(len(ratios)), key=ratios.__getitem__)[(len(ratios) - 1) // 2])


def _side(experiment: Experiment, side: RunSide) -> Side:
    document = side.document()
    document.folder = str(experiment.folder)
    document.repeats = len(experiment.blocks)
    document.state = experiment.document.state
    return document


def _differences(pair: Pair) -> list[Difference]:
    found = differences(pair)
    for one in found:
        one.blocks = False  # whatever differs was asked for, for one arm
    return [one for one in found if one.kind != "plan" or "seed" not in one.what]


def notes(experiment: Experiment, pair: Pair) -> Iterator[str]:
    """Yield what a reader must know beside the figures."""
    document, found = experiment.document, experiment.findings
    arms = ", ".join(arm.name for arm in experiment.arms)
    yield (
        f"{len(experiment.blocks)} blocks of {len(experiment.arms)} trials ({arms}), each on a fresh server "
        f"and a fresh copy of its data; orders balanced and shuffled by seed {document.seed}."
    )
    yield _looks(experiment)
    yield from durability(pair)
    if document.state != "complete" and document.reason:
        yield f"The experiment is {document.state}: {document.reason}. What was not decided is undecided."
    yield from _twins(experiment)
    if found.controls:
        words = (f"{one.name} B/A {interval(one)}, p {formats.digits(one.p_value, 2)}"
                 for one in found.controls)  # fmt: skip
        yield f"Control of the machine: {'; '.join(words)}.{_moved(experiment)}"
    yield from order_notes(found)
    yield from _checkpoints(experiment)
    wrong = dict.fromkeys(f"{one.arm}: {note}" for one in document.trials for note in one.notes)
    yield from list(wrong)[:4]


def _moved(experiment: Experiment) -> str:
    """Say what a control that moved means for the verdicts that are not invalid."""
    which = " and ".join(one.name for one in experiment.findings.controls if one.moved)
    kept = [row for row in experiment.findings.rows if row.primary and row.verdict in _DECIDED]
    if not which or not kept:
        return ""
    return (
        f" {which} differed, so the machine itself did: verdicts remain only where that cannot explain them."
    )


def _looks(experiment: Experiment) -> str:
    looks = ", ".join(map(str, experiment.limits.looks))
    usual = "" if max(experiment.limits.looks[:1]) >= 6 else " (fewer than the usual 6 before the first)"  # noqa: PLR2004
    return f"Looks after {looks} blocks{usual}; before the last, a difference needs p < 0.001."


def _twins(experiment: Experiment) -> Iterator[str]:
    if SAME not in {arm.name for arm in experiment.arms}:
        yield (
            "No A/A: the history has a noise floor of this scenario on this machine."
            if experiment.noise is not None
            else "No A/A: nothing shows that this set-up finds no difference where there is none."
        )
        return
    tested = [check for check in experiment.findings.checks if check.aa_ratio is not None]
    for check in tested:
        yield (
            f"A/A, {check.phase}: {check.metric} A'/A {formats.digits(check.aa_ratio)} "
            f"(p {formats.digits(check.aa_p_value, 2)})."
        )


def _checkpoints(experiment: Experiment) -> Iterator[str]:
    counts = {arm: sum(block[arm].document.checkpoints for block in experiment.blocks) for arm in (A, B)}
    yield (
        f"Checkpoints that began in measured windows, or right before them: {counts[A]} of A, "
        f"{counts[B]} of B."
    )
    windows = windows_of(experiment.plan)
    if windows and min(windows) < SHORTEST_S:
        yield (
            f"Windows of {formats.duration(min(windows))} are shorter than any checkpoint cycle "
            f"({SHORTEST_S} s): figures of phases that write do not include checkpoints. Longer windows "
            f"(such as --set duration={2 * SHORTEST_S}) cover whole cycles."
        )


def compare_document(experiment: Experiment) -> Document:
    """Return what the outputs of `loadstone compare` take. The experiment has at least one block."""
    return Document(
        format=FORMAT, loadstone=__version__, matters=experiment.matters, comparisons=[finished(experiment)]
    )
