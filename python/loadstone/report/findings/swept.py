"""What a swept parameter does to rates and to sizes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.findings.words import Sentence, is_asked, of_ratio, placed
from loadstone.report.names import phase_title, target_label
from loadstone.summary.comparisons import neutral, rate_ratio

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Summary, Sweep, SweepRow

_MUCH_SMALLER = 0.5
"""A part of the largest index from which on it is worth a word."""
_AS_LARGE = 0.9
"""The smallest indexes over the largest, from which on they count as the same: pages fill differently."""


def rates(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Compare the rate of each value with that of the neutral one, all else the same."""
    for sweep, others, rows in _groups(summary, scenario, asked):
        base = _base(rows)
        for value, row in rows.items():
            ratio = rate_ratio(row.rate, rows[base].rate) if value != base else None
            if ratio:
                subject = f"{_place(summary, sweep, others)}, {asked.parameter} = {value}"
                unit = formats.unit(sweep.kind, sweep.headline)
                yield of_ratio(
                    subject,
                    unit,
                    f"{asked.parameter} = {base}",
                    ratio,
                    _index_words(row, rows, asked.parameter),
                )


def sizes(summary: Summary, scenario: str | None, asked: PlannedFinding) -> Iterator[Sentence]:
    """Compare the bytes of table and indexes of each value with those of the neutral one."""
    for sweep, others, rows in _groups(summary, scenario, asked):
        base = _base(rows)
        for value, row in rows.items():
            ours, theirs = _bytes(row), _bytes(rows[base])
            if value != base and ours and theirs:
                subject = f"{_place(summary, sweep, others)}, {asked.parameter} = {value}"
                change = formats.change(ours / theirs)
                text = (
                    f"{subject}: {formats.size(ours)} on disk, {change} against "
                    f"{asked.parameter} = {base} ({formats.size(theirs)})."
                )
                yield Sentence(text, weight=abs(math.log(ours / theirs)))


def _groups(
    summary: Summary, scenario: str | None, asked: PlannedFinding
) -> Iterator[tuple[Sweep, str, dict[str, SweepRow]]]:
    """Yield the rows that differ in the parameter alone, by its value; and the other values in words."""
    name = asked.parameter or ""
    for sweep in summary.sweeps:
        if not is_asked(sweep, scenario, asked) or name not in sweep.parameters:
            continue
        at = sweep.parameters.index(name)
        groups: dict[str, dict[str, SweepRow]] = {}
        for row in sweep.rows:
            others = {p: v for p, v in zip(sweep.parameters, row.values, strict=True) if p != name}
            groups.setdefault(formats.variant(others), {})[formats.word(row.values[at])] = row
        yield from ((sweep, others, rows) for others, rows in groups.items() if len(rows) > 1)


def _base(rows: Mapping[str, SweepRow]) -> str:
    return str(neutral(list(rows)))


def _place(summary: Summary, sweep: Sweep, others: str) -> str:
    target = target_label(summary, sweep.target) if len(summary.targets) > 1 else ""
    return placed(phase_title(sweep, summary), target, others)


def _index_words(row: SweepRow, rows: Mapping[str, SweepRow], parameter: str | None) -> str:
    """Say how large the indexes are, and what part of the largest of the others.

    A parameter that leaves them as they are, such as the number of workers, has nothing to do with them.
    """
    largest, owner = _largest(list(rows.items()))
    smallest = min(other.index_bytes or 0.0 for other in rows.values())
    if not row.index_bytes or smallest > _AS_LARGE * largest:
        return ""
    words = f"; its indexes take {formats.size(row.index_bytes)}"
    if row.index_bytes < _MUCH_SMALLER * largest:
        words += f", {formats.part(row.index_bytes / largest)} of those of {parameter} = {owner}"
    return words


def _largest(rows: Sequence[tuple[str, SweepRow]]) -> tuple[float, str]:
    return max((row.index_bytes or 0.0, value) for value, row in rows)


def _bytes(row: SweepRow) -> float:
    return (row.table_bytes or 0.0) + (row.index_bytes or 0.0)
