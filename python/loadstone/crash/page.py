"""A crash test as one self-contained page in the report's style: verdict, charts, and all figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.crash import texts
from loadstone.crash.tiles import headline, tiles
from loadstone.crash.verdict import is_whole
from loadstone.report import formats
from loadstone.report.charts.curves import Axis, Curve, colour, curves, linear
from loadstone.report.charts.drawings import draw
from loadstone.report.page import assets, environment
from loadstone.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.crash.documents import Crash
    from loadstone.report.charts import Chart

FOLDER = Path(__file__).parent
SECONDS = {"connection_s": "log-in", "commit_s": "first commit", "rate_s": "95 % of the rate"}
WAL = {"wal_bytes": "WAL replayed"}
FORGOTTEN = {"bytes": "Bytes", "survived_bytes": "Bytes that survived", "files": "Files", "names": "Names"}
"""What the disk forgot: key of `forgot` → head of its column."""
_ALL_TICKS = 12
"""Up to so many crashes, each has its number on the axis."""


def page(document: Crash, say: Callable[[str], None]) -> str:
    """Return the page; `say` is told of charts that could not be drawn: the page has all figures then."""
    charts = [
        _chart(document, "seconds", "Seconds after the start of the server", "Seconds", SECONDS, 1),
        _chart(document, "wal", "WAL replayed after each crash", "MB", WAL, 1e6),
    ]
    shown = [one for one in charts if one is not None]
    drawings = draw(shown)
    if drawings.failure:
        say(f"The page has no charts: {drawings.failure}.")
    template = environment(drawings, FOLDER).get_template("crash.html.j2")
    return template.render(
        document=document,
        headline=headline(document),
        tiles=[
            (tile.question, visible(tile.answer), visible(tile.detail), tile.level)
            for tile in tiles(document)
        ],
        answer=visible(texts.answer(document)),
        heads=texts.HEADS,
        rows=[(texts.line(cycle), is_whole(cycle)) for cycle in document.cycles],
        notes=[visible(note) for note in texts.notes(document)],
        forgotten=_forgotten(document),
        forgotten_heads=("Crash", *FORGOTTEN.values()),
        command=visible(" ".join(document.command)),
        charts=shown,
        version=__version__,
        **assets(drawings),
    )


def _chart(
    document: Crash, name: str, title: str, unit: str, figures: Mapping[str, str], divisor: float
) -> Chart | None:
    """Draw figures of the recoveries over the crashes; None where no crash has any of them."""
    lines = []
    for number, (key, words) in enumerate(figures.items()):
        seen = [(cycle.number, getattr(cycle.recovery, key)) for cycle in document.cycles]
        if any(value is not None for _, value in seen):
            values = [None if value is None else value / divisor for _, value in seen]
            lines.append(Curve(words, colour(number), [at for at, _ in seen], values))
    if not lines:
        return None
    numbers = [float(cycle.number) for cycle in document.cycles]
    ticks = numbers if len(numbers) <= _ALL_TICKS else None
    across = Axis("Crash", {"zero": False, "nice": False, "padding": 14}, ticks)
    said = f"{title}, crash by crash."
    return curves(
        identity=(name, title, said),
        lines=lines,
        axes=(across, linear(unit, lines)),
        width="half",
        height=200,
    )


def _forgotten_cell(forgot: Mapping[str, int], key: str) -> str:
    if key not in forgot:
        return formats.NONE
    return formats.size(forgot[key]) if "bytes" in key else f"{forgot[key]:,}"


def _forgotten(document: Crash) -> list[list[str]]:
    """Return the cells of what the disk forgot at each crash; empty at other levels."""
    control = [("control, fsync=off", document.control)] if document.control else []
    cycles = [*control, *((str(cycle.number), cycle) for cycle in document.cycles)]
    return [
        [name, *(_forgotten_cell(cycle.forgot, key) for key in FORGOTTEN)]
        for name, cycle in cycles
        if cycle.forgot is not None
    ]
