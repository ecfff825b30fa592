"""What several commands print."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from loadstone.errors import LoadstoneError
from loadstone.results.redact import redact
from loadstone.visible import Drawn

if TYPE_CHECKING:
    from pathlib import Path


def show_report(folder: Path, *, as_json: bool = False) -> None:
    """Write summary.json and report.html of a run folder, and print the figures.

    Raises LoadstoneError when the folder cannot be read, or when it is damaged (the report says so, too).
    """
    from loadstone.cli import terminal
    from loadstone.report import write_report
    from loadstone.report.terminal import headline_json, summary_table
    from loadstone.summary.damage import damage_in
    from loadstone.summary.document import write_summary

    summary = write_summary(folder)
    report = write_report(folder, terminal.say)
    if as_json:
        click.echo(json.dumps(headline_json(summary), indent=1, sort_keys=True))
    else:
        terminal.show(summary_table(summary))
        terminal.say(f"Report: {report}")
    damaged = damage_in(summary)
    if damaged:
        more = f" {len(damaged) - 1} more: see the report." if len(damaged) > 1 else ""
        raise LoadstoneError(
            f"{folder}: {damaged[0]}{more}", "Use an untouched copy: figures from this folder may be wrong."
        )


def write_notice(text: str) -> None:
    """Write a notice of a command that prints as another tool does."""
    stream = sys.stderr
    if isinstance(text, Drawn):
        getattr(stream, "draw", stream.write)(text)
    else:
        stream.write(redact(text))
    stream.flush()


def write_out(text: str) -> None:
    """Write results, their secrets hidden; where that fails, the stream says so in words."""
    click.echo(redact(text), nl=False)
