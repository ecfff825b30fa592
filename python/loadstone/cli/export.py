"""`loadstone export`: the results of a run for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.results.documents.summary import Summary

FORMATS = ("csv", "parquet", "openmetrics")
TABLES = ("phases", "intervals", "latencies", "queries", "resources", "steps")


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What is written.")
@click.option(
    "--table",
    "names",
    multiple=True,
    type=click.Choice(TABLES),
    show_default="all",
    help="Table to write. May be given several times. Not for openmetrics.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for the tables, or file for openmetrics. Without it, openmetrics and a single table as CSV "
    "are printed on standard output.",
)
def command(folder: Path, form: str, names: tuple[str, ...], out: Path | None) -> None:
    """Write the results of a run folder for other programs.

    \b
    loadstone export loadstone-runs/today --format parquet --out tables
    loadstone export loadstone-runs/today --format openmetrics
    """  # noqa: D301 - click's mark of lines to be kept
    if form == "openmetrics":
        _openmetrics(folder, names, out)
    else:
        _tables(folder, form, names or TABLES, out)


def _openmetrics(folder: Path, names: tuple[str, ...], out: Path | None) -> None:
    from loadstone.cli.output import write_out
    from loadstone.results.json_files import write_bytes
    from loadstone.summary.stored import read_summary
    from loadstone.tables.openmetrics import openmetrics

    if names:
        raise click.UsageError("--table goes with csv and parquet")
    summary = read_summary(folder)
    _tell_damage(folder, summary)
    text = openmetrics(summary)
    if out is None:
        write_out(text)
    else:
        write_bytes(out, text.encode())


def _tables(folder: Path, form: str, names: tuple[str, ...], out: Path | None) -> None:
    from loadstone.cli import terminal
    from loadstone.cli.output import write_out
    from loadstone.tables.export import encoded, write_tables
    from loadstone.tables.results import open_run

    if out is None and (form != "csv" or len(names) != 1):
        raise LoadstoneError(
            f"{'several tables' if len(names) > 1 else form} cannot be printed on standard output",
            "Give a folder with --out, or one table with --table and --format csv.",
        )
    run = open_run(folder)
    _tell_damage(folder, run.summary)
    if out is None:
        write_out(encoded(run.table(names[0]), form).decode())
        return
    for path in write_tables(run, names, form, out):
        terminal.say(str(path))


def _tell_damage(folder: Path, summary: Summary) -> None:
    from loadstone.cli import terminal

    for warning in summary.warnings:
        if warning.kind == "FolderDamaged":
            terminal.say(f"{folder}: {warning.message} {warning.hint}")
