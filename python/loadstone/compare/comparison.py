"""Two sides compared: every metric of every phase, verdicts, and the mean over all phases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np

from loadstone import __version__
from loadstone.compare.comparable import differences
from loadstone.compare.decisions import (
    CONFIDENCE,
    ENOUGH_REPEATS,
    benjamini_hochberg,
    decide,
    holm,
)
from loadstone.compare.documents import FORMAT, Comparison, Document, Overall
from loadstone.compare.metrics import FASTER, PhaseValues, values_of, why_missing
from loadstone.compare.notes import advice_of, notes_of
from loadstone.compare.rows import compared
from loadstone.errors import LoadstoneError
from loadstone.summary.ratios import ALPHA, FEWEST, paired, unpaired

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from loadstone.compare.documents import Row, VerdictName
    from loadstone.compare.rows import Compared
    from loadstone.compare.sides import Pair, RunSide


def compare(pairs: Sequence[Pair], matters: float, *, anyway: bool = False) -> Document:
    """Compare each pair.

    `matters` is the least difference, as a share, that matters. Raises LoadstoneError where the plans or the
    data of two sides differ or a folder is damaged, unless `anyway`: there are ratios then, and no verdicts.
    """
    found = [_compare(pair, matters) for pair in pairs]
    for comparison in found:
        if not comparison.comparable and not anyway:
            _refuse(comparison)
    return Document(format=FORMAT, loadstone=__version__, matters=matters, comparisons=found)


def _refuse(comparison: Comparison) -> None:
    blocking = [one for one in comparison.differences if one.blocks]
    more = f"; {len(blocking) - 1} more differ" if len(blocking) > 1 else ""
    first = blocking[0]
    a, b = comparison.a, comparison.b
    mend = "Use an untouched copy" if first.kind == "run" else "Run both with the same plan"
    raise LoadstoneError(
        f"{a.folder} and {b.folder} cannot be compared: {first.what}: {first.a} in {a.name}, {first.b} in "
        f"{b.name}{more}",
        f"{mend}, or add --anyway for ratios without verdicts.",
    )


def _compare(pair: Pair, matters: float) -> Comparison:
    found = differences(pair)
    comparable = not any(one.blocks for one in found)
    phases = _phases(pair)
    if not phases:
        raise LoadstoneError(
            f"{pair.a.folder} and {pair.b.folder} have no phase in common",
            "Compare runs of the same scenario.",
        )
    rows = [compared(a, b, name, in_turn=pair.paired) for a, b in phases for name in _metrics(a, b)]
    missing = [_unmeasured(a, b) for a, b in phases if not a.series and not b.series]
    _judge(rows, matters, comparable=comparable)
    shown = [entry.row for entry in rows if entry.row.metric != "mean" or entry.row.primary]
    shown += [row for row in missing if row is not None]
    comparison = Comparison(
        a=pair.a.document(),
        b=pair.b.document(),
        comparable=comparable,
        paired=pair.paired,
        differences=found,
        notes=[],
        rows=shown,
        overall=overall_of(phases, in_turn=pair.paired),
        advice=None,
    )
    comparison.notes = list(notes_of(pair, comparison))
    comparison.advice = advice_of(pair, comparison)
    return comparison


def _phases(pair: Pair) -> list[tuple[PhaseValues, PhaseValues]]:
    """Return the phases of both sides, in the order of the first; what one does not have has the reason."""
    a, b = (values_of(side.summary, side.target.id) for side in (pair.a, pair.b))
    if not {*a} & {*b}:
        return []
    every = {**a, **b}
    return [
        (a.get(key) or _empty(pair.a, phase), b.get(key) or _empty(pair.b, phase))
        for key, phase in every.items()
    ]


def _metrics(a: PhaseValues, b: PhaseValues) -> list[str]:
    """Return the metrics of a phase; only that which decides, where one side lacks the whole phase."""
    names = list(dict.fromkeys((*a.series, *b.series)))
    if a.series and b.series:
        return names
    return [name for name in names if name in (a.primary, b.primary)]


def _empty(side: RunSide, phase: PhaseValues) -> PhaseValues:
    reason = why_missing(side.summary, side.target.id, phase.title, phase.variant)
    return PhaseValues(phase.scenario, phase.id, phase.title, phase.variant, missing=reason)


def _unmeasured(a: PhaseValues, b: PhaseValues) -> Row | None:
    """Return a row for a phase that neither side measured; None where there was nothing to measure."""
    from loadstone.compare.documents import Row  # noqa: PLC0415 - only here at run time

    if a.missing is None and b.missing is None:
        return None
    reasons = "; ".join(f"{name}: {side.missing}" for name, side in (("A", a), ("B", b)) if side.missing)
    return Row(
        scenario=a.scenario,
        phase=a.id,
        title=a.title,
        variant=a.variant,
        metric="rate",
        unit="",
        better="higher",
        primary=True,
        verdict="missing",
        reason=reasons,
    )


def _judge(rows: Sequence[Compared], matters: float, *, comparable: bool) -> None:
    for entry in rows:
        if not comparable and entry.row.verdict != "missing":
            entry.row.verdict = "not comparable"
        elif entry.row.verdict != "missing" and not entry.decides:
            _indicate(entry)
    if not comparable:
        return
    for primary, adjust in ((True, holm), (False, benjamini_hochberg)):
        judge_family([e for e in rows if e.row.primary == primary], adjust, matters)


def judge_family(
    rows: Sequence[Compared], adjust: Callable[[Sequence[float]], NDArray[np.float64]], matters: float
) -> None:
    """Decide rows together, their p values adjusted for their number; those with few repeats stay."""
    family = [entry for entry in rows if entry.decides]
    if not family:
        return
    adjusted = adjust([entry.row.p_value or 0.0 for entry in family])
    for entry, p_value in zip(family, adjusted, strict=True):
        _decide(entry, float(p_value), matters)


def _decide(entry: Compared, adjusted: float, matters: float) -> None:
    row, ratio = entry.row, entry.ratio
    if ratio is None:
        return
    row.adjusted = adjusted
    verdict = decide(ratio, adjusted, matters, higher_is_better=row.better == "higher")
    row.verdict = cast("VerdictName", verdict.item())
    if row.verdict == "undecided":
        row.needed = ratio.repeats_for(matters)


def _indicate(entry: Compared) -> None:
    """Say which way too few repeats point."""
    row = entry.row
    row.verdict = "indicative"
    row.needed = ENOUGH_REPEATS
    if row.p_value is not None and row.p_value < ALPHA and row.ratio is not None:
        row.leaning = "better" if (row.ratio > 1) == (row.better == "higher") else "worse"


def overall_of(phases: Iterable[tuple[PhaseValues, PhaseValues]], *, in_turn: bool) -> Overall | None:
    """Return the geometric mean of how much faster B is over the phases that both sides measured.

    Each repeat gives one mean over its phases, so that what phases have in common counts once.
    """
    both = [(a, b, a.primary or "") for a, b in phases if a.primary in FASTER and a.primary == b.primary]
    logs: list[tuple[dict[int, float], dict[int, float]]] = []
    for a, b, name in both:
        if name not in a.series or name not in b.series:
            continue
        sign = 1 if a.series[name].metric.better == "higher" else -1
        ours, others = (
            {repeat: sign * math.log(value) for repeat, value in side.series[name].by_repeat().items()}
            for side in (a, b)
        )
        logs.append((ours, others))
    if len(logs) < FEWEST:
        return None
    sides = [_means([entry[at] for entry in logs]) for at in (0, 1)]
    common = sorted({*sides[0]} & {*sides[1]})
    if in_turn:
        sides = [{repeat: side[repeat] for repeat in common} for side in sides]
    speeds = [np.exp(list(side.values())) for side in sides]
    fewest = min(map(len, speeds))
    if not fewest:
        return None
    if fewest < FEWEST:
        ratio = float(np.exp(np.log(speeds[1]).mean() - np.log(speeds[0]).mean()))
        return Overall(ratio=ratio, low=None, high=None, phases=len(logs), repeats=fewest)
    found = paired(*speeds) if in_turn else unpaired(*speeds)
    low, high = (float(end) for end in found.interval(CONFIDENCE))
    ratio = math.exp(float(found.centre))
    return Overall(ratio=ratio, low=low, high=high, phases=len(logs), repeats=fewest)


def _means(phases: Sequence[dict[int, float]]) -> dict[int, float]:
    """Return the mean of each repeat over all phases; repeats that lack one are left out."""
    whole = set.intersection(*(set(phase) for phase in phases))
    return {repeat: float(np.mean([phase[repeat] for phase in phases])) for repeat in sorted(whole)}
