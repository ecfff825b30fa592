"""The charts of loads in steps: seconds against rows in the table, the knee, published curves beside ours."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from loadstone.report import formats
from loadstone.report.charts import Table
from loadstone.report.charts.curves import (
    CROSS,
    DASHED,
    DOTTED,
    Axis,
    Curve,
    Extras,
    curves,
    linear,
    logarithmic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.report.charts import Chart
    from loadstone.results.documents.summary import (
        KneeFigures,
        PhaseFigures,
        PublishedCurve,
        StepFigures,
        StepsFigures,
        VerifiedPhase,
    )

    Figure = Callable[[StepFigures], float | None]

FIRST_STEPS = 3
"""The median of so many steps is what the others are held against."""
BROKEN = ("failed", "interrupted")
MEBI = 2**20


@dataclass(frozen=True, slots=True)
class StepsMember:
    """A phase that loaded in steps, as it is named and drawn."""

    label: str
    colour: str
    phase: PhaseFigures
    steps: StepsFigures

    @property
    def name(self) -> str:
        """Its name in a chart."""
        return self.label or "measured"


@dataclass(frozen=True, slots=True)
class CompleteStep:
    """A step that ended, and its time."""

    figures: StepFigures
    seconds: float

    @property
    def rows_after(self) -> int:
        """Rows in the table after the step."""
        return self.figures.rows_before + self.figures.rows

    @property
    def seconds_per_row(self) -> float:
        """Time of a row."""
        return self.seconds / self.figures.rows


def complete(steps: StepsFigures) -> list[CompleteStep]:
    """Return the steps that ended and brought rows."""
    return [
        CompleteStep(point, point.seconds)
        for point in steps.points
        if point.state == "complete" and point.rows and point.seconds is not None
    ]


def charts_of(identity: str, members: Sequence[StepsMember]) -> list[Chart]:
    """Return the charts of a group of loads in steps."""
    charts = [_seconds(identity, members), _slowdown(identity, members)]
    charts += [_small(identity, members, *panel) for panel in _PANELS]
    return [chart for chart in charts if chart]


def verification_chart(identity: str, verified: Sequence[tuple[StepsMember, VerifiedPhase]]) -> Chart:
    """Lay the loads into partitioned tables over those that advised them."""
    lines = []
    for member, phase in verified:
        lines.append(_line(member.name, member.colour, member.steps, _step_seconds))
        partitioned = _line(f"{member.name}, partitioned", member.colour, phase.steps, _step_seconds)
        lines.append(_as_dashed(partitioned))
    words = "; ".join(_course(line) for line in lines)
    return curves(
        identity=(f"{identity}-verification", "One table, and the same rows in partitions", f"{words}."),
        lines=lines,
        axes=(Axis(_ROWS_BEFORE), linear("seconds per step", lines)),
    )


def knee_words(label: str, steps: StepsFigures) -> str:
    """Say in a sentence where import begins to slow down."""
    if steps.knee is None:
        return ""
    return f"{label}: {steps.knee.sentence}" if label else steps.knee.sentence


def _seconds(identity: str, members: Sequence[StepsMember]) -> Chart:
    lines = [_line(member.name, member.colour, member.steps, _step_seconds) for member in members]
    words = [text for m in members if (text := knee_words(m.label, m.steps))]
    course = "; ".join(_course(line) for line in lines)
    extras = _extras(members)
    return curves(
        identity=(f"{identity}-seconds", "Seconds per step", f"{course}. {' '.join(words)}"),
        lines=lines,
        axes=(Axis(_ROWS_BEFORE), linear("seconds per step", lines)),
        extras=extras,
        height=280,
        note=_legend_words(members, extras),
    )


def _extras(members: Sequence[StepsMember]) -> Extras:
    """Return the knees with their intervals, and the steps that did not end."""
    found = [(m.name, knee) for m in members if (knee := m.steps.knee) and knee.found]
    return Extras(
        bands=[
            (name, max(0, knee.low), knee.high)
            for name, knee in found
            if knee.low is not None and knee.high is not None
        ],
        rules=[
            (name, knee.rows, f"knee: {formats.about_rows(knee.rows)} rows")
            for name, knee in found
            if knee.rows is not None
        ],
        dots=[
            (m.name, point.rows_before, point.seconds or 0, CROSS)
            for m in members
            for point in m.steps.points
            if point.state in BROKEN
        ],
    )


def _legend_words(members: Sequence[StepsMember], extras: Extras) -> str:
    sizes = sorted({member.steps.step_rows for member in members})
    words = [f"A step is {' or '.join(formats.rows(size) for size in sizes)} rows."]
    if extras.rules:
        words.append("Dotted line: the knee; shaded: its interval.")
    if extras.dots:
        words.append("Cross: a step that failed or was interrupted, with the time that it took until then.")
    return " ".join(words)


def _slowdown(identity: str, members: Sequence[StepsMember]) -> Chart | None:
    """Draw our curves and the published ones, each against its own first steps: hardware and steps differ."""
    lines = [line for member in members for line in _slowdowns(member)]
    drawn = [line for line in lines if line.x]
    if not any(line.style for line in drawn):
        return None
    xs, ys = [x for line in drawn for x in line.x], [y for line in drawn for y in line.y if y]
    if not ys:
        return None
    return curves(
        identity=(
            f"{identity}-slowdown",
            "Slowdown, compared with the published curves",
            "; ".join(_course(line) for line in drawn) + ".",
        ),
        lines=drawn,
        axes=(
            logarithmic("rows in the table after the step", xs),
            logarithmic("time per row, relative to the first steps", ys),
        ),
        height=280,
        note=_comparable(members),
        table=_slowdown_table(drawn),
    )


def _slowdowns(member: StepsMember) -> list[Curve]:
    """Return the curve that was measured, and those that were published beside it."""
    ours = [(step.rows_after, step.seconds_per_row) for step in complete(member.steps)]
    published = [
        Curve(
            f"{member.name}, {_curve_name(curve)}",
            member.colour,
            *_relative([((at + 1) * curve.step_rows, s) for at, s in enumerate(curve.seconds)]),
            style=DASHED if at == 0 else DOTTED,
        )
        for at, curve in enumerate(member.steps.curves)
    ]
    return [Curve(member.name, member.colour, *_relative(ours)), *published]


def _slowdown_table(lines: Sequence[Curve]) -> Table:
    """List each line's own points: those of other tests stand at other numbers of rows."""
    rows = [
        (line.name, formats.rows(x), formats.times(y))
        for line in lines
        for x, y in list(zip(line.x, line.y, strict=True))[:: max(1, -(-len(line.x) // 12))]
    ]
    return Table(
        ("line", "About a dozen points of each line.", "slowdown"), rows, "About a dozen points of each line."
    )


def _comparable(members: Sequence[StepsMember]) -> str:
    curve = next(curve for member in members for curve in member.steps.curves)
    note = f" ({curve.note})" if curve.note else ""
    return (
        f"The published curves were measured on another machine{note}, with steps of "
        f"{formats.rows(curve.step_rows)} rows. To make them comparable, each line is divided by the "
        f"median time per row of its own first {FIRST_STEPS} steps, and both axes are logarithmic: "
        "compare where the lines turn upwards, not how fast the machines are."
    )


def _small(
    identity: str, members: Sequence[StepsMember], panel: tuple[str, str, str], figure: Figure
) -> Chart | None:
    name, title, unit = panel
    lines = [_line(member.name, member.colour, member.steps, figure) for member in members]
    if not any(y for line in lines for y in line.y):
        return None
    return curves(
        identity=(f"{identity}-{name}", title, "; ".join(_course(line) for line in lines) + "."),
        lines=lines,
        axes=(Axis(_ROWS_BEFORE), linear(unit, lines)),
        width="third",
        height=150,
        legend=False,
    )


def _line(name: str, colour: str, steps: StepsFigures, figure: Figure) -> Curve:
    # A server may count a step's blocks only with the next one's: the line goes on over what is not known.
    found = [(step.figures.rows_before, figure(step.figures)) for step in complete(steps)]
    known = [(x, y) for x, y in found if y is not None]
    return Curve(name, colour, [x for x, _ in known], [y for _, y in known])


def _step_seconds(step: StepFigures) -> float | None:
    return step.seconds


_ROWS_BEFORE = "rows in the table before the step"
_PANELS: tuple[tuple[tuple[str, str, str], Figure], ...] = (
    (("index", "Indexes after the step", "MiB"), lambda step: over(step.index_bytes, MEBI)),
    (("wal", "Write-ahead log per row", "bytes per row"), lambda step: over(step.wal_bytes, step.rows)),
    (
        ("hits", "Blocks found in the server's cache", "% of blocks"),
        lambda step: None if step.hit_ratio is None else 100 * step.hit_ratio,
    ),
)


def _as_dashed(line: Curve) -> Curve:
    return Curve(line.name, line.colour, line.x, line.y, style=DASHED)


def _curve_name(curve: PublishedCurve) -> str:
    name = curve.name or ""
    return name if name.startswith("published") else ": ".join(part for part in ("published", name) if part)


def _relative(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float | None]]:
    known = [(x, y) for x, y in points if y > 0]
    if not known:
        return [], []
    base = median(y for _, y in known[:FIRST_STEPS])
    return [x for x, _ in known], [y / base for _, y in known]


def _course(line: Curve) -> str:
    known = [y for y in line.y if y is not None]
    if not known:
        return f"{line.name}: no data"
    first, last, most = (formats.digits(value) for value in (known[0], known[-1], max(known)))
    return f"{line.name}: {first} at first, {last} at the end, at most {most}"


def knee_span(knee: KneeFigures) -> str:
    """Return the interval of a knee, in rows; nothing where there is none."""
    if knee.low is None or knee.high is None:
        return ""
    return f"{formats.about_rows(knee.low)} … {formats.about_rows(knee.high)}"


def over(value: float | None, unit: float | None) -> float | None:
    """Return a value in a unit, where both are known."""
    return value / unit if value is not None and unit else None
