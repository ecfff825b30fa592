"""What the terminal shows: progress while a run goes on, tables at its end, trouble in two lines.

Everything goes to standard error, so that standard output holds results alone.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from loadstone.plan.plan import estimated_seconds
from loadstone.results.redact import redact
from loadstone.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rich.console import ConsoleOptions, RenderableType

    from loadstone.errors import LoadstoneError
    from loadstone.plan.model import Plan, PlannedPhase

_BAR_WIDTH = 100
"""Columns from which a bar and the time to come are shown as well."""
_PHASE_LEAST = 4
"""Columns that are kept for the name of what is going on, and its distance from the figures."""
_FILE_WIDTH = 120
"""Columns where there is no terminal to ask."""


class _Screen:
    """Standard error for what was made visible before, and is drawn with escape sequences of our own."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        """Draw."""
        stream = self._stream()
        draw: Callable[[str], int] = getattr(stream, "draw", stream.write)
        return draw(text)

    def flush(self) -> None:
        """Hand on what is kept."""
        self._stream().flush()

    def isatty(self) -> bool:
        """Return whether it is a terminal."""
        return self._stream().isatty()

    def fileno(self) -> int:
        """Return the descriptor, by which the terminal is asked for its size."""
        return self._stream().fileno()

    def _stream(self) -> TextIO:
        # While a bar is shown, rich catches what others write to standard error.
        stream: TextIO = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        return stream


class _VisibleConsole(Console):
    """The border that every text crosses: what would act on the terminal is shown as text."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text to be shown for a string."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the pieces to be shown."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(visible(piece.text), piece.style)


_screen = _Screen()
_asked = sys.stderr.isatty() or "COLUMNS" in os.environ
_console = _VisibleConsole(
    file=cast("TextIO", _screen), highlight=False, width=None if _asked else _FILE_WIDTH
)


def say(message: str) -> None:
    """Show one line."""
    _console.print(redact(message), markup=False, soft_wrap=True)


def show(what: RenderableType) -> None:
    """Show a table."""
    _console.print(what)


def trouble(error: LoadstoneError) -> None:
    """Show what went wrong, and how to mend it."""
    _console.print(f"[bold red]loadstone:[/] {escape(redact(error.message))}", soft_wrap=True)
    if error.hint:
        _console.print(f"  {escape(redact(error.hint))}", soft_wrap=True)


def bug() -> None:
    """Show the exception under way, which is a bug of ours, without what might hold a password."""
    say(redact(traceback.format_exc()))
    say("This is a bug of Loadstone. Please report it, with the lines above and what you ran.")


def show_needed(found: Mapping[str, Any]) -> None:
    """Show how many load hosts a rate needs."""
    from loadstone.report.formats import rate

    for mode, needed in found["modes"].items():
        slowest = min(needed["ceilings_tps"].values())
        say(
            f"{rate(found['rate_per_s'])} tps, {mode}: {needed['hosts'] or 'no number of'} load "
            f"host{'s' if needed['hosts'] != 1 else ''} like the slowest measured ({rate(slowest)} tps), "
            f"each at {100 * found['usable_share']:.0f} % of its ceiling at most"
        )


def show_calibration(found: Mapping[str, Any], host: str = "") -> None:
    """Show calibration.json as a table; `host` names the load host, where it is another."""
    from loadstone.report.fitted import Fitted
    from loadstone.report.formats import milliseconds, rate

    ours = f"The ceiling of load host {escape(host)}" if host else "Our own ceiling"
    table = Table(title=f"{ours}, against a server that answers at once")
    for name in ("mode", "clients", "threads", "transactions/s", "our CPU per transaction", "loop lag p99"):
        table.add_column(name, justify="left" if name == "mode" else "right", no_wrap=name != "mode")
    for row in found["results"]:
        table.add_row(
            row["mode"],
            str(row["clients"]),
            str(row["threads"]),
            rate(row["tps"]),
            f"{row['cpu_ns_per_transaction'] / 1e3:.2f} µs" if row["cpu_ns_per_transaction"] else "–",
            milliseconds(row["loop_lag_p99_ns"]),
        )
    show(Fitted(table))
    say(f"reading the clock once: {found['clock_ns']} ns; recording one sample: {found['record_ns']} ns")


def show_truth(lines: Iterator[Sequence[str]]) -> None:
    """Show the table of truth; its first line holds the heads."""
    from loadstone.report.fitted import Fitted

    table = Table(title="Measured percentiles beside the true ones (error in brackets)")
    for number, name in enumerate(next(lines)):
        table.add_column(name, justify="left" if number < 2 else "right", no_wrap=number > 1)  # noqa: PLR2004 - two names
    for line in lines:
        table.add_row(*line)
    show(Fitted(table))


def bar_columns(width: int) -> list[ProgressColumn]:
    """Return what the line of a run that goes on shows: its figures whole, other words as far as they fit."""
    phase = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    figures = TextColumn("{task.fields[figures]}", table_column=Column(no_wrap=True))
    named: list[ProgressColumn] = [TextColumn("{task.description}", table_column=phase)]
    return (
        [*named, BarColumn(bar_width=24), figures, TimeRemainingColumn()]
        if width >= _BAR_WIDTH
        else [*named, figures]
    )


def fitting(parts: Sequence[str], width: int) -> str:
    """Join as many parts (markup) as have room, each whole; `…` stands for the others."""
    for count in range(len(parts), 0, -1):
        joined = "  ".join([*parts[:count], *(["…"] if count < len(parts) else [])])
        if cell_len(Text.from_markup(joined).plain) <= width:
            return joined
    return ""


@contextmanager
def listener(*, quiet: bool) -> Iterator[Quiet]:
    """Show a run's progress while the context is open."""
    if quiet:
        yield Quiet()
        return
    columns = bar_columns(_console.width)
    disabled = not _console.is_terminal
    with Progress(*columns, console=_console, transient=True, disable=disabled, expand=True) as progress:
        yield Live(progress)


class Quiet:
    """A listener that shows nothing."""

    def said(self, message: str) -> None:
        """Keep what is being done."""

    def planned(self, plan: Plan) -> None:
        """Keep the final plan."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Note that a phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: dict[str, Any]) -> None:
        """Keep how a drive goes."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Note that a phase has ended."""


class Live(Quiet):
    """Shows one bar for the run and a line for each phase that has ended."""

    def __init__(self, progress: Progress) -> None:
        """Draw into `progress`."""
        # Loaded now, for it takes half a second, and not while something is measured.
        from loadstone.report import formats

        self._formats = formats
        self._progress = progress
        self._task: TaskID | None = None
        self._labels: dict[str, str] = {}
        self._begun_s = 0.0

    def said(self, message: str) -> None:
        """Keep what is being done."""
        self._print(f"[dim]{escape(redact(message))}[/]")

    def planned(self, plan: Plan) -> None:
        """Keep the final plan."""
        self._labels = {target.id: target.label for target in plan.targets}
        phases = sum(1 for target in plan.targets for phase in target.phases if phase.skip is None)
        seconds = estimated_seconds(plan)
        # What ends by a number of transactions, or by its rows, is not known beforehand: seconds at best.
        length = f"about {seconds:.0f} s of measuring" if seconds >= 1 else "seconds each"
        self._print(f"[dim]{phases} phases, {length}[/]")
        self._task = self._progress.add_task("", total=phases, figures="")

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Note that a phase begins."""
        self._begun_s = time.monotonic()
        if self._task is not None:
            title = self._title(phase.title, phase.variant)
            self._progress.update(self._task, description=f"{self._name(target)}  {title}", figures="")

    def progressed(self, target: str, phase: PlannedPhase, progress: dict[str, Any]) -> None:  # noqa: ARG002
        """Keep how a drive goes."""
        latest = progress.get("latest")
        if self._task is None or not latest or progress.get("over"):
            return  # the last interval is cut off: a rate of it says little
        seconds = (latest["end_ns"] - latest["start_ns"]) / 1e9
        counted, unit = ("rows", "rows/s") if "rows" in latest else ("done", "tps")
        parts = ["[dim]warm-up[/]"] if latest["warmup"] else []
        parts.append(f"{self._formats.rate(latest[counted] / seconds if seconds > 0 else None)} {unit}")
        if latest["failed"]:
            parts.append(f"[red]{latest['failed']:,} failed[/]")
        if latest["response"]:
            parts.append(f"p99 {self._formats.milliseconds(latest['response']['p99_ns'])}")
        if steps := progress.get("steps"):
            parts.append(f"{len(steps)} step{'s' if len(steps) > 1 else ''}")
        room = self._progress.console.width - _PHASE_LEAST
        self._progress.update(self._task, figures=fitting(parts, room))

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Note that a phase has ended."""
        marks = {"complete": "[green]✓[/]", "skipped": "[dim]–[/]", "interrupted": "[yellow]![/]"}
        mark = marks.get(str(document["state"]), "[red]✗[/]")
        reason = f"  [dim]{escape(redact(str(document['reason'])))}[/]" if document["reason"] else ""
        took = f"{time.monotonic() - self._begun_s:.1f} s" if document["state"] != "skipped" else ""
        title = self._title(str(document["title"]), document["variant"])
        self._print(f"{mark} {self._name(target)}  {title}  [dim]{took}[/]{reason}")
        if self._task is not None and document["state"] != "skipped":
            self._progress.advance(self._task)

    def _name(self, target: str) -> str:
        return escape(self._labels.get(target, target))

    def _title(self, title: str, variant: Mapping[str, object]) -> str:
        words = self._formats.variant(dict(variant))
        return f"{escape(title)}, {escape(words)}" if words else escape(title)

    def _print(self, line: str) -> None:
        self._progress.console.print(line, soft_wrap=True)
