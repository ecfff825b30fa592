"""`loadstone report`: the pages of a run folder, written again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from loadstone.cli.output import show_report
from loadstone.errors import ExitCode, LoadstoneError, ResultsLostError, RunFailedError


@click.command("report")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(folders: tuple[Path, ...]) -> None:
    """Write summary.json and report.html of run folders again.

    A folder that cannot be read, or is damaged, does not keep the others from being written; the exit code is
    that of the first.
    """
    sys.exit(int(_written(folders)))


def _written(folders: tuple[Path, ...]) -> ExitCode:
    from loadstone.cli import terminal

    code = ExitCode.OK
    for folder in folders:
        try:
            show_report(folder)
        except ResultsLostError:
            raise
        except LoadstoneError as error:
            if isinstance(error, RunFailedError):  # its place is full or read-only, and there is no --out
                error.hint = "Report a copy of the folder, on a disk with free space where you may write."
            terminal.trouble(error)
            code = code or error.exit_code
    return code
