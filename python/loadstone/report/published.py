"""Systems beside each other as bars: what was measured, filled; what others published, hollow and dashed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadstone.report import formats
from loadstone.report.charts import Block, Chart, Table, filled, rounded
from loadstone.report.charts.curves import log_domain, log_ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.report.charts import Width
    from loadstone.results.documents.phase import Published
    from loadstone.results.documents.summary import Compared, ScenarioFigures

PUBLISHED = "published"
COLOURS = {"cold": "var(--series-3)", "warm": "var(--series-1)", "measured": "var(--series-1)"}
"""In the order in which the bars of one system stand."""
WIDE_SPAN = 20
"""Largest over least from which a linear axis would show single bars only."""
ROOM = 0.42
"""Of the axis, for the figures behind the bars."""
BAR, GAP = 15, 9
"""Height of a bar and of the space between two systems, in pixels."""
LABEL_LIMIT, LETTER_WIDTH = 150, 7


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; None in place of a value leaves its words alone, such as "failed"."""

    label: str
    series: str
    """Which kind of run: a name of COLOURS."""
    value: float | None
    text: str
    low: float | None = None
    high: float | None = None
    published: bool = False
    unlike: str = ""
    """What it shows in place of its kind, such as "first run, not cold": such a bar is drawn faint."""


def sources(scenarios: Iterable[ScenarioFigures]) -> list[str]:
    """Say on what the published systems ran: their figures are of that hardware, and of other rows."""
    return [
        f"{source.title} ({source.author}, {source.year}), on {source.hardware}"
        for scenario in scenarios
        if (source := scenario.source)
    ]


def system_of(figure: Published | Compared) -> str:
    """Return the system that a figure was published of."""
    return figure.system or PUBLISHED


def notes_of(figures: Iterable[Published | Compared], of: str = "") -> list[str]:
    """Return what was said beside published figures, each note once with its systems.

    `of` is what the figures are of, where notes on several things are listed together.
    """
    said: dict[str, list[str]] = {}
    for figure in figures:
        system = system_of(figure)
        if figure.note and system not in said.setdefault(figure.note, []):
            said[figure.note].append(system)
    place = f"{of}, " if of else ""
    return [f"{place}{', '.join(whose)}: {note}" for note, whose in said.items()]


def systems(
    identity: tuple[str, str], unit: str, bars: Sequence[Bar], *, width: Width = "half", note: str = ""
) -> Chart | None:
    """Draw bars of systems, each in a place of its own; `identity` is (id, title). None without any value."""
    known = [value for bar in bars for value in (bar.value, bar.low, bar.high) if value]
    if not known:
        return None
    slots = [name for name in COLOURS if any(bar.series == name for bar in bars)]
    wide = max(known) / min(known) > WIDE_SPAN
    scale, begin, ticks = _logarithmic(known) if wide else _linear(known)
    shown = formats.fitted([bar.label for bar in bars], LABEL_LIMIT // LETTER_WIDTH)
    labels = list(dict.fromkeys(shown))
    extent = LETTER_WIDTH * max(map(len, labels))
    spec = filled(
        "systems",
        {
            "height": len(labels) * (max(1, len(slots)) * BAR + GAP),
            "x_title": f"{unit}, logarithmic" if wide else unit,
            "x_values": ticks,
            "y_extent": extent,
            "y_limit": max(LABEL_LIMIT, extent),
            "scale": scale,
            "slots": slots,
            "colours": [COLOURS[name] for name in slots],
        },
    )
    columns: dict[str, Sequence[Any]] = {
        "label": shown,
        "series": [bar.series for bar in bars],
        "published": [bar.published for bar in bars],
        "faint": [bool(bar.unlike) for bar in bars],
        "from": [begin for _ in bars],
        "value": [rounded(_or(bar.value, begin)) for bar in bars],
        "low": [rounded(_or(bar.low, _or(bar.value, begin))) for bar in bars],
        "high": [rounded(_or(bar.high, _or(bar.value, begin))) for bar in bars],
        "end": [rounded(max(_or(bar.high, begin), _or(bar.value, begin))) for bar in bars],
        "text": [bar.text for bar in bars],
    }
    several = len(slots) > 1
    published = any(bar.published for bar in bars)
    unlike = {bar.unlike: COLOURS[bar.series] for bar in bars if bar.unlike}
    broken = [(words, colour, "faint") for words, colour in unlike.items()]
    scaled = " The axis is logarithmic: compare the ends of the bars, not their lengths." if wide else ""
    return Chart(
        *identity,
        f"{identity[1]}, {unit}: {'; '.join(_words(bar, several=several) for bar in bars)}.",
        spec,
        {"points": [Block({}, columns)]},
        Table(("system", "kind", unit), [(bar.label, _kind(bar), bar.text) for bar in bars]),
        width,
        f"{note}{scaled}".strip(),
        [(name, COLOURS[name]) for name in slots] if several or published else (),
        [*broken, *([(PUBLISHED, "var(--muted)", "dashed")] if published else [])],
    )


def _words(bar: Bar, *, several: bool) -> str:
    kind = f" {_kind(bar)}" if several or bar.published else ""
    return f"{bar.label}{kind} {bar.text}"


def _kind(bar: Bar) -> str:
    if not bar.published:
        return bar.unlike or bar.series
    return PUBLISHED if bar.series == "measured" else f"{bar.series}, {PUBLISHED}"


def _linear(values: Sequence[float]) -> tuple[dict[str, Any], float, list[float] | None]:
    return {"domain": [0, max(values) / (1 - ROOM)], "nice": False}, 0.0, None


def _logarithmic(values: Sequence[float]) -> tuple[dict[str, Any], float, list[float] | None]:
    low, high = log_domain(values)
    begin = low / 2
    end = high * (high / begin) ** (ROOM / (1 - ROOM))
    ticks = [tick for tick in log_ticks([begin, end]) if tick <= high]
    return {"type": "log", "domain": [begin, end], "nice": False}, begin, ticks


def _or(value: float | None, instead: float) -> float:
    return instead if value is None else value
