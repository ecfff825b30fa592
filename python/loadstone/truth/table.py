"""The table of truth: each percentile as it is, and as each tool measured it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from loadstone.truth.cases import Truth, cases
from loadstone.truth.measuring import measure, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.signals import Signals
    from loadstone.truth.cases import Case
    from loadstone.truth.measuring import Measured


ERROR = 0.01
"""By so much a percentile that we print may be off."""
LAG_MS = 0.05
"""So late is the median start at most on a machine with nothing else to do."""
OURS = "loadstone"
_FIRST_S = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """One percentile of one load; times in milliseconds."""

    case: str
    words: str
    kind: str
    percentile: float
    true_ms: float | None
    """None where the percentile is on a jump of the distribution, between the two ends of `jump_ms`."""
    measured_ms: dict[str, float | None]
    """By tool; None where the tool does not measure it."""
    jump_ms: tuple[float, float] | None = None
    by_chance_ms: tuple[float, float] | None = None
    """Where 95 % of the runs are of a tool that draws its starts at random."""

    def error(self, tool: str) -> float | None:
        """Return measured / true - 1; None where there is no such quotient."""
        found = self.measured_ms.get(tool)
        if found is None or not self.true_ms or (self.by_chance_ms and tool != OURS):
            return None
        return found / self.true_ms - 1

    def is_kept(self) -> bool | None:
        """Return whether our figure is as true as promised; None where nothing is promised."""
        found, error = self.measured_ms.get(OURS), self.error(OURS)
        if self.true_ms == 0 and found is not None:
            return found < LAG_MS
        return None if error is None else abs(error) <= ERROR


def measure_truth(
    *, peers: bool, signals: Signals | None = None, tell: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Measure every load with Loadstone, and with `peers` also with pgbench and sysbench where installed."""
    rows: list[Row] = []
    using = tools(peers=peers)
    loads = cases()
    # The first load of a process reads its code from disk while the clock runs.
    measure(replace(loads[0], seconds=_FIRST_S), using[0], signals)
    for case in loads:
        tell(f"{case.name}: {case.words} …")
        found = {tool.name: measure(case, tool, signals) for tool in using}
        rows += _rows(case, found)
    return rows


def _rows(case: Case, found: dict[str, Measured]) -> Iterator[Row]:
    for kind, truth in case.truths.items():
        for percentile in case.percentiles:
            true = truth(percentile)
            measured: dict[str, float | None] = {
                tool: values.get((kind, percentile)) for tool, values in found.items()
            }
            chance = (
                case.by_chance[kind](percentile) if kind in case.by_chance and {*found} - {OURS} else true
            )
            yield Row(
                case.name, case.words, kind, percentile,
                None if true.is_jump else true.low_ms, measured,
                _ends(true), _ends(chance) if chance is not true else None,
            )  # fmt: skip


def _ends(truth: Truth) -> tuple[float, float] | None:
    """Return both ends where they are not the same value."""
    return (truth.low_ms, truth.high_ms) if truth.is_jump else None


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the table for programs; times in milliseconds."""
    return {"format": 1, "rows": [asdict(row) for row in rows]}


def cells(rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """Yield the table's lines as text, the heads first."""
    names = list(rows[0].measured_ms)
    yield ("load", "time", "percentile", "truth", *names)
    for row in rows:
        yield (
            row.case,
            row.kind,
            f"p{row.percentile:g}",
            _ms(row.true_ms) if row.jump_ms is None else f"a jump, {_between(row.jump_ms)}",
            *(_cell(row, name) for name in names),
        )


def summary(rows: Sequence[Row]) -> str:
    """Say in a sentence whether our percentiles are as true as promised, and which are not."""
    judged = [(row, row.is_kept()) for row in rows]
    wrong = [row for row, kept in judged if kept is False]
    total = sum(kept is not None for _, kept in judged)
    promise = f"within {100 * ERROR:g} % of the truth (lag: below {LAG_MS:g} ms)"
    text = f"{total - len(wrong)} of {total} percentiles of Loadstone are {promise}"
    if not wrong:
        return text
    named = ", ".join(f"{row.case} {row.kind} p{row.percentile:g}" for row in wrong)
    return f"{text}; not {named}: repeat this while nothing else uses the machine"


def _cell(row: Row, tool: str) -> str:
    found, error = row.measured_ms[tool], row.error(tool)
    if found is None:
        return "–"
    if error is not None:
        return f"{_ms(found)} ({error:+.2%})"
    if row.by_chance_ms and tool != OURS and row.jump_ms is None:
        return f"{_ms(found)} (by chance {_between(row.by_chance_ms)})"
    return _ms(found)


def _between(ends: tuple[float, float]) -> str:
    return f"{ends[0]:.0f} … {_ms(ends[1], 0)}"


def _ms(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f} ms"
