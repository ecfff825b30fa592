"""What the blocks so far say: rows, verdicts, and whether the set-up can compare at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from loadstone.ab import statistics
from loadstone.ab.documents import ControlCheck, PhaseCheck
from loadstone.compare.comparison import judge_family, overall_of
from loadstone.compare.decisions import CONFIDENCE, benjamini_hochberg, holm
from loadstone.compare.metrics import DISK, RATE, WARM, PhaseValues
from loadstone.compare.rows import compared
from loadstone.experiment.arms import SAME, A, B
from loadstone.report import formats
from loadstone.summary.ratios import FEWEST, of_differences

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from loadstone.ab.trial import Measured
    from loadstone.compare.documents import Overall, Row, VerdictName
    from loadstone.compare.rows import Compared

    Block = Mapping[str, Measured]
    Floats = NDArray[np.float64]

CONTROLS = ("CPU", "fsync")
_PROPORTIONAL = (RATE, WARM, DISK)
"""Metrics that change at most by the factor by which the machine does. A latency at a fixed rate may change
by more, because a queue grows."""
_CLEAR_P = 0.01
"""A p value from which an effect of the order is worth a sentence."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When blocks are looked at, and which difference matters."""

    looks: Sequence[int]
    matters: float


class Stage(NamedTuple):
    """Whether no block follows, and whether that is so whatever the figures say."""

    ended: bool
    last: bool


@dataclass(slots=True)
class Findings:
    """What the blocks say."""

    rows: list[Row] = field(default_factory=list)
    checks: list[PhaseCheck] = field(default_factory=list)
    controls: list[ControlCheck] = field(default_factory=list)
    overall: Overall | None = None
    done: bool = False
    """Whether more blocks would change no verdict."""


def analyse(blocks: Sequence[Block], rules: Rules, *, final: bool) -> Findings:
    """Return what complete blocks say; `final` as for `statistics.sequential`."""
    found = Findings()
    sides = {arm: merged(blocks, arm) for arm in (blocks[0] if blocks else ())}
    if not sides:
        return found
    a, b = sides[A], sides[B]
    pairs = [(a[key], b[key]) for key in a if key in b]
    rows = [compared(ours, others, name, in_turn=True) for ours, others in pairs
            for name in dict.fromkeys((*ours.series, *others.series))]  # fmt: skip
    deciding = [row for row in rows if row.row.primary]
    whole = [row for row in deciding if row.ratio is not None and row.row.repeats_a == len(blocks)]
    _judge(found, whole, blocks, rules, final=final)
    judged = {id(row) for row in whole}
    for row in deciding:
        if id(row) not in judged and row.row.verdict != "missing":
            row.row.reason = _why_open(row, len(blocks))
    _judge_others([row for row in rows if not row.row.primary], rules)
    found.rows = [row.row for row in rows if row.row.metric != "mean" or row.row.primary]
    found.overall = overall_of(pairs, in_turn=True)
    return found


def merged(blocks: Sequence[Block], arm: str) -> dict[str, PhaseValues]:
    """Return the phases of an arm with one value a block."""
    found: dict[str, PhaseValues] = {}
    for number, block in enumerate(blocks, 1):
        for key, phase in block[arm].phases.items():
            new = PhaseValues(phase.scenario, phase.id, phase.title, phase.variant)
            entry = found.setdefault(key, new)
            entry.primary = entry.primary or phase.primary
            entry.missing = entry.missing or phase.missing
            for series in phase.series.values():
                for value in series.by_repeat().values():
                    entry.add(series.metric, (number, 0), value)
    return found


def _why_open(row: Compared, blocks: int) -> str:
    if blocks < FEWEST:
        return "fewer than two blocks"
    return f"measured in {row.row.repeats_a} of {blocks} blocks"


def _judge(
    found: Findings, rows: Sequence[Compared], blocks: Sequence[Block], rules: Rules, *, final: bool
) -> None:
    """Decide the deciding metrics together, and check the set-up."""
    if not rows:
        return
    differences = np.stack([_differences(row.row, blocks, A, B) for row in rows])
    higher = [row.row.better == "higher" for row in rows]
    decided = statistics.sequential(differences, rules.looks, rules.matters, higher, final=final)
    adjusted = holm(of_differences(differences).p_value())
    last = final or len(blocks) >= rules.looks[-1]
    ended = last or bool((decided.at > 0).all())
    for at, row in enumerate(rows):
        _fill(row.row, differences[at], rules)
        row.row.adjusted = float(adjusted[at])
        row.row.verdict = cast("VerdictName", str(decided.verdict[at]))
        found.checks.append(_check(row.row, differences[at], int(decided.at[at]), blocks))
        row.row.reason = _how(row.row, found.checks[-1])
    looked = ended or len(blocks) in rules.looks
    invalid = looked and _refuse_invalid(found, rows, blocks, rules, Stage(ended, last))
    found.done = bool((decided.at > 0).all()) or invalid


def _fill(row: Row, differences: Floats, rules: Rules) -> None:
    spread = float(differences.std(ddof=1))
    row.basis = "blocks"
    row.smallest_effect = float(statistics.smallest_effect(spread, len(differences)))
    row.needed = statistics.blocks_for(rules.matters, spread)


def _check(row: Row, differences: Floats, at: int, blocks: Sequence[Block]) -> PhaseCheck:
    title = ", ".join(part for part in (row.title, formats.variant(row.variant)) if part)
    check = PhaseCheck(
        phase=title, metric=row.metric, decided_at=at or None,
        sign_flip_p=statistics.sign_flip_p(differences),
        hodges_lehmann=math.exp(float(statistics.hodges_lehmann(differences))),
    )  # fmt: skip
    slot = statistics.slot_effect(differences, a_first(blocks))
    if slot is not None:
        check.slot_effect, check.slot_p_value = math.expm1(slot[0]), slot[1]
    if SAME in blocks[0]:
        twin = _differences(row, blocks, A, SAME)
        if not np.isnan(twin).any():
            same = of_differences(twin)
            check.aa_ratio, check.aa_p_value = math.exp(float(same.centre)), float(same.p_value())
            check.aa_spread = float(twin.std(ddof=1))
            row.noise = math.expm1(check.aa_spread)
    return check


def a_first(blocks: Sequence[Block]) -> NDArray[np.bool_]:
    """Return for each block whether A ran before B."""
    return np.array([block[A].document.number < block[B].document.number for block in blocks])


def _how(row: Row, check: PhaseCheck) -> str:
    """Say how a verdict was reached, and what else speaks for or against it."""
    parts = []
    if row.verdict == "undecided":
        parts.append(f"needs {'over 1,000' if row.needed is None else f'about {row.needed}'} blocks")
    elif check.decided_at is not None:
        parts.append(f"decided at block {check.decided_at}")
    if check.sign_flip_p is not None:
        parts.append(f"sign-flip p {formats.digits(check.sign_flip_p, 2)}")
    if check.hodges_lehmann is not None and not (row.low or 0) <= check.hodges_lehmann <= (row.high or 0):
        parts.append(f"Hodges-Lehmann estimate {formats.digits(check.hodges_lehmann)}")
    return "; ".join(parts)


def _differences(row: Row, blocks: Sequence[Block], one: str, other: str) -> Floats:
    """Return ln(other/one) of a row's metric for each block; NaN where one has no value."""
    key = next(key for key, phase in blocks[0][A].phases.items() if _is(phase, row))
    values = [[_value(block[arm].phases.get(key), row.metric) for block in blocks] for arm in (one, other)]
    return np.asarray(np.log(values[1]) - np.log(values[0]))


def _is(phase: PhaseValues, row: Row) -> bool:
    return (phase.scenario, phase.id, phase.variant) == (row.scenario, row.phase, row.variant)


def _value(phase: PhaseValues | None, metric: str) -> float:
    series = phase.series.get(metric) if phase else None
    return next(iter(series.by_repeat().values()), math.nan) if series else math.nan


def _refuse_invalid(
    found: Findings, rows: Sequence[Compared], blocks: Sequence[Block], rules: Rules, stage: Stage
) -> bool:
    """Mark what this set-up cannot compare; returns whether more blocks would not help."""
    order, machine = _one_order(blocks), _explained_by_machine(found, rows, blocks, rules, stage)
    twins = [check for check in found.checks if check.aa_ratio is not None]
    apart: set[int] = set()
    if len(twins) == len(rows):
        same = np.stack([_differences(row.row, blocks, A, SAME) for row in rows])
        apart = set(np.flatnonzero(statistics.moved(same, final=stage.ended)).tolist())
    for at, (row, check) in enumerate(zip(rows, found.checks, strict=True)):
        own = [order, machine[at], _twins(check) if at in apart else None]
        if any(own):
            row.row.verdict, row.row.reason = "invalid", "; ".join(filter(None, own))
    settled = all(
        row.row.verdict == "invalid" or check.decided_at
        for row, check in zip(rows, found.checks, strict=True)
    )
    return bool(order or apart or settled)


def _one_order(blocks: Sequence[Block]) -> str | None:
    if not statistics.is_one_sided(a_first(blocks)):
        return None
    return "A and B always ran in the same order: an effect of the order looks like a difference"


def _explained_by_machine(
    found: Findings, rows: Sequence[Compared], blocks: Sequence[Block], rules: Rules, stage: Stage
) -> list[str | None]:
    """Judge the controls; return for each row why they make it invalid, or None."""
    times = {
        arm: np.log([[block[arm].document.cpu_us, block[arm].document.fsync_us] for block in blocks]).T
        for arm in (A, B)
    }
    differences = times[B] - times[A]
    found.controls = _controls(differences, final=stage.ended)
    moved = np.array([one.moved for one in found.controls])
    if not moved.any():
        return [None] * len(rows)
    verdicts = np.array([row.row.verdict for row in rows])
    stays = statistics.withstands(
        np.stack([_differences(row.row, blocks, A, B) for row in rows]), verdicts,
        statistics.explained(differences, moved), rules.matters,
        [row.row.better == "higher" for row in rows], final=stage.last,
    )  # fmt: skip
    which = ", ".join(f"{one.name} {interval(one)}" for one in found.controls if one.moved)
    why = f"the machine itself differed between A and B (control: {which}), and may explain this"
    return [
        None if row.row.metric in _PROPORTIONAL and kept else why
        for row, kept in zip(rows, stays, strict=True)
    ]


def _controls(differences: Floats, *, final: bool) -> list[ControlCheck]:
    ratio = of_differences(differences)
    low, high = ratio.interval(CONFIDENCE)
    moved = statistics.moved(differences, final=final)
    return [
        ControlCheck(
            name=name, ratio=math.exp(float(ratio.centre[at])),  # type: ignore[arg-type]
            low=float(low[at]), high=float(high[at]),
            p_value=float(ratio.p_value()[at]), moved=bool(moved[at]),
        )
        for at, name in enumerate(CONTROLS)
    ]  # fmt: skip


def interval(control: ControlCheck) -> str:
    """Return B/A of a control with its interval."""
    ends = "" if control.low is None else f" ({formats.digits(control.low)} … {formats.digits(control.high)})"
    return f"{formats.digits(control.ratio)}{ends}"


def _twins(check: PhaseCheck) -> str:
    ratio, p_value = formats.digits(check.aa_ratio), formats.digits(check.aa_p_value, 2)
    return f"A' is set up like A and differs (A'/A {ratio}, p {p_value}): this set-up cannot compare"


def _judge_others(rows: Sequence[Compared], rules: Rules) -> None:
    for row in rows:
        if row.ratio is not None:
            row.row.basis = "blocks"
    judge_family(rows, benjamini_hochberg, rules.matters)


def order_notes(found: Findings) -> list[str]:
    """Return a sentence where what runs later in a block gets other figures."""
    tested = [check for check in found.checks if check.slot_p_value is not None]
    if not tested:
        return []
    adjusted = holm([check.slot_p_value or 0.0 for check in tested])
    return [
        f"{check.phase}: {check.metric} changes by {formats.percent(check.slot_effect)} for what runs "
        f"later in a block (p {formats.digits(float(p_value), 2)}). The orders are balanced, so the ratio is "
        "not affected."
        for check, p_value in zip(tested, adjusted, strict=True)
        if p_value < _CLEAR_P
    ]
