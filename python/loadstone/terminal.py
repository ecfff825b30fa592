"""What the terminal shows: progress while a run goes on, tables at its end, trouble in two lines.

Everything goes to standard error, so that standard output holds results alone.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from loadstone.plan import estimated_seconds
from loadstone.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from loadstone.errors import LoadstoneError
    from loadstone.model import Plan, PlannedPhase

_FILE_WIDTH = 120
"""Columns where there is no terminal to ask."""

_asked = sys.stderr.isatty() or "COLUMNS" in os.environ
_console = Console(stderr=True, highlight=False, width=None if _asked else _FILE_WIDTH)


def say(message: str) -> None:
    """Show one line."""
    _console.print(message, markup=False, soft_wrap=True)


def show(what: RenderableType) -> None:
    """Show a table."""
    _console.print(what)


def trouble(error: LoadstoneError) -> None:
    """Show what went wrong, and how to mend it."""
    _console.print(f"[bold red]loadstone:[/] {escape(error.message)}", soft_wrap=True)
    if error.hint:
        _console.print(f"  {escape(error.hint)}", soft_wrap=True)


def bug() -> None:
    """Show the exception under way, which is a bug of ours, without what might hold a password."""
    say(redact(traceback.format_exc()))
    say("This is a bug of Loadstone. Please report it, with the lines above and what you ran.")


def show_calibration(found: Mapping[str, Any]) -> None:
    """Show calibration.json as a table."""
    from loadstone.report.formats import milliseconds, rate  # noqa: PLC0415 - slow to load

    table = Table(title="Our own ceiling, against a server that answers at once")
    for name in ("mode", "clients", "threads", "transactions/s", "our CPU per transaction", "loop lag p99"):
        table.add_column(name, justify="left" if name == "mode" else "right")
    for row in found["results"]:
        table.add_row(
            row["mode"],
            str(row["clients"]),
            str(row["threads"]),
            rate(row["tps"]),
            f"{row['cpu_ns_per_transaction'] / 1e3:.2f} µs" if row["cpu_ns_per_transaction"] else "–",
            milliseconds(row["loop_lag_p99_ns"]),
        )
    show(table)
    say(f"reading the clock once: {found['clock_ns']} ns; recording one sample: {found['record_ns']} ns")


@contextmanager
def listener(*, quiet: bool) -> Iterator[Quiet]:
    """Show a run's progress while the context is open."""
    if quiet:
        yield Quiet()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    disabled = not _console.is_terminal
    with Progress(*columns, console=_console, transient=True, disable=disabled) as progress:
        yield Live(progress)


class Quiet:
    """A listener that shows nothing."""

    def said(self, message: str) -> None:
        """Take note of what is being done."""

    def planned(self, plan: Plan) -> None:
        """Take note of the final plan."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Take note that a phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: dict[str, Any]) -> None:
        """Take note of how a drive goes."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Take note that a phase has ended."""


class Live(Quiet):
    """Shows one bar for the run and a line for each phase that has ended."""

    def __init__(self, progress: Progress) -> None:
        """Draw into `progress`."""
        # Loaded now, for it takes half a second, and not while something is measured.
        from loadstone.report import formats  # noqa: PLC0415

        self._formats = formats
        self._progress = progress
        self._task: TaskID | None = None
        self._begun_s = 0.0

    def said(self, message: str) -> None:
        """Take note of what is being done."""
        self._print(f"[dim]{escape(message)}[/]")

    def planned(self, plan: Plan) -> None:
        """Take note of the final plan."""
        phases = sum(1 for target in plan.targets for phase in target.phases if phase.skip is None)
        seconds = estimated_seconds(plan)
        self._print(f"[dim]{phases} phases, about {seconds:.0f} s[/]")
        self._task = self._progress.add_task("", total=phases, figures="")

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Take note that a phase begins."""
        self._begun_s = time.monotonic()
        if self._task is not None:
            title = self._title(phase.title, phase.variant)
            self._progress.update(self._task, description=f"{escape(target)}  {title}", figures="")

    def progressed(self, target: str, phase: PlannedPhase, progress: dict[str, Any]) -> None:  # noqa: ARG002
        """Take note of how a drive goes."""
        latest = progress.get("latest")
        if self._task is None or not latest:
            return
        seconds = (latest["end_ns"] - latest["start_ns"]) / 1e9
        counted, unit = ("rows", "rows/s") if "rows" in latest else ("done", "tps")
        figures = f"{self._formats.rate(latest[counted] / seconds if seconds > 0 else None)} {unit}"
        if steps := progress.get("steps"):
            figures += f"  {len(steps)} step{'s' if len(steps) > 1 else ''}"
        if latest["response"]:
            figures += f"  p99 {self._formats.milliseconds(latest['response']['p99_ns'])}"
        if latest["failed"]:
            figures += f"  [red]{latest['failed']:,} failed[/]"
        self._progress.update(self._task, figures=("[dim]warm-up[/]  " if latest["warmup"] else "") + figures)

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Take note that a phase has ended."""
        marks = {"complete": "[green]✓[/]", "skipped": "[dim]–[/]", "interrupted": "[yellow]![/]"}
        mark = marks.get(str(document["state"]), "[red]✗[/]")
        reason = f"  [dim]{escape(str(document['reason']))}[/]" if document["reason"] else ""
        took = f"{time.monotonic() - self._begun_s:.1f} s" if document["state"] != "skipped" else ""
        title = self._title(str(document["title"]), document["variant"])
        self._print(f"{mark} {escape(target)}  {title}  [dim]{took}[/]{reason}")
        if self._task is not None and document["state"] != "skipped":
            self._progress.advance(self._task)

    def _title(self, title: str, variant: Mapping[str, object]) -> str:
        words = self._formats.variant(dict(variant))
        return f"{escape(title)}, {escape(words)}" if words else escape(title)

    def _print(self, line: str) -> None:
        self._progress.console.print(line, soft_wrap=True)
