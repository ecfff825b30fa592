"""`loadstone generate`: rows of a built-in data set as files."""

from __future__ import annotations

import sys
from typing import Any, get_args

import click

from loadstone.cli.group import pairs
from loadstone.model import Compression, FileFormat

ROWS = 2**53 - 1
"""As many as every reader of JSON can count."""


@click.command("generate")
@click.argument("name", metavar="SET")
@click.option(
    "--rows", type=click.IntRange(1, ROWS), default=1_000_000, show_default=True, help="Number of rows."
)
@click.option(
    "--first",
    type=click.IntRange(0, ROWS),
    default=0,
    show_default=True,
    help="Number of the first row, counting from 0.",
)
@click.option(
    "--seed",
    type=click.IntRange(-(2**63), 2**63 - 1),
    default=1,
    show_default=True,
    help="Seed of all random values.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="Option of the data set, such as table=union for types. May be given several times.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(get_args(FileFormat)),
    default="text",
    show_default=True,
    help="text, csv and binary are formats of PostgreSQL's COPY.",
)
@click.option(
    "--compress",
    type=click.Choice(get_args(Compression)),
    default="none",
    show_default=True,
    help="Compress each file; in Parquet, compress its pages.",
)
@click.option(
    "--step-rows",
    type=click.IntRange(0, ROWS),
    default=0,
    metavar="N",
    show_default="one file",
    help="Write numbered files of N rows each into a folder.",
)
@click.option("--header", is_flag=True, help="Write a header line into CSV files.")
@click.option(
    "--out",
    required=True,
    metavar="PATH",
    help="New file, or with --step-rows a new folder; - is standard output.",
)
@click.option(
    "--overwrite", is_flag=True, help="Replace the file, or the folder if it contains nothing else."
)
@click.option(
    "--threads",
    type=click.IntRange(0, 256),
    default=0,
    metavar="N",
    show_default="one per core",
    help="Number of threads that generate rows.",
)
def command(name: str, rows: int, first: int, seed: int, options: dict[str, str], **given: Any) -> None:
    """Write rows of a built-in data set to files.

    They are the same rows that Loadstone's loads send. SET is `import` (one table of twelve columns, phones
    seen by cells), `types` (one table per type, with `--option table=…` and `--option distribution=…`) or
    `flights` (one table of 56 columns).

    \b
    loadstone generate import --rows 1000000 --out import.tsv
    psql -c "\\copy test from import.tsv"
    loadstone generate import --step-rows 100000 --format csv --compress zstd --out steps/
    loadstone generate types --option table=text --out - | psql -c "\\copy table_text from stdin"
    """  # noqa: D301 - click's mark of lines to be kept
    from loadstone.cli import terminal
    from loadstone.model import Rows
    from loadstone.signals import InterruptedRun, Signals, end_as_by_sigpipe
    from loadstone.workload.generate import Files, generate

    files = Files(format=given.pop("format_"), **given)
    what = Rows(set=name, rows=rows, first=first, seed=seed, options=options)
    try:
        with Signals() as signals:
            account = generate(what, files, signals)
    except InterruptedRun as signalled:
        terminal.say(f"{signalled}: the incomplete output was removed")
        sys.exit(int(signalled.exit_code))
    if account["state"] == "reader_gone":
        end_as_by_sigpipe()
    terminal.say(
        f"{account['rows']:,} rows, {account['bytes']:,} bytes, {account['duration_ns'] / 1e9:.1f} s"
    )
