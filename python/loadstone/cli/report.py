"""`loadstone report`: the pages of a run folder, written again."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli.output import show_report


@click.command("report")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(folders: tuple[Path, ...]) -> None:
    """Write summary.json and report.html of run folders again."""
    for folder in folders:
        show_report(folder)
