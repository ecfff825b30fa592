"""Charts: Vega-Lite specifications kept as files, drawn once here (SVG) and again by the browser.

Colours are CSS custom properties, so one picture serves light, dark and print. Data travel as blocks of
columns with their constants written once, which keeps an hour of seconds small.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FOLDER = Path(__file__).parent
WIDTHS = {"whole": 1040, "half": 500, "third": 330}
FEW_POINTS = 30
"""Up to here each point of a line is marked; a single one would not be seen otherwise."""
TABLE_ROWS = 24
"""The data table under a chart shows so many evenly spaced points; summary.json has them all."""

_COUNTED = re.compile(r'((?:id="|url\(#))((clip|gradient_?)\d+)')
COLOURS = tuple(f"var(--series-{number})" for number in range(1, 7))

Width = Literal["whole", "half", "third"]


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a data set as columns of equal length, plus what is the same in each of them."""

    constant: Mapping[str, Any]
    columns: Mapping[str, Sequence[Any]]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows as objects, as Vega-Lite takes them."""
        names = list(self.columns)
        return [
            {**self.constant, **dict(zip(names, values, strict=True))}
            for values in zip(*self.columns.values(), strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Table:
    """The chart's data for those who cannot see it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One picture: its name, what it shows in a sentence, how it is drawn, and its data as a table."""

    id: str
    title: str
    description: str
    spec: Mapping[str, Any]
    data: Mapping[str, Sequence[Block]]
    table: Table
    width: Width = "whole"
    note: str = ""
    legend: Sequence[tuple[str, str]] = ()
    """(series, colour): kept outside the picture, where it can wrap on a narrow screen."""
    broken: Sequence[tuple[str, str, str]] = ()
    """The same of series whose lines are broken, and how: dashed, dotted."""

    def document(self) -> dict[str, Any]:
        """Say what the browser needs to draw it."""
        blocks = {
            name: [{"constant": block.constant, "columns": block.columns} for block in blocks]
            for name, blocks in self.data.items()
        }
        return {"spec": self.spec, "data": blocks}

    def svg(self, request: Callable[[str, str], str]) -> str:
        """Return the picture as it is before, or without, JavaScript; `request` asks the chart library."""
        datasets = {name: [row for b in blocks for row in b.rows()] for name, blocks in self.data.items()}
        whole = {**_still(self.spec), "width": WIDTHS[self.width], "datasets": datasets, "config": config()}
        return _numbered_anew(self.id, request("svg", json.dumps(whole)))


@dataclass(frozen=True, slots=True)
class Line:
    """One series of a line or area chart; None breaks the line."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    colour: str | None = None


@dataclass(frozen=True, slots=True)
class Axes:
    """How a chart over time is drawn; `x_field` is also the word for time in the tooltip."""

    x_field: str
    x_title: str
    x_domain: tuple[float, float]
    y_title: str
    y_scale: Mapping[str, Any] = field(default_factory=lambda: {"zero": True})
    y_values: Sequence[float] | None = None
    y_extent: int = 44
    y_ticks: int = 5
    height: int = 220


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of the x axis, shaded where `fill` is 1."""

    start: float
    end: float
    label: str
    fill: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A place on the x axis."""

    at: float
    label: str


def over_time(  # noqa: PLR0913 - a chart's parts, each named at the call
    name: str,
    *,
    identity: tuple[str, str, str],
    lines: Sequence[Line],
    axes: Axes,
    bands: Sequence[Band] = (),
    marks: Sequence[Mark] = (),
    width: Width = "whole",
    note: str = "",
) -> Chart:
    """Build a chart of values over time; `identity` is (id, title, description), `name` the specification."""
    names = [line.name for line in lines]
    spec = filled(
        name,
        {
            **{key: getattr(axes, key) for key in Axes.__slots__},
            "y_scale": axes.y_scale if _has_height(lines) else {"domain": [0, 1]},
            "series": names,
            "points": {"size": 16} if max(map(_known, lines), default=0) <= FEW_POINTS else False,
            "colours": spec_colours(lines),
        },
    )
    points = [
        Block({"series": line.name, "rank": rank}, {axes.x_field: line.x, "value": line.y})
        for rank, line in enumerate(lines)
    ]
    data = {"points": points, "bands": _bands(bands), "marks": _marks(marks)}
    legend = legend_of(names, spec_colours(lines)) if name == "areas" or len(lines) > 1 else ()
    return Chart(*identity, spec, data, _lines_table(lines, axes), width, note, legend)


def spec_colours(lines: Sequence[Line]) -> list[str]:
    """Return one colour per line: its own, or the next of the palette."""
    return [line.colour or COLOURS[number % len(COLOURS)] for number, line in enumerate(lines)]


def legend_of(names: Sequence[str], colours: Sequence[str]) -> list[tuple[str, str]]:
    """Return the legend's entries."""
    return list(zip(names, colours, strict=True))


def filled(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification file `name` with each "$word" replaced by the value of that name."""
    spec = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    replaced: dict[str, Any] = _replace(spec, values)
    return replaced


@cache
def config() -> dict[str, Any]:
    """Return the look that all charts share."""
    document: dict[str, Any] = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
    return document


def rounded(value: float | None, digits: int = 4) -> float | None:
    """Return a value with the digits that a picture and its tooltip can use."""
    return None if value is None else float(f"{value:.{digits}g}")


def _replace(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        return {key: _replace(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_replace(value, values) for value in node]
    if isinstance(node, str) and node.startswith("$"):
        return values[node[1:]]
    return node


def _still(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the layers that only answer to the pointer: hundreds of invisible marks."""
    if "layer" not in spec:
        return dict(spec)
    layers = spec["layer"]  # no document: a chart's specification
    return {**spec, "layer": [layer for layer in layers if "params" not in layer]}


def _numbered_anew(chart: str, svg: str) -> str:
    """Name clips and gradients by their chart: the library counts them over all that a process draws."""
    numbers: dict[str, int] = {}

    def name(found: re.Match[str]) -> str:
        number = numbers.setdefault(found[2], len(numbers) + 1)
        return f"{found[1]}{chart}-{found[3]}{number}"

    return _COUNTED.sub(name, svg)


def _known(line: Line) -> int:
    return sum(1 for y in line.y if y is not None)


def _has_height(lines: Sequence[Line]) -> bool:
    """Whether any value is above nothing: an axis fitted to zeros alone would show negative numbers."""
    return any(y for line in lines for y in line.y)


def _bands(bands: Sequence[Band]) -> list[Block]:
    columns: dict[str, Sequence[Any]] = {
        "from": [band.start for band in bands],
        "to": [band.end for band in bands],
        "label": [band.label for band in bands],
        "fill": [band.fill for band in bands],
    }
    return [Block({}, columns)] if bands else []


def _marks(marks: Sequence[Mark]) -> list[Block]:
    columns: dict[str, Sequence[Any]] = {
        "at": [mark.at for mark in marks],
        "label": [mark.label for mark in marks],
    }
    return [Block({}, columns)] if marks else []


def _lines_table(lines: Sequence[Line], axes: Axes) -> Table:
    if not lines:
        return Table((axes.x_title,), ())
    xs = sorted({x for line in lines for x in line.x})
    step = max(1, -(-len(xs) // TABLE_ROWS))
    values = [dict(zip(line.x, line.y, strict=True)) for line in lines]
    rows = [
        [f"{x:,g}", *("–" if (value := y.get(x)) is None else f"{value:,g}" for y in values)]
        for x in xs[::step]
    ]
    note = f"Every {step}th point." if step > 1 else ""
    return Table((axes.x_title, *(f"{line.name}, {axes.y_title}" for line in lines)), rows, note)
