"""A history as one self-contained page in the report's style: a chart for each phase, and all figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.report import formats
from loadstone.report.charts import COLOURS, TABLE_ROWS, Block, Chart, Table, filled, legend_of
from loadstone.report.charts.drawings import charts_in, draw
from loadstone.report.page import assets, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.history.documents import HistoryLine, MetricLine
    from loadstone.history.series import Block as PhaseBlock
    from loadstone.history.series import Point, Series
    from loadstone.report.charts import Width

    Points = Sequence[tuple[Point, MetricLine]]

FOLDER = Path(__file__).parent
MOST_CHARTED = 40
"""Phases that have a chart: each takes some tenths of a second."""
MOST_WITH_OTHERS = 16
"""Up to so many charts in all, the metrics that do not decide have one, too."""
MOST_RUNS = 24
"""Runs in the open table; older ones are folded away."""
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """A metric of a series."""

    name: str
    primary: bool
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class Section:
    """A phase and variant."""

    title: str
    groups: Sequence[tuple[str, Sequence[Row]]]
    chart: Chart | None


def page(
    lines: Sequence[HistoryLine],
    blocks: Sequence[PhaseBlock],
    wrong: Sequence[str],
    say: Callable[[str], None],
) -> str:
    """Return the page; `say` is told of charts that could not be drawn: the page has all figures then."""
    sections = [_section(at, block) for at, block in enumerate(blocks)]
    others = _others(blocks, sum(section.chart is not None for section in sections))
    drawings = draw(list(charts_in([sections, others])))
    if drawings.failure:
        say(f"The page has no charts: {drawings.failure}.")
    return (
        environment(drawings, FOLDER)
        .get_template("history.html.j2")
        .render(
            sections=sections,
            others=others,
            lines=list(reversed(lines)),
            most_runs=MOST_RUNS,
            runs=len({line.key[:-1] for line in lines}),
            wrong=wrong,
            left_out=max(0, len(blocks) - MOST_CHARTED),
            version=__version__,
            **assets(drawings),
        )
    )


def _section(at: int, block: PhaseBlock) -> Section:
    groups = [
        (block.label(series), [_row(series, name) for name in series.metrics()]) for series in block.series
    ]
    return Section(block.title, groups, _chart(f"h{at}", block) if at < MOST_CHARTED else None)


def _others(blocks: Sequence[PhaseBlock], charted: int) -> list[Chart]:
    """Draw the metrics that do not decide, as far as the page can bear them."""
    wanted = [
        (f"h{at}-{number}", block, name)
        for at, block in enumerate(blocks)
        for number, name in enumerate(_newest(block).metrics()[1:], 1)
    ]
    room = max(0, MOST_WITH_OTHERS - charted)
    return [_chart(identity, block, name, "third") for identity, block, name in wanted[:room]]


def _row(series: Series, name: str) -> Row:
    points = series.having(name)
    point, newest = points[-1]
    before = points[-2][1].value if len(points) > 1 else None
    cells = (
        formats.digits(newest.value, _DIGITS),
        _interval(newest),
        formats.digits(before, _DIGITS),
        formats.digits(None if before is None else newest.value / before),
        str(len(points)),
        point.line.commit or formats.NONE,
    )
    return Row(f"{name}, {newest.unit}", newest.primary, cells)


def _interval(metric: MetricLine) -> str:
    if metric.low is None or metric.high is None:
        return formats.NONE
    within = " (one repeat)" if metric.basis == "within" else ""
    return f"{formats.digits(metric.low, _DIGITS)} … {formats.digits(metric.high, _DIGITS)}{within}"


def _newest(block: PhaseBlock) -> Series:
    return max(block.series, key=lambda series: series.newest.line.at())


def _chart(identity: str, block: PhaseBlock, name: str | None = None, width: Width = "half") -> Chart:
    """Draw a metric, or that which decides: of the newest series, in its unit."""
    newest = _newest(block)
    name = name or newest.metrics()[0]
    unit = newest.having(name)[-1][1].unit
    drawn = [(block.label(series), series.having(name)) for series in block.series]
    shown = [(label, points) for label, points in drawn if points and points[-1][1].unit == unit]
    labels = [label for label, _ in shown]
    colours = [COLOURS[number % len(COLOURS)] for number in range(len(shown))]
    y_title = f"{name}, {unit}"
    return Chart(
        id=identity,
        title=f"{block.title}: {name}",
        description=f"{y_title} of each run over time, with 95 % intervals.",
        spec=filled("history", {"series": labels, "colours": colours, "y_title": y_title}),
        data={"points": [_points(label, points) for label, points in shown]},
        table=_table(shown, y_title),
        width=width,
        legend=legend_of(labels, colours) if len(labels) > 1 else (),
    )


def _points(label: str, points: Points) -> Block:
    columns: dict[str, Sequence[Any]] = {
        "time": [round(point.line.at().timestamp() * 1e3) for point, _ in points],
        "value": [metric.value for _, metric in points],
        "low": [metric.low for _, metric in points],
        "high": [metric.high for _, metric in points],
        "commit": [point.line.commit or "" for point, _ in points],
        "run": [point.line.run for point, _ in points],
    }
    return Block({"series": label}, columns)


def _table(shown: Sequence[tuple[str, Points]], y_title: str) -> Table:
    rows = [
        [
            formats.moment(point.line.time),
            label,
            point.line.commit or formats.NONE,
            formats.digits(metric.value, _DIGITS),
            _interval(metric),
        ]
        for label, points in shown
        for point, metric in points[-TABLE_ROWS:]
    ]
    longest = max((len(points) for _, points in shown), default=0)
    note = f"The newest {TABLE_ROWS} of each; the history has all." if longest > TABLE_ROWS else ""
    return Table(("Start of the run", "Series", "Commit", y_title, "95 % interval"), rows, note)
