"""One row of a comparison: a metric of a phase on two sides, with its ratio and what is known of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from loadstone.compare.decisions import CONFIDENCE, ENOUGH_REPEATS
from loadstone.compare.documents import Row
from loadstone.summary.ratios import FEWEST, LogRatio, paired, unpaired

if TYPE_CHECKING:
    from loadstone.compare.documents import Basis
    from loadstone.compare.metrics import PhaseValues, Series
    from loadstone.results.documents.summary import Rate


Key = TypeVar("Key")


@dataclass(slots=True)
class Compared:
    """A row, and the ratio that its verdict comes from."""

    row: Row
    ratio: LogRatio | None = None

    @property
    def decides(self) -> bool:
        """Whether there are enough repeats for more than an indication."""
        few = min(self.row.repeats_a, self.row.repeats_b) < ENOUGH_REPEATS
        return self.ratio is not None and self.row.basis in ("repeats", "blocks") and not few


def compared(a: PhaseValues, b: PhaseValues, name: str, *, in_turn: bool) -> Compared:
    """Compare one metric; `in_turn` says that repeats are pairs. One side without it gets a dash."""
    ours, others = a.series.get(name), b.series.get(name)
    known = ours or others
    if known is None:
        raise ValueError(name)
    row = Row(
        scenario=a.scenario,
        phase=a.id,
        title=a.title,
        variant=a.variant,
        metric=name,
        unit=known.metric.unit,
        better=known.metric.better,
        primary=name in (a.primary, b.primary),
    )
    if ours is None or others is None:
        return _one_sided(row, a, b)
    values = [side.by_repeat() for side in (ours, others)]
    row.repeats_a, row.repeats_b = (len(side) for side in values)
    row.a, row.b = (_mean(list(side.values())) for side in values)
    ratio, basis, pairs = _ratio(ours, others, in_turn=in_turn)
    row.ratio = math.exp(float(ratio.centre)) if ratio is not None else row.b / row.a
    row.noise = _noise(ours, others)
    if ratio is None:
        return Compared(row)
    row.basis, row.paired = basis, ratio.paired
    if pairs is not None:
        row.repeats_a = row.repeats_b = pairs
    low, high = ratio.interval(CONFIDENCE)
    row.low, row.high = float(low), float(high)
    row.p_value = float(ratio.p_value())
    row.smallest_effect = float(ratio.smallest_effect())
    return Compared(row, ratio)


def _one_sided(row: Row, a: PhaseValues, b: PhaseValues) -> Compared:
    """Return the row of a metric that one side does not have, with the reason."""
    ours, others = (side.series.get(row.metric) for side in (a, b))
    if ours is not None:
        values = list(ours.by_repeat().values())
        row.a, row.repeats_a = _mean(values), len(values)
    if others is not None:
        values = list(others.by_repeat().values())
        row.b, row.repeats_b = _mean(values), len(values)
    name, lacking = ("A", a) if ours is None else ("B", b)
    row.reason = f"{name}: {lacking.missing or 'not measured, or too few samples'}"
    row.verdict = "missing"
    return Compared(row)


def _ratio(a: Series, b: Series, *, in_turn: bool) -> tuple[LogRatio | None, Basis, int | None]:
    """Return the ratio by the largest unit that there are several of; the number of pairs where paired."""
    by_repeat = a.by_repeat(), b.by_repeat()
    repeats, turns = (min(map(len, sides)) for sides in (by_repeat, (a.values, b.values)))
    if ENOUGH_REPEATS > repeats < turns >= FEWEST:
        found, _ = _of(a.values, b.values, in_turn=in_turn)
        if found is not None:
            return found, "rounds", None
    if repeats >= FEWEST:
        found, pairs = _of(*by_repeat, in_turn=in_turn)
        if found is not None:
            return found, "repeats", pairs
    if len(a.within) == len(b.within) == 1:
        return _within(*a.within.values(), *b.within.values()), "within", None
    return None, "within", None


def _of(a: dict[Key, float], b: dict[Key, float], *, in_turn: bool) -> tuple[LogRatio | None, int | None]:
    if not in_turn:
        return unpaired(list(a.values()), list(b.values())), None
    common = [key for key in a if key in b]
    if len(common) < FEWEST:
        return None, None
    return paired([a[key] for key in common], [b[key] for key in common]), len(common)


def _within(a: Rate, b: Rate) -> LogRatio | None:
    """Return the ratio of the rates of two single runs, by the spread inside each of them."""
    errors = [float(rate.relative_se or 0) ** 2 for rate in (a, b)]
    if not a.value or not b.value or not sum(errors):
        return None
    weights = sum(
        error**2 / max(float(rate.degrees_of_freedom or 1), 1.0)
        for error, rate in zip(errors, (a, b), strict=True)
    )
    centre = np.asarray(math.log(b.value / a.value))
    return LogRatio(
        centre, np.asarray(math.sqrt(sum(errors))), np.asarray(sum(errors) ** 2 / weights), 1, paired=False
    )


def _mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _noise(a: Series, b: Series) -> float | None:
    """Return the relative standard deviation between the repeats of one side, over both sides."""
    sides = [np.log(list(side.by_repeat().values())) for side in (a, b)]
    freedom = sum(len(side) - 1 for side in sides)
    if not freedom:
        return None
    squares = sum(float(((side - side.mean()) ** 2).sum()) for side in sides)
    return math.expm1(math.sqrt(squares / freedom))
