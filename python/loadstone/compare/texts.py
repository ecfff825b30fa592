"""Rows of a comparison as people read them, the same in every output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.report import formats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.compare.documents import Comparison, Difference, Document, Overall, Row

HEADS = ("A", "B", "B/A", "95 % interval", "Noise", "Detectable", "Repeats", "Verdict")
CLOSE = 2
"""Up to so many times, a ratio is read in percents."""
ORDER = ("rate", "queries meanwhile", "warm", "mean", "p50", "p95", "p99", "CPU", "WAL", "written", "disk")
INTERESTING = ("worse", "better")
LEVELS = {"worse": "bad", "better": "good", "same": "good", "small": "good"}
"""Colours of verdicts by the names of the page's classes; others are a warning."""


@dataclass(frozen=True, slots=True)
class Block:
    """A phase and variant with its rows."""

    title: str
    rows: Sequence[Row]


def blocks(comparison: Comparison, *, every: bool) -> list[Block]:
    """Return phases in their order; without `every`, of other metrics only those that differ."""
    found: dict[tuple[str | None, str | None, str], list[Row]] = {}
    for row in comparison.rows:
        if every or row.primary or row.verdict in INTERESTING or row.leaning:
            key = (row.scenario, row.phase, phase_name(row))
            found.setdefault(key, []).append(row)
    return [Block(title, sorted(rows, key=_rank)) for (_, _, title), rows in found.items()]


def _rank(row: Row) -> tuple[bool, int]:
    """Return where a row belongs: the deciding metric first, then rates, latencies and costs."""
    return not row.primary, ORDER.index(row.metric) if row.metric in ORDER else len(ORDER)


def phase_name(row: Row) -> str:
    """Return the title of a row's phase with its variant."""
    words = formats.variant(row.variant)
    return f"{row.title}, {words}" if words else row.title


def metric(row: Row) -> str:
    """Return the metric with its unit."""
    return f"{row.metric}, {row.unit}" if row.unit else row.metric


def cells(row: Row) -> list[str]:
    """Return the cells of a row under `HEADS`."""
    return [
        value(row.a, row),
        value(row.b, row),
        ratio(row.ratio),
        interval(row.low, row.high),
        formats.percent(row.noise),
        effect(row),
        repeats(row),
        verdict(row),
    ]


def value(amount: float | None, row: Row) -> str:
    """Return a value in its row's unit."""
    if row.unit == "B":
        return formats.size(amount)
    return formats.rate(amount) if row.better == "higher" else formats.digits(amount)


def ratio(amount: float | None) -> str:
    """Return a ratio with three digits; near 1 with three after the point, as percents need them."""
    if amount is None:
        return formats.NONE
    return f"{amount:.3f}" if 1 / CLOSE < amount < CLOSE else formats.digits(amount)


def interval(low: float | None, high: float | None) -> str:
    """Return the ends of an interval of a ratio."""
    return formats.NONE if low is None or high is None else f"{ratio(low)} … {ratio(high)}"


def effect(row: Row) -> str:
    """Return the difference that would have been found four times in five; a large one as a factor."""
    found = row.smallest_effect
    if found is None:
        return formats.NONE
    return f"± {formats.percent(found)}" if found < 1 else formats.times(1 + found)


def repeats(row: Row) -> str:
    """Return the repeats of both sides, or the pairs."""
    if row.paired or row.repeats_a == row.repeats_b:
        return str(row.repeats_a)
    return f"{row.repeats_a}/{row.repeats_b}"


def verdict(row: Row) -> str:
    """Return the verdict with what belongs to it."""
    if row.accepted is not None:
        return "worse (accepted)"
    if row.verdict == "indicative":
        return f"{row.leaning}?" if row.leaning else "indicative"
    return row.verdict


def remark(row: Row) -> str:
    """Return what stands below a row: a reason, what would decide it, why it is accepted."""
    if row.reason:
        return row.reason
    if row.accepted:
        return f"accepted: {row.accepted}"
    if row.verdict == "undecided":
        if row.needed is None:
            return "needs over 1,000 repeats"
        return f"needs about {row.needed} repeats"
    return ""


def level(row: Row) -> str:
    """Return how a verdict is coloured."""
    return "warning" if row.accepted is not None else LEVELS.get(row.verdict, "warning")


def difference(one: Difference) -> str:
    """Return a difference as one line."""
    return f"{one.what}: {_plain(one.a)} | {_plain(one.b)}"


def _plain(amount: object) -> str:
    return formats.NONE if amount is None else formats.word(amount)


def sides(comparison: Comparison) -> list[str]:
    """Return a line for each side."""
    return [
        f"{side.name}: {side.label} ({side.folder}, {formats.moment(side.started_at)}, "
        f"{_count(side.repeats, comparison)})"
        for side in (comparison.a, comparison.b)
    ]


def heads(comparison: Comparison) -> Sequence[str]:
    """Return the heads of the columns."""
    return [comparison.unit.capitalize() if head == "Repeats" else head for head in HEADS]


def _count(number: int, comparison: Comparison) -> str:
    return f"{number} {comparison.unit if number != 1 else comparison.unit[:-1]}"


def overall(found: Overall, names: tuple[str, str]) -> str:
    """Return the last row as a sentence."""
    ends = f" ({interval(found.low, found.high)})" if found.low is not None else ""
    a, b = names
    return (
        f"Geometric mean of the speeds of {found.phases} phases, {b}/{a}: {ratio(found.ratio)}{ends}, over "
        f"{found.repeats} repeat{'' if found.repeats == 1 else 's'}."
    )


def summary(comparison: Comparison) -> str:
    """Count the verdicts of the primary metrics."""
    counts: dict[str, int] = {}
    for row in comparison.rows:
        if row.primary:
            counts[verdict(row)] = counts.get(verdict(row), 0) + 1
    order = ("worse", "worse?", "worse (accepted)", "better", "better?")
    names = sorted(counts, key=lambda name: (name not in order, name))
    return ", ".join(f"{counts[name]} {name}" for name in names) or "no phase was measured on both sides"


def explanation(document: Document) -> str:
    """Say what the columns mean."""
    matters = formats.percent(document.matters)
    if any(one.unit == "blocks" for one in document.comparisons):
        return _explanation_of_blocks(matters)
    return (
        f"Differences within ± {matters} do not matter. Noise: standard deviation between repeats of one "
        "side. Detectable: the difference that would have been found four times in five. Verdicts are of the "
        "first metric of each phase, adjusted for their number (Holm); other metrics do not decide."
    )


def _explanation_of_blocks(matters: str) -> str:
    return (
        f"Differences within ± {matters} do not matter. Noise: standard deviation between blocks where "
        "nothing differs (A/A), else between trials of one side. Detectable: the difference that would have "
        "been found four times in five. Verdicts are of the first metric of each phase, adjusted for their "
        "number (Holm) and for the looks (Haybittle-Peto); other metrics do not decide."
    )
