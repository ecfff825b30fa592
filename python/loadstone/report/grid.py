"""A phase swept over several numbers: throughput as heat maps, its curves, and the scalability law fitted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import Block, Chart, Table, filled
from loadstone.report.charts.curves import Axis, Curve, Extras, colour, curves, linear, logarithmic
from loadstone.report.names import phase_title

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.report.charts import Width
    from loadstone.results.documents.summary import (
        Cell,
        FittedRange,
        Grid,
        ScalingCurvePoint,
        ScalingFigures,
        Summary,
        Value,
    )

HEAT = tuple(f"var(--heat-{number})" for number in range(6))
ACROSS, UP = "clients", "threads"
NS_PER_MS = 1e6
FITTED, BAND = "var(--series-1)", "var(--series-1)"


@dataclass(frozen=True, slots=True)
class Facet:
    """The cells that one map shows."""

    label: str
    cells: list[Cell]


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell, and its values in the order of the parameters."""

    values: list[Value]
    cell: Cell


@dataclass(frozen=True, slots=True)
class Fit:
    """The law fitted to one series, in words."""

    label: str
    chart: Chart | None
    reason: str | None
    note: str | None
    points: int
    lambda_: str
    sigma: str
    kappa: str
    peak_n: str
    peak_tps: str
    r2: str


@dataclass(frozen=True, slots=True)
class GridBlock:
    """What the page says of a grid."""

    id: str
    title: str
    target: str
    parameters: list[str]
    heat: list[Chart]
    curves: list[Chart]
    fits: list[Fit]
    method: str
    cells: list[CellRow]


def blocks(summary: Summary, names: Mapping[str, str]) -> list[GridBlock]:
    """Return a block for each grid; `names` are the targets' names for people, empty where there is one."""
    found = []
    for number, grid in enumerate(summary.grids):
        same = (grid.scenario, grid.id, grid.target)
        fits = [fit for fit in summary.scaling if (fit.scenario, fit.id, fit.target) == same]
        title = phase_title(grid, summary)
        found.append(_block((f"grid-{number}", title), grid, fits, names.get(grid.target, "")))
    return found


def scaling_words(entry: ScalingFigures) -> str:
    """Say what the law reads out of one series of measurements."""
    fit = entry.fit
    if fit is None:
        return str(entry.sentence)
    parts = [f"{_of(fit.lambda_)} tps of one alone"]
    parts += [f"contention {_of(fit.sigma)}", f"coherency {_of(fit.kappa)}"]
    return f"{entry.sentence} {', '.join(parts)}; R² {formats.digits(fit.r2, 3)}."


def _block(heading: tuple[str, str], grid: Grid, fits: Sequence[ScalingFigures], target: str) -> GridBlock:
    identity, title = heading
    axes = _axes(grid.parameters, grid.cells)
    facets = _facets(grid, axes)
    charts = []
    if len(axes) > 1:
        width: Width = "half" if len(facets) in (1, 2, 4) else "third"
        charts += [_heat(f"{identity}-heat-{at}", facet, axes, width) for at, facet in enumerate(facets)]
    for at, facet in enumerate(facets):
        charts += _curves(f"{identity}-{at}", facet, axes)
    return GridBlock(
        id=identity,
        title=title,
        target=target,
        parameters=grid.parameters,
        heat=[chart for chart in charts if "-heat-" in chart.id],
        curves=[chart for chart in charts if "-heat-" not in chart.id],
        fits=[_fit(f"{identity}-fit-{at}", fit) for at, fit in enumerate(fits)],
        method=next((fit.method for fit in fits if fit.method), ""),
        cells=[CellRow([cell.variant.get(name) for name in grid.parameters], cell) for cell in grid.cells],
    )


def _axes(parameters: Sequence[str], cells: Sequence[Cell]) -> list[str]:
    """Return the parameters that go across and up: clients and threads, if they are swept."""
    values = {name: {str(cell.variant.get(name)) for cell in cells} for name in parameters}
    swept = [name for name in parameters if len(values[name]) > 1] or list(parameters[:1])
    ranked = sorted(swept, key=lambda name: (name != ACROSS, name != UP, -len(values[name])))
    return ranked[:2]


def _facets(grid: Grid, axes: Sequence[str]) -> list[Facet]:
    """Return one facet for each combination of the other parameters."""
    others = [
        name
        for name in grid.parameters
        if name not in axes and len({str(cell.variant.get(name)) for cell in grid.cells}) > 1
    ]
    found: dict[str, list[Cell]] = {}
    for cell in grid.cells:
        words = formats.variant({name: cell.variant.get(name) for name in others})
        found.setdefault(words, []).append(cell)
    return [Facet(label, cells) for label, cells in found.items()]


def _heat(identity: str, facet: Facet, axes: Sequence[str], width: Width) -> Chart:
    across, up = axes
    cells = facet.cells
    highest = _highest(cells)
    xs, ys = (_values(cells, name) for name in (across, up))
    spec = filled(
        "heat",
        {
            "height": 34 * len(ys),
            "x_title": across,
            "y_title": up,
            "x_sort": xs,
            "y_sort": ys[::-1],
            "levels": list(range(len(HEAT))),
            "colours": list(HEAT),
        },
    )
    known = [cell for cell in cells if cell.tps]
    columns: dict[str, Sequence[Any]] = {
        "x": [cell.variant[across] for cell in known],
        "y": [cell.variant[up] for cell in known],
        "level": [_level(_rate(cell), highest) for cell in known],
        "text": [formats.rate(_rate(cell)) for cell in known],
        "latency": [formats.milliseconds(cell.mean_ns) for cell in known],
    }
    best = max(known, key=_rate, default=None)
    words = f"highest {formats.rate(_rate(best))} tps at {_place(best, axes)}" if best else "no figures"
    title = f"Throughput, tps{': ' + facet.label if facet.label else ''}"
    return Chart(
        identity,
        title,
        f"Heat map of throughput over {across} and {up}: {words}.",
        spec,
        {"points": [Block({}, columns)]},
        _heat_table(cells, axes, (xs, ys)),
        width,
        "The darkest shade is the highest of this map; others have scales of their own."
        if facet.label
        else "",
        legend=list(zip(_levels(highest), HEAT, strict=True)),
    )


def _heat_table(cells: Sequence[Cell], axes: Sequence[str], values: tuple[list[Any], list[Any]]) -> Table:
    across, up = axes
    held = {(cell.variant[across], cell.variant[up]): cell for cell in cells}
    rows = [(f"{up} = {y}", *(_tps(held.get((x, y))) for x in values[0])) for y in values[1]]
    return Table((f"tps by {up}", *(f"{across} = {x}" for x in values[0])), rows)


def _curves(identity: str, facet: Facet, axes: Sequence[str]) -> list[Chart]:
    across = axes[0]
    if not all(isinstance(cell.variant.get(across), int | float) for cell in facet.cells):
        return []
    more = f": {facet.label}" if facet.label else ""
    tps = _lines(facet, axes, _rate)
    latency = _lines(facet, axes, lambda cell: None if cell.mean_ns is None else cell.mean_ns / NS_PER_MS)
    xs = sorted({x for line in tps for x in line.x if x > 0})
    if len(xs) < 2:  # noqa: PLR2004 - one point is no curve
        return []
    x_axis = _across(across, xs)
    charts = [_course(f"{identity}-tps", f"Throughput by {across}{more}", tps, (x_axis, linear("tps", tps)))]
    positive = [y for line in latency for y in line.y if y]
    if positive:
        axes_of = (x_axis, logarithmic("mean latency, ms", positive))
        charts.append(_course(f"{identity}-latency", f"Latency by {across}{more}", latency, axes_of))
    return charts


def _course(identity: str, title: str, lines: Sequence[Curve], axes: tuple[Axis, Axis]) -> Chart:
    words = "; ".join(
        f"{line.name}: {formats.digits(known[0])} at {line.x[0]:g}, highest {formats.digits(max(known))}"
        for line in lines
        if (known := [y for y in line.y if y is not None])
    )
    return curves(identity=(identity, title, f"{words}."), lines=lines, axes=axes, width="half", height=180)


def _lines(facet: Facet, axes: Sequence[str], figure: Callable[[Cell], float | None]) -> list[Curve]:
    across = axes[0]
    by: dict[str, list[Cell]] = {}
    for cell in facet.cells:
        label = f"{axes[1]} = {cell.variant.get(axes[1])}" if len(axes) > 1 else "measured"
        if cell.tps:
            by.setdefault(label, []).append(cell)
    return [
        Curve(
            label,
            colour(at),
            [_number(cell, across) for cell in cells],
            [figure(cell) for cell in cells],
        )
        for at, (label, cells) in enumerate(
            (label, sorted(cells, key=lambda cell: _number(cell, across))) for label, cells in by.items()
        )
    ]


def _scaling(identity: str, entry: ScalingFigures) -> Chart | None:
    """Draw the measurements, the fitted law with its band, and the place of its peak."""
    points = entry.points
    if not points or entry.fit is None or not entry.curve:
        return None
    curve = entry.curve
    name, measured = "fitted law", "measured"
    xs = [point.n for point in curve]
    lines = [
        Curve(name, FITTED, xs, [point.tps for point in curve]),
        Curve(measured, "var(--series-2)", [p.n for p in points], [None for _ in points]),
    ]
    peak = entry.fit.peak_n
    inside = [peak] if peak and peak.value <= max(xs) else []
    band = [(p.low, p.high) for p in curve if p.low is not None and p.high is not None]
    extras = Extras(
        areas=[(name, xs, [low for low, _ in band], [high for _, high in band])]
        if len(band) == len(curve)
        else [],
        rules=[(name, at.value, f"peak at {formats.digits(at.value, 3)}") for at in inside],
        dots=[(measured, p.n, p.tps, ("circle", 50)) for p in points],
    )
    title = formats.variant(entry.fixed) or f"Throughput by {entry.over}"
    rows = [(f"{p.n:g}", formats.rate(p.tps), formats.rate(_at(curve, p.n))) for p in points]
    return curves(
        identity=(identity, title, scaling_words(entry)),
        lines=lines,
        axes=(Axis(entry.over, {"zero": True}), Axis("tps")),
        extras=extras,
        width="third",
        height=170,
        table=Table((entry.over, "measured, tps", "fitted, tps"), rows),
    )


def _fit(identity: str, entry: ScalingFigures) -> Fit:
    fit = entry.fit
    return Fit(
        label=formats.variant(entry.fixed) or "all",
        chart=_scaling(identity, entry),
        reason=entry.reason if fit is None else None,
        note=entry.reason if fit is not None else None,
        points=len(entry.points),
        lambda_=_of(fit and fit.lambda_),
        sigma=_of(fit and fit.sigma),
        kappa=_of(fit and fit.kappa),
        peak_n=_of(fit and fit.peak_n),
        peak_tps=_of(fit and fit.peak_tps),
        r2=formats.digits(fit.r2, 3) if fit else formats.NONE,
    )


def _of(entry: FittedRange | None) -> str:
    """Return a value with its 95 % interval."""
    if not entry:
        return formats.NONE
    value, low = formats.digits(entry.value, 3), formats.digits(entry.low, 3)
    if entry.high is None:
        return f"{value} ({low} or more)"
    return f"{value} ({low} … {formats.digits(entry.high, 3)})"


def _across(title: str, xs: Sequence[float]) -> Axis:
    """Return a logarithmic axis when the values double rather than count, with a tick at each of them."""
    if xs[-1] / xs[0] >= 8 and xs[0] > 0:  # noqa: PLR2004 - three doublings
        return Axis(title, {"type": "log", "domain": [xs[0], xs[-1]], "nice": False}, xs)
    return Axis(title, {"zero": False, "nice": False}, xs)


def _highest(cells: Sequence[Cell]) -> float:
    return max((_rate(cell) for cell in cells if cell.tps), default=0.0) or 1.0


def _rate(cell: Cell) -> float:
    return (cell.tps and cell.tps.value) or 0.0


def _number(cell: Cell, name: str) -> float:
    """Return the value of a parameter whose values are numbers."""
    value = cell.variant[name]
    return value if isinstance(value, int | float) else float(value or 0)


def _levels(highest: float) -> list[str]:
    """Name the shades: to how many tps each of them reaches."""
    step = highest / len(HEAT)
    return [f"to {formats.rate(step * (number + 1))}" for number in range(len(HEAT))]


def _level(value: float, highest: float) -> int:
    return min(len(HEAT) - 1, max(0, math.ceil(value / highest * len(HEAT)) - 1))


def _values(cells: Sequence[Cell], name: str) -> list[Any]:
    """Return the values of a parameter: numbers by size, words as they were given."""
    found = list(dict.fromkeys(cell.variant.get(name) for cell in cells))
    return sorted(found) if all(isinstance(value, int | float) for value in found) else found


def _place(cell: Cell, axes: Sequence[str]) -> str:
    return formats.variant({name: cell.variant[name] for name in axes})


def _tps(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return formats.rate(cell.tps.value) if cell.tps else str(cell.reason or formats.NONE)


def _at(curve: Sequence[ScalingCurvePoint], n: float) -> float:
    return min(curve, key=lambda point: abs(point.n - n)).tps
