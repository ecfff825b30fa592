"""A search as one self-contained page in the report's style: answer, charts and table of the curve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.report import formats
from loadstone.report.charts.curves import DASHED, Axis, Curve, Extras, colour, curves, logarithmic
from loadstone.report.charts.drawings import draw
from loadstone.report.page import assets, environment
from loadstone.slo import texts
from loadstone.slo.limits import limit
from loadstone.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.slo.documents import Slo, Trial

FOLDER = Path(__file__).parent
_LEAST_MISSES = 1e-5
_LOAD = "Load, transactions per second"


def page(document: Slo, say: Callable[[str], None]) -> str:
    """Return the page; `say` is told of charts that could not be drawn: the page has all figures then."""
    charts = _charts(document)
    heads, rows = texts.known_columns(document)
    drawings = draw(charts)
    if drawings.failure:
        say(f"The page has no charts: {drawings.failure}.")
    return (
        environment(drawings, FOLDER)
        .get_template("slo.html.j2")
        .render(
            document=document,
            title=visible(f"{document.scenario}, {document.phase} on {document.target}"),
            answer=visible(texts.answer(document)),
            notes=[visible(note) for note in texts.notes(document)],
            charts=charts,
            heads=heads,
            method=texts.method(document),
            rows=rows,
            trials=[visible(texts.after_trial(trial, document.limits)) for trial in document.trials],
            version=__version__,
            **assets(drawings),
        )
    )


def _charts(document: Slo) -> list[Chart]:
    loads = texts.by_load(document)
    if len(loads) < 2:  # noqa: PLR2004 - a line needs two
        return []
    across = Axis(_LOAD)
    latency = _latency(document, loads, across)
    return [*([latency] if latency else []), _misses(document, loads, across)]


def _bounds(document: Slo, name: str) -> Extras:
    """Return the places of the bounds, in the colour of a line."""
    places = ((document.lower, "kept"), (document.upper, "not kept"))
    return Extras(rules=[(name, load, words) for load, words in places if load])


def _bounds_text(document: Slo) -> str:
    found = [(document.lower, "the limits are kept"), (document.upper, "they are not")]
    said = [f"{words} at {formats.rate(load)}/s" for load, words in found if load]
    return f"Dotted: {', '.join(said)}." if said else ""


def _level(name: str, number: int, loads: Mapping[float, object], height: float) -> Curve:
    """Return a broken line across the chart: what a limit allows."""
    return Curve(name, colour(number), [min(loads), max(loads)], [height] * 2, DASHED)


def _latency(document: Slo, loads: Mapping[float, Sequence[Trial]], across: Axis) -> Chart | None:
    lines = []
    for number, (name, key) in enumerate(texts.PERCENTILES.items()):
        medians = [texts.percentile(trials, key) for trials in loads.values()]
        if any(medians):
            lines.append(Curve(name, colour(number), list(loads), medians))
    if not lines:
        return None
    limits = [limit(text) for text in document.limits]
    lines += [_level(f"limit {one.text}", 3 + at, loads, one.ns / 1e6) for at, one in enumerate(limits)]
    every = [y for line in lines for y in line.y if y]
    said = "Median of the trials of each load, from the intended start."
    return curves(
        identity=("latency", "Response time over load", said),
        lines=lines,
        axes=(across, logarithmic("Response time, ms", every)),
        extras=_bounds(document, lines[0].name),
        width="half",
        note="Of transactions that were done. Those that were not, and count as misses, are not in it.",
    )


def _misses(document: Slo, loads: Mapping[float, Sequence[Trial]], across: Axis) -> Chart:
    limits = [limit(text) for text in document.limits]
    lines = [
        Curve(one.text, colour(number), list(loads), [_missed(trials, number) for trials in loads.values()])
        for number, one in enumerate(limits)
    ]
    allowed = {round(100 * (1 - one.share), 6): at for at, one in enumerate(limits)}
    lines += [_level(f"allowed: {share:g} %", 3 + at, loads, share) for share, at in allowed.items()]
    every = [y for line in lines for y in line.y if y]
    said = "Share of the transactions that should have begun and were not done within each limit."
    return curves(
        identity=("misses", "Misses over load", said),
        lines=lines,
        axes=(across, logarithmic("Misses, %", every)),
        extras=_bounds(document, lines[0].name),
        width="half",
        note=_bounds_text(document),
    )


def _missed(trials: Sequence[Trial], number: int) -> float:
    """Return the share in percent of the trials of a load together; a logarithmic axis has no 0."""
    should = max(sum(trial.should for trial in trials), 1)
    return 100 * max(1 - sum(trial.in_time[number] for trial in trials) / should, _LEAST_MISSES)
