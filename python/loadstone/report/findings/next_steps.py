"""What to do to decide what was not decided: with numbers worked out from the spread that was seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.model import MATTERS
from loadstone.report import formats
from loadstone.report.findings.words import is_asked
from loadstone.summary.knee.knee import FEWEST_STEPS
from loadstone.summary.medians import FEWEST_SURE
from loadstone.summary.needed import (
    repeats_below,
    repeats_for,
    repeats_for_kappa,
    runs_for,
    steps_for,
)
from loadstone.summary.scaling.law import FEWEST_SIZES, POOR, is_level, relative_error
from loadstone.summary.steps import comparable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.report.findings.words import Sentence
    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import (
        PlainQueriesFigures,
        ScalingFigures,
        ScenarioFigures,
        StepsFigures,
        Summary,
    )

ENOUGH_REPEATS = 3
_QUIETER = "a quieter machine would decide sooner than repeats"
_MOST_REPEATS = 100
"""More repeats than this nobody waits for."""


def of_repeats(summary: Summary, sentences: Sequence[Sentence], *, paired: bool) -> str:
    """Say how many repeats decide comparisons whose unit is the repeat."""
    repeats = repeats_of(summary)
    if repeats < ENOUGH_REPEATS:
        return (
            "Indicative: each side ran once or twice, and an interval inside one run does not show how runs "
            f"differ. To decide, run it again with --repeat {ENOUGH_REPEATS + 2}."
        )
    if all(sentence.decided for sentence in sentences):
        return ""
    ratios = [one.ratio for one in sentences if one.ratio is not None]
    needed = [
        repeats_for(one.value, one.low, one.high, repeats=repeats, paired=paired)
        for one in ratios
        if one.low and one.high
    ]
    if not needed:
        return "To decide what was not shown, measure longer: too little was done for an interval."
    return f"To decide what was not shown: {_repeats(needed)}."


def of_queries(summary: Summary, scenario: ScenarioFigures, asked: PlannedFinding) -> str:
    """Say how many runs decide which target answers the undecided queries faster."""
    found = [
        pair
        for entry in summary.plain_queries
        if is_asked(entry, scenario.id, asked)
        for pair in _undecided(entry)
    ]
    if not found:
        return ""
    had = min(min(len(ours), len(base)) for ours, base in found)
    runs = [runs_for(ours, base) if min(len(ours), len(base)) > 1 else FEWEST_SURE for ours, base in found]
    queries = "the query" if len(found) == 1 else f"the {len(found)} queries"
    head = f"To decide {queries} left open"
    if None in runs:
        return f"{head}: their times scatter too much for any number of runs; {_QUIETER}."
    most = max(filter(None, runs))
    repeat = math.ceil(repeats_of(summary) * most / had)
    return (
        f"{head}: about {formats.count(most)} warm runs of each on each target (there were {had}), which is "
        f"--repeat {repeat}; differences below {formats.percent(MATTERS)} may stay open."
    )


def _undecided(entry: PlainQueriesFigures) -> Iterator[tuple[list[float], list[float]]]:
    """Yield the warm runs of both targets of each query that neither answers faster."""
    bases = {one.name: one.warm.runs for target in entry.targets[:1] for one in target.queries}
    for target in entry.targets[1:]:
        for query in target.queries:
            ratio = query.ratio_to_first
            is_open = ratio and (ratio.low is None or ratio.high is None or ratio.low <= 1 <= ratio.high)
            if is_open:
                yield query.warm.runs, bases[query.name]


def of_knees(summary: Summary, scenario: ScenarioFigures, asked: PlannedFinding) -> str:
    """Say how many rows decide whether loads in steps become slower."""
    loads = [phase.steps for phase in summary.phases if is_asked(phase, scenario.id, asked) and phase.steps]
    found = [_too_few(loads, scenario), _unclear(loads, scenario)]
    return " ".join(filter(None, found))


def _too_few(loads: Sequence[StepsFigures], scenario: ScenarioFigures) -> str:
    short = [one for one in loads if one.knee and one.knee.outcome == "too_few"]
    if not short:
        return ""
    rows = min(sum(point.rows for point in one.points if point.state == "complete") for one in short)
    smaller = rows // FEWEST_STEPS
    option = f" (--set step_rows={smaller})" if smaller and "step_rows" in scenario.parameters else ""
    return f"To look for a knee, load more rows, or smaller steps{option}: it needs {FEWEST_STEPS} steps."


def _unclear(loads: Sequence[StepsFigures], scenario: ScenarioFigures) -> str:
    unclear = [one for one in loads if one.knee and one.knee.outcome == "unclear"]
    if not unclear:
        return ""
    head = "To decide whether growth that may be chance is real"
    needed = [(steps_for(_seconds(one)), one.step_rows) for one in unclear]
    known = [(steps, steps * step_rows) for steps, step_rows in needed if steps is not None]
    if not known:
        return f"{head}: the steps scatter more than they grow; {_QUIETER}."
    steps, rows = max(known, key=lambda one: one[1])
    option = f", --set rows={rows}" if "rows" in scenario.parameters else ""
    return (
        f"{head}, load about {formats.count(steps)} steps ({formats.about_rows(rows)} rows{option}): if it "
        "goes on like this, it then exceeds the scatter of the steps."
    )


def _seconds(steps: StepsFigures) -> list[float]:
    return [
        (point.seconds or 0) * steps.step_rows / point.rows
        for point in comparable(steps.points, steps.step_rows)
    ]


def of_laws(summary: Summary, scenario: ScenarioFigures, asked: PlannedFinding) -> str:
    """Say what decides where throughput over clients has its peak."""
    laws = [law for law in summary.scaling if is_asked(law, scenario.id, asked)]
    repeats = repeats_of(summary)
    return " ".join(filter(None, (_sizes(laws), _misfits(laws, repeats), _levels(laws, repeats))))


def _sizes(laws: Sequence[ScalingFigures]) -> str:
    few = [len({point.n for point in law.points}) for law in laws if not law.fit]
    few = [number for number in few if number < FEWEST_SIZES]
    if not few:
        return ""
    return (
        f"To fit the law, measure {FEWEST_SIZES} or more different numbers of clients, such as "
        "--set clients=1,2,4,8,16."
    )


def _misfits(laws: Sequence[ScalingFigures], repeats: int) -> str:
    wrong = [law for law in laws if not law.fit and len({point.n for point in law.points}) >= FEWEST_SIZES]
    if not wrong:
        return ""
    error = max(relative_error([p.n for p in law.points], [p.tps for p in law.points]) for law in wrong)
    return (
        f"To decide whether the law fails by chance: --repeat {repeats_below(error, POOR, repeats)} brings "
        f"chance below its limit of {formats.percent(POOR)}; if it is still off then, the curve does not "
        "follow it."
    )


def _levels(laws: Sequence[ScalingFigures], repeats: int) -> str:
    level = [(law, law.fit) for law in laws if law.fit and is_level(law.fit, _top(law))]
    if not level:
        return ""
    needed = [
        repeats_for_kappa(fit.kappa.value, fit.kappa.high or fit.kappa.value, repeats) for _, fit in level
    ]
    top = max(_top(law) for law, _ in level)
    known = [one for one in needed if one is not None and one <= _MOST_REPEATS]
    more = (
        f", or repeat: about --repeat {max(known)} at the scatter seen" if len(known) == len(needed) else ""
    )
    return (
        f"To decide whether there is a peak, measure more clients (up to {formats.count(2 * top)}), where a "
        f"fall would be larger than the scatter{more}."
    )


def _top(law: ScalingFigures) -> float:
    return max(point.n for point in law.points)


def repeats_of(summary: Summary) -> int:
    """Return how often the run was to measure everything."""
    repeats = summary.plan.repeats
    return repeats if isinstance(repeats, int) else 1


def _repeats(needed: Sequence[int | None]) -> str:
    shows = "that differences like these are more than chance"
    known = [one for one in needed if one is not None]
    if len(known) < len(needed) or max(known) > _MOST_REPEATS:
        return f"it takes more than --repeat {_MOST_REPEATS} to show {shows}; {_QUIETER}"
    return f"about --repeat {max(known)} would show {shows}, from {formats.percent(MATTERS)} on"
