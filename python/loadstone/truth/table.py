"""The table of truth: each percentile as it is, and as each tool measured it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from loadstone.truth.cases import cases
from loadstone.truth.measuring import measure, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.signals import Signals
    from loadstone.truth.cases import Case
    from loadstone.truth.measuring import Measured


@dataclass(frozen=True, slots=True)
class Row:
    """One percentile of one load; times in milliseconds."""

    case: str
    words: str
    kind: str
    percentile: float
    true_ms: float
    measured_ms: dict[str, float | None]
    """By tool; None where the tool does not measure it."""

    def error(self, tool: str) -> float | None:
        """Return measured / true - 1; None where there is no such quotient."""
        found = self.measured_ms.get(tool)
        return None if found is None or not self.true_ms else found / self.true_ms - 1


def measure_truth(
    *, peers: bool, signals: Signals | None = None, tell: Callable[[str], None] = lambda _: None
) -> list[Row]:
    """Measure every load with Loadstone, and with `peers` also with pgbench and sysbench where installed."""
    rows: list[Row] = []
    using = tools(peers=peers)
    for case in cases():
        tell(f"{case.name}: {case.words} …")
        found = {tool.name: measure(case, tool, signals) for tool in using}
        rows += _rows(case, found)
    return rows


def _rows(case: Case, found: dict[str, Measured]) -> Iterator[Row]:
    for kind, truth in case.truths.items():
        for percentile in case.percentiles:
            true_ms = truth(percentile)
            if true_ms is not None:
                measured: dict[str, float | None] = {
                    tool: values.get((kind, percentile)) for tool, values in found.items()
                }
                yield Row(case.name, case.words, kind, percentile, true_ms, measured)


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
            _ms(row.true_ms),
            *(_cell(row, name) for name in names),
        )


def _cell(row: Row, tool: str) -> str:
    found, error = row.measured_ms[tool], row.error(tool)
    if found is None:
        return "–"
    return _ms(found) if error is None else f"{_ms(found)} ({error:+.2%})"


def _ms(value: float) -> str:
    return f"{value:.3f} ms"
