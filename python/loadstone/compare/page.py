"""A comparison as one self-contained page in the report's style, with both sides' curves over each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.compare import texts
from loadstone.compare.metrics import identity
from loadstone.report.charts import choice
from loadstone.report.charts.drawings import charts_in, draw
from loadstone.report.page import assets, environment
from loadstone.summary.comparisons import headline_rate
from loadstone.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.compare.documents import Comparison, Document, Row
    from loadstone.compare.sides import Pair, RunSide
    from loadstone.report.charts import Chart
    from loadstone.results.documents.summary import PhaseFigures

FOLDER = Path(__file__).parent
MOST_CHARTED = 16
"""Phases whose curves are drawn: each takes some tenths of a second."""
_WIDTH = 100.0
_LEAST_SCALE = math.log(1.1)


@dataclass(frozen=True, slots=True)
class Bar:
    """A ratio with its interval on a logarithmic scale around 1, in percent of the width."""

    at: float
    low: float | None
    high: float | None
    level: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table."""

    row: Row
    name: str
    cells: Sequence[str]
    level: str
    remark: str
    bar: Bar | None


@dataclass(frozen=True, slots=True)
class Block:
    """A phase with its rows."""

    title: str
    lines: Sequence[Line]


@dataclass(frozen=True, slots=True)
class Curves:
    """The charts of a phase."""

    title: str
    charts: Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Section:
    """One comparison."""

    number: int
    comparison: Comparison
    title: str
    summary: str
    overall: str
    sides: Sequence[str]
    kinds: Sequence[tuple[str, Sequence[str], bool]]
    blocks: Sequence[Block]
    band: tuple[float, float]
    """Where ± what matters begins and ends on the scale of the bars."""
    curves: Sequence[Curves]
    left_out: int


@dataclass(frozen=True, slots=True)
class Listing:
    """A table below the figures."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def page(
    document: Document,
    pairs: Sequence[Pair],
    say: Callable[[str], None],
    listings: Sequence[Listing] = (),
) -> str:
    """Return the page; `say` is told of charts that could not be drawn: the page has all figures then."""
    sections = [
        _section(number, comparison, pair, document.matters)
        for number, (comparison, pair) in enumerate(zip(document.comparisons, pairs, strict=True), 1)
    ]
    drawings = draw(list(charts_in(sections)))
    if drawings.failure:
        say(f"The page has no charts: {drawings.failure}.")
    template = environment(drawings, FOLDER).get_template("compare.html.j2")
    return template.render(
        sections=sections,
        document=document,
        listings=listings,
        explanation=texts.explanation(document),
        heads=texts.heads(document.comparisons[0]),
        version=document.loadstone,
        **assets(drawings),
    )


def _section(number: int, comparison: Comparison, pair: Pair, matters: float) -> Section:
    scale = _scale(comparison.rows)
    edge = math.log1p(matters)
    kinds: dict[str, list[str]] = {}
    for one in comparison.differences:
        kinds.setdefault(one.kind, []).append(texts.difference(one))
    blocking = {one.kind for one in comparison.differences if one.blocks}
    found = texts.blocks(comparison, every=True)
    drawn, left_out = _curves(number, pair)
    names = (comparison.a.name, comparison.b.name)
    return Section(
        number=number,
        comparison=comparison,
        title=f"{comparison.b.label} against {comparison.a.label}",
        summary=texts.summary(comparison),
        overall=texts.overall(comparison.overall, names) if comparison.overall else "",
        sides=texts.sides(comparison),
        kinds=[(kind, lines, kind in blocking) for kind, lines in kinds.items()],
        blocks=[Block(block.title, [_line(row, scale) for row in block.rows]) for block in found],
        band=(_place(-edge, scale), _place(edge, scale)),
        curves=drawn,
        left_out=left_out,
    )


def _scale(rows: Sequence[Row]) -> float:
    """Return the logarithm of the ratio at the edge of the bars: of points, and of ends not too far off."""
    points = [abs(math.log(row.ratio)) for row in rows if row.ratio]
    return max(_LEAST_SCALE, 1.3 * max(points, default=0.0))


def _place(log_ratio: float, scale: float) -> float:
    return round(min(max((log_ratio / scale + 1) / 2 * _WIDTH, 0.0), _WIDTH), 2)


def _line(row: Row, scale: float) -> Line:
    bar = None
    if row.ratio:
        low, high = (_end(end, scale) for end in (row.low, row.high))
        bar = Bar(_place(math.log(row.ratio), scale), low, high, texts.level(row))
    remark = texts.remark(row) if row.primary or row.reason else ""
    return Line(row, texts.metric(row), texts.cells(row), texts.level(row), remark, bar)


def _end(end: float | None, scale: float) -> float | None:
    if end is None:
        return None
    return _place(math.log(end) if end > 0 else -scale, scale)


def _curves(number: int, pair: Pair) -> tuple[list[Curves], int]:
    """Return charts of each phase that both sides drove, and how many phases have none for their number."""
    ours, others = (_typical(side) for side in (pair.a, pair.b))
    common = [key for key in ours if key in others]
    found = []
    for at, key in enumerate(common[:MOST_CHARTED]):
        sides = [(pair.a, ours[key]), (pair.b, others[key])]
        series = [made for side, phase in sides if (made := _series(side, phase)) is not None]
        name = f"c{number}-{at}"
        charts = [choice.throughput(name, series), choice.distribution(name, series)]
        phase = ours[key]
        words = ", ".join(f"{k} = {v}" for k, v in phase.variant.items())
        title = visible(f"{phase.title}{f', {words}' if words else ''}")
        if drawn := [chart for chart in charts if chart is not None]:
            found.append(Curves(title, drawn))
    return found, max(0, len(common) - MOST_CHARTED)


def _typical(side: RunSide) -> dict[str, PhaseFigures]:
    """Return of each driven phase the complete repeat with the median rate."""
    phases: dict[str, list[tuple[float, PhaseFigures]]] = {}
    for phase in side.summary.phases:
        if phase.target == side.target.id and phase.drive and phase.state == "complete":
            rate = headline_rate(phase.drive, phase.headline)
            key = identity(phase.scenario, phase.id, phase.variant)
            phases.setdefault(key, []).append((float((rate and rate.value) or 0), phase))
    return {
        key: sorted(found, key=lambda entry: entry[0])[(len(found) - 1) // 2][1]
        for key, found in phases.items()
    }


def _series(side: RunSide, phase: PhaseFigures) -> choice.Series | None:
    drive = phase.drive
    if drive is None:
        return None
    return choice.Series(
        label=visible(f"{side.name}: {side.label}"),
        throughput=drive.series,
        latency=drive.latency_series,
        curve=drive.curve,
        warmup_s=drive.warmup_s,
        headline=phase.headline,
        kind=phase.kind,
        rows_per_transaction=phase.rows_per_transaction,
    )
