"""What a crash test of several values says: before each, its table, and why figures are missing in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadstone.crash import texts
from loadstone.crash.findings import compared
from loadstone.crash.joint import figure
from loadstone.report import formats
from loadstone.report.fitted import Fitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from loadstone.crash.documents import Crash, Crashes, CrashesOfValue

FIGURES = {
    "wal_bytes": ("WAL, MB", 1e6),
    "before_replay_s": ("Before replay, s", 1),
    "replay_bytes_per_s": ("Replay, MB/s", 1e6),
    "connection_s": ("Log-in, s", 1),
    "commit_s": ("Commit, s", 1),
    "rate_s": ("95 % rate, s", 1),
    "rate_before": ("Commits/s before", 1),
}
"""Columns: key → head, and what the figure is divided by."""
_VERDICTS = {
    "lost": "Commits are not safe",
    "did not come up": "The server did not come up again",
    "cannot show a loss": "This set-up cannot show a loss",
}
_RANGES = "Medians of the crashes, with the lowest and the highest in parentheses."
_SECONDS = "Seconds count from the start of the server."


def before(document: Crashes, entry: CrashesOfValue) -> str:
    """Say which value comes now."""
    at = document.values.index(entry) + 1
    return f"{name_of(document, entry)} ({at} of {len(document.values)})"


def name_of(document: Crashes, entry: CrashesOfValue) -> str:
    """Return the parameter with its value: max_wal_size = 64 MB."""
    return f"{document.parameter} = {value_of(document, entry)}"


def value_of(document: Crashes, entry: CrashesOfValue) -> str:
    """Return the value with its unit: 64 MB."""
    value = entry.value
    text = str(value).lower() if isinstance(value, bool) else f"{value:g}" if _is_float(value) else str(value)
    return f"{text} {document.unit}".strip()


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def heads(document: Crashes) -> list[str]:
    """Return the heads of the columns."""
    return [document.parameter, "Crashes", "Lost", *(head for head, _ in FIGURES.values())]


def line(document: Crashes, entry: CrashesOfValue) -> list[str]:
    """Return the cells of a value under `heads`."""
    counts = [f"{entry.crashes:,}", f"{entry.lost:,}" if entry.crashes else formats.NONE]
    figures = (figure(getattr(entry, key), divisor) for key, (_, divisor) in FIGURES.items())
    return [value_of(document, entry), *counts, *figures]


def answer(document: Crashes, begun: Sequence[Crash]) -> str:
    """Return what all values show together, as sentences."""
    crashes = sum(entry.crashes for entry in document.values)
    lost = sum(entry.lost for entry in document.values)
    done = sum(entry.state == "complete" for entry in document.values)
    of = "" if done == len(document.values) else f" of {len(document.values)}"
    plural = "" if len(document.values) == 1 else "s"
    counted = (
        f"{done}{of} value{plural} of {document.parameter}, {texts.crashes_of(crashes)} ({document.level})"
    )
    said = [f"{counted}, {lost:,} acknowledged commits lost."]
    for verdict, words in _VERDICTS.items():
        named = [
            name_of(document, entry)
            for entry, one in zip(document.values, begun, strict=False)
            if one.verdict == verdict
        ]
        if named:
            said.append(f"{words}: see {', '.join(named)}.")
    said.extend(_findings(document))
    if document.state != "complete":
        said.append(f"Not all crashes were made: {document.reason or document.state}.")
    if document.level == "process":
        said.append(texts.NOTHING_OF_POWER)
    return " ".join(said)


def _findings(document: Crashes) -> Iterator[str]:
    """Say how long servers took to come back: the value that was crashed last against the first."""
    known = [(name_of(document, entry), entry.connection_s) for entry in document.values]
    seen = [(name, spread) for name, spread in known if spread is not None]
    if len(seen) > 1:
        yield from compared((seen[0][0], seen[-1][0]), seen[0][1], seen[-1][1])


def notes(document: Crashes, begun: Sequence[Crash]) -> Iterator[str]:
    """Yield why figures are missing, and what was otherwise than intended."""
    for entry in document.values:
        if entry.state == "not begun":
            yield f"{name_of(document, entry)}: not begun."
        for key, why in entry.missing.items():
            yield f"{name_of(document, entry)}, {FIGURES[key][0]}: {why}."
    for entry, one in zip(document.values, begun, strict=False):
        yield from (f"{name_of(document, entry)}: {note}" for note in texts.notes(one))
        if document.level == "power":
            yield from (f"{name_of(document, entry)}: {note}" for note in texts.of_power(one))


def screen(document: Crashes, begun: Sequence[Crash]) -> RenderableType:
    """Return table and verdict for the terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in heads(document):
        table.add_column(head, justify="right", no_wrap=True)
    for entry in document.values:
        table.add_row(*line(document, entry))
    lines = [Text(f"! {note}", style="yellow") for note in notes(document, begun)]
    less = ("Commits/s before", "Commit, s", "Crashes", "Before replay, s")
    below = [Text(words, style="dim") for words in about(document)]
    return Group(Fitted(table, less=less), *below, *lines, Text(answer(document, begun), style="bold"))


def markdown(document: Crashes, begun: Sequence[Crash]) -> str:
    """Return verdict and table for a pull request."""
    columns = heads(document)
    lines = [f"### Loadstone: {answer(document, begun)}", ""]
    lines += [f"| {' | '.join(columns)} |", f"|{' --: |' * len(columns)}"]
    lines += [f"| {' | '.join(line(document, entry))} |" for entry in document.values]
    lines += ["", " ".join(about(document)), "", *(f"- {note}" for note in notes(document, begun))]
    return "\n".join([*lines, ""])


def about(document: Crashes) -> list[str]:
    """Return what the figures are."""
    has_ranges = any(entry.crashes > 1 for entry in document.values)
    return [_RANGES, _SECONDS] if has_ranges else [_SECONDS]
