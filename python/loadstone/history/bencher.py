"""One run of a history in Bencher's metric format (BMF): benchmark, measure, value with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.history.series import Point, digest_of, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.history.documents import HistoryLine, MetricLine

Figures = dict[str, float]

MEASURE_LETTERS = 64
BENCHMARK_LETTERS = 1024


def bencher(lines: Sequence[HistoryLine], run: str | None = None) -> dict[str, dict[str, Figures]]:
    """Return a run as a document of this format; without `run`, the newest (`lines` are oldest first).

    A measure is named with its unit: Bencher has one unit for each. Raises LoadstoneError where there is no
    such run.
    """
    found = _run(lines, run)
    return {
        _short(name_of(Point(line, phase)), BENCHMARK_LETTERS): {
            _short(f"{metric.name}, {metric.unit}", MEASURE_LETTERS): _figures(metric)
            for metric in phase.metrics
        }
        for line in found
        for phase in line.phases
        if phase.metrics
    }


def _run(lines: Sequence[HistoryLine], run: str | None) -> list[HistoryLine]:
    wanted = [line for line in lines if run in (None, line.run)]
    if not wanted:
        raise LoadstoneError(
            f"the history has no run {run}" if run else "the history has no run",
            f"The newest is {lines[-1].run}." if lines else "Add one with `loadstone history add DIR`.",
        )
    newest = wanted[-1].key[:-1]
    return [line for line in wanted if line.key[:-1] == newest]


def _figures(metric: MetricLine) -> Figures:
    found = {"value": metric.value}
    if metric.low is not None and metric.high is not None:
        found |= {"lower_value": metric.low, "upper_value": metric.high}
    return found


def _short(name: str, most: int) -> str:
    """Return a name that is not longer than Bencher takes, and still another one than others."""
    if len(name) <= most:
        return name
    digest = digest_of(name)
    return f"{name[: most - len(digest) - 1]}-{digest}"
