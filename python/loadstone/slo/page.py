"""A search as one self-contained page in the report's style: answer, charts and table of the curve."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.report.charts.curves import Axis, Curve, Extras, colour, curves, logarithmic
from loadstone.report.charts.drawing import draw
from loadstone.report.page import assets, environment
from loadstone.slo import texts
from loadstone.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.report.charts import Chart
    from loadstone.slo.documents import Slo, Trial

FOLDER = Path(__file__).parent
_LEAST_MISSES = 1e-5
_PERCENTILES = {"p50": "p50_ms", "p99": "p99_ms", "p99.9": "p999_ms"}
_LOAD = "Load, transactions per second"


def page(document: Slo, say: Callable[[str], None]) -> str:
    """Return the page; `say` is told of charts that could not be drawn: the page has all figures then."""
    charts = _charts(document)
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
            heads=texts.HEADS,
            method=texts.method(document),
            rows=texts.curve(document),
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
    bounds = ((document.lower, "kept"), (document.upper, "not kept"))
    rules = [(document.limits[0], load, words) for load, words in bounds if load]
    latency = _latency(loads, across)
    return [*([latency] if latency else []), _misses(document, loads, across, rules)]


def _latency(loads: Mapping[float, Sequence[Trial]], across: Axis) -> Chart | None:
    lines = []
    for number, (name, key) in enumerate(_PERCENTILES.items()):
        medians = {
            load: texts.median([getattr(one, key) for one in trials]) for load, trials in loads.items()
        }
        known = {load: ms for load, ms in medians.items() if ms}
        if known:
            lines.append(Curve(name, colour(number), list(known), list(known.values())))
    if not lines:
        return None
    every = [y for line in lines for y in line.y if y]
    said = "Median of the trials of each load, from the intended start."
    return curves(
        identity=("latency", "Response time over load", said),
        lines=lines,
        axes=(across, logarithmic("Response time, ms", every)),
        width="half",
    )


def _misses(
    document: Slo,
    loads: Mapping[float, Sequence[Trial]],
    across: Axis,
    rules: Sequence[tuple[str, float, str]],
) -> Chart:
    lines = [
        Curve(text, colour(number), list(loads), [_missed(trials, number) for trials in loads.values()])
        for number, text in enumerate(document.limits)
    ]
    every = [y for line in lines for y in line.y if y]
    said = "Share of the transactions that should have begun and were not done within each limit."
    return curves(
        identity=("misses", "Misses over load", said),
        lines=lines,
        axes=(across, logarithmic("Misses, %", every)),
        extras=Extras(rules=rules),
        width="half",
    )


def _missed(trials: Sequence[Trial], number: int) -> float:
    """Return the share in percent of the trials of a load together; a logarithmic axis has no 0."""
    should = max(sum(trial.should for trial in trials), 1)
    return 100 * max(1 - sum(trial.in_time[number] for trial in trials) / should, _LEAST_MISSES)
