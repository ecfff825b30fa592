"""Curves over any quantity: lines measured, published or fitted, with bands, places and single points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import COLOURS, FEW_POINTS, TABLE_ROWS, Block, Chart, Table, filled, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.report.charts import Width

SOLID, DASHED, DOTTED = range(3)
"""How a line is drawn: measured; published or compared; published on a second storage."""
BROKEN = {DASHED: "dashed", DOTTED: "dotted"}
"""The words for it in the legend."""
DOT, CROSS = ("circle", 22), ("cross", 90)
"""(shape, area) of a single point: a measured one, one that failed."""
TICKS = 5
SEVERAL_DECADES = 2000
ONE_DECADE = 5


@dataclass(frozen=True, slots=True)
class Curve:
    """One line. Lines of one name have one colour and one entry in the legend; `path` keeps them apart."""

    name: str
    colour: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: int = SOLID
    path: int = 0
    width: float = 1.75


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its title with the unit, and how it is scaled."""

    title: str
    scale: Mapping[str, Any] = field(default_factory=lambda: {"zero": True})
    values: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Extras:
    """What stands beside the lines, each in the colour of the line of its name.

    `bands` and `rules` are stretches and places on the x axis, `areas` the space between two lines, `dots`
    single points as (name, x, y, kind).
    """

    bands: Sequence[tuple[str, float, float]] = ()
    rules: Sequence[tuple[str, float, str]] = ()
    areas: Sequence[tuple[str, Sequence[float], Sequence[float], Sequence[float]]] = ()
    dots: Sequence[tuple[str, float, float, tuple[str, float]]] = ()


def linear(title: str, lines: Sequence[Curve]) -> Axis:
    """Return a y axis from nothing up; one of zeros alone still has a height."""
    highest = max((y for line in lines for y in line.y if y), default=0.0)
    return Axis(title, {"zero": True} if highest else {"domain": [0, 1]})


def logarithmic(title: str, values: Sequence[float]) -> Axis:
    """Return a logarithmic axis that holds all (positive) values."""
    domain = log_domain(values)
    return Axis(title, {"type": "log", "domain": domain, "nice": False}, log_ticks(domain))


def curves(  # noqa: PLR0913 - a chart's parts, each named at the call
    *,
    identity: tuple[str, str, str],
    lines: Sequence[Curve],
    axes: tuple[Axis, Axis],
    extras: Extras | None = None,
    width: Width = "whole",
    height: int = 240,
    note: str = "",
    table: Table | None = None,
    legend: bool = True,
) -> Chart:
    """Build the chart; `identity` is (id, title, description), `axes` are x and y.

    `legend` is false where a chart beside it has the same lines.
    """
    across, up = axes
    colours = {line.name: line.colour for line in lines}
    spec = filled(
        "curves",
        {
            "height": height,
            "x_title": across.title,
            "x_scale": across.scale,
            "x_values": across.values,
            "x_ticks": _ticks(across),
            "y_title": up.title,
            "y_scale": up.scale,
            "y_values": up.values,
            "y_ticks": _ticks(up),
            "series": list(colours),
            "colours": list(colours.values()),
        },
    )
    data = {"points": [_block(line) for line in lines], **_others(lines, extras or Extras())}
    # A layer without data would still be asked for the extent of its fields.
    layers, common = spec["layer"], spec["data"]  # no document: a chart's specification
    spec |= {"layer": [layer for layer in layers if data[_data_set(layer, common)]]}
    shown = table or _table(lines, across.title, up.title)
    broken = {line.name: BROKEN[line.style] for line in lines if line.style != SOLID}
    entries = list(colours.items()) if legend and len(colours) > 1 else []
    solid = [(name, colour) for name, colour in entries if name not in broken]
    others = [(name, colour, broken[name]) for name, colour in entries if name in broken]
    return Chart(*identity, spec, data, shown, width, note, solid, others)


def _data_set(layer: Mapping[str, Any], common: Mapping[str, str]) -> str:
    """Return the name of a layer's data: its own, or that of the whole chart."""
    return str({"data": common, **layer}["data"]["name"])  # no document: a chart's specification


def colour(number: int) -> str:
    """Return the palette's colour of a line by its place among its neighbours."""
    return COLOURS[number % len(COLOURS)]


def log_domain(values: Sequence[float]) -> list[float]:
    """Round outwards to halves of the leading digit: 1.83..71.4 becomes 1.5..75."""
    low, high = max(1e-6, min(values)), max(1e-6, *values)
    low_step, high_step = (10 ** math.floor(math.log10(value)) / 2 for value in (low, high))
    low, high = math.floor(low / low_step) * low_step, math.ceil(high / high_step) * high_step
    return [float(f"{low:.3g}"), float(f"{max(high, low * 2):.3g}")]


def log_ticks(domain: Sequence[float]) -> list[float]:
    """Every, every 1-2-5, or every power of ten inside a domain: about ten ticks at most."""
    low, high = domain
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    span = high / low
    steps: Sequence[int] = (
        range(1, 10) if span < ONE_DECADE else (1, 2, 5) if span < SEVERAL_DECADES else (1,)
    )
    ticks = [float(f"{step * 10.0**power:.1g}") for power in decades for step in steps]
    inside = [tick for tick in ticks if low <= tick <= high]
    return inside if len(inside) > 1 else [low, high]


def _ticks(axis: Axis) -> int:
    """Return how many ticks to ask for: of those that are given, Vega would leave out what is beyond."""
    return max(TICKS, len(axis.values or ()))


def _block(line: Curve) -> Block:
    constant = {"series": line.name, "path": line.path, "dash": line.style, "width": line.width}
    return Block(constant, {"x": [rounded(x, 6) for x in line.x], "y": [rounded(y) for y in line.y]})


def _others(lines: Sequence[Curve], extras: Extras) -> dict[str, list[Block]]:
    dots = [*_marked(lines), *extras.dots]
    return {
        "bands": _columns(("series", "from", "to"), extras.bands),
        "rules": _columns(("series", "at", "label"), extras.rules),
        "areas": [
            Block({"series": name}, {"x": xs, "low": low, "high": high})
            for name, xs, low, high in extras.areas
        ],
        "dots": _columns(
            ("series", "x", "y", "shape", "size"), [(name, x, y, *kind) for name, x, y, kind in dots]
        ),
    }


def _marked(lines: Sequence[Curve]) -> list[tuple[str, float, float, tuple[str, float]]]:
    """Mark the points of lines that have few: a single one would not be seen otherwise."""
    few = max((len(line.x) for line in lines), default=0) <= FEW_POINTS
    return [
        (line.name, x, y, DOT)
        for line in lines
        if few or len(line.x) == 1
        for x, y in zip(line.x, line.y, strict=True)
        if y is not None
    ]


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Block]:
    if not rows:
        return []
    return [Block({}, {name: [row[at] for row in rows] for at, name in enumerate(names)})]


def _table(lines: Sequence[Curve], x_title: str, y_title: str) -> Table:
    xs = sorted({x for line in lines for x in line.x})
    step = max(1, -(-len(xs) // TABLE_ROWS))
    values = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    rows = [[f"{x:,.6g}", *(formats.digits(y.get(x)) for y in values)] for x in xs[::step]]
    note = f"Every {step}th point." if step > 1 else ""
    return Table((x_title, *(f"{line.name}, {y_title}" for line in lines)), rows, note)
