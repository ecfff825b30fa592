"""Recoveries of several values as one self-contained page in the report's style: charts, and all figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.crash import joint_texts
from loadstone.crash.joint import figure
from loadstone.report.charts import COLOURS, Block, Chart, Table, filled, legend_of
from loadstone.report.charts.drawings import charts_in, draw
from loadstone.report.page import assets, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.crash.documents import Crash, Crashes, CrashesOfValue

FOLDER = Path(__file__).parent
SECONDS = {"connection_s": "log-in", "commit_s": "first commit", "rate_s": "95 % of the rate",
           "before_replay_s": "replay begins"}  # fmt: skip
WAL = {"wal_bytes": "WAL replayed"}
_WIDE = 8.0
"""Values that are further apart than this are on a logarithmic axis."""


def page(document: Crashes, begun: Sequence[Crash], say: Callable[[str], None]) -> str:
    """Return the page; `say` is told of charts that could not be drawn: the page has all figures then."""
    charts = [one for one in (_seconds(document), _wal(document)) if one is not None]
    drawings = draw(list(charts_in(charts)))
    if drawings.failure:
        say(f"The page has no charts: {drawings.failure}.")
    template = environment(drawings, FOLDER).get_template("crashes.html.j2")
    return template.render(
        document=document,
        first=begun[0] if begun else None,
        answer=joint_texts.answer(document, begun),
        heads=joint_texts.heads(document),
        lines=[joint_texts.line(document, entry) for entry in document.values],
        about=joint_texts.about(document),
        notes=list(joint_texts.notes(document, begun)),
        charts=charts,
        version=__version__,
        **assets(drawings),
    )


def _seconds(document: Crashes) -> Chart | None:
    title = f"Seconds after the start of the server, against {document.parameter}"
    return _chart("recovery-seconds", title, "seconds", document, SECONDS, 1)


def _wal(document: Crashes) -> Chart | None:
    title = f"WAL replayed, against {document.parameter}"
    return _chart("recovery-wal", title, "MB", document, WAL, 1e6)


def _chart(
    name: str, title: str, y_title: str, document: Crashes, figures: Mapping[str, str], divisor: float
) -> Chart | None:
    """Draw the medians of some figures with their ranges; None where no crash has any of them."""
    shown = {
        key: found
        for key in figures
        if (found := [one for one in document.values if getattr(one, key) is not None])
    }
    if not shown:
        return None
    labels = [figures[key] for key in shown]
    colours = [COLOURS[at % len(COLOURS)] for at in range(len(labels))]
    x_title = f"{document.parameter}{f', {document.unit}' if document.unit else ''}"
    blocks = [_points(document, found, key, figures[key], divisor) for key, found in shown.items()]
    return Chart(
        id=name,
        title=title,
        description=f"{y_title} at each value of {document.parameter}: medians, with lowest and highest.",
        spec=filled(
            "recovery",
            {"series": labels, "colours": colours, "y_title": y_title, "x_title": x_title, **axis(document)},
        ),
        data={"points": blocks},
        table=Table((x_title, *labels), _rows(document, list(shown), divisor)),
        width="half",
        legend=legend_of(labels, colours) if len(labels) > 1 else (),
    )


def axis(document: Crashes) -> dict[str, Any]:
    """Return how values are placed: by their size where they are numbers, else one beside the other."""
    numbers = [number for one in document.values if (number := _number(one.value)) is not None]
    if len(numbers) < len(document.values):
        return {"x_type": "ordinal", "x_scale": {}, "x_values": [str(one.value) for one in document.values]}
    least, most = min(numbers), max(numbers)
    wide = least > 0 and most / least >= _WIDE
    scale = {"type": "log", "base": 2} if wide else {"zero": False, "padding": 20}
    return {"x_type": "quantitative", "x_scale": scale, "x_values": numbers}


def _number(value: object) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _points(
    document: Crashes, found: Sequence[CrashesOfValue], key: str, series: str, divisor: float
) -> Block:
    spreads = [getattr(one, key) for one in found]
    are_numbers = all(_number(one.value) is not None for one in document.values)
    columns: dict[str, Sequence[Any]] = {
        "value": [one.value if are_numbers else str(one.value) for one in found],
        "name": [joint_texts.value_of(document, one) for one in found],
        "median": [one.median / divisor for one in spreads],
        "low": [one.low / divisor for one in spreads],
        "high": [one.high / divisor for one in spreads],
        "crashes": [one.crashes for one in spreads],
    }
    return Block({"series": series}, columns)


def _rows(document: Crashes, keys: Sequence[str], divisor: float) -> list[list[str]]:
    return [
        [
            joint_texts.value_of(document, one),
            *(figure(getattr(one, key), divisor) for key in keys),
        ]
        for one in document.values
    ]
