"""`loadstone compare`: run folders that exist, compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from loadstone.cli.comparisons import (
    SUFFIXES,
    accept_known,
    every_option,
    failures_given,
    files_given,
    form_option,
    forms_of,
    matters_option,
    visible_document,
    write_form,
)


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="DIR…")
@form_option
@click.option(
    "--out",
    "pages",
    multiple=True,
    type=click.Path(path_type=Path),
    callback=files_given,
    help="Also write a file, in the format that its name ends in: .html (a page with charts), .md, .json, "
    ".xml (JUnit), .txt. May be given several times.",
)
@matters_option
@every_option
@click.option(
    "--fail-on",
    default="",
    callback=failures_given,
    metavar="WORSE,UNDECIDED",
    help="Exit with 4 for a regression (worse), with 5 if a phase is not decided (undecided).",
)
@click.option(
    "--accept",
    "known",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="List of known regressions with end dates (TOML).",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Compare runs of different plans, and damaged folders: ratios without verdicts.",
)
def command(**given: Any) -> None:
    """Compare run folders: the first with each of the others.

    One folder with several targets: its first target with each other one. DIR#TARGET chooses a target of a
    run. A verdict needs three repeats on each side (loadstone run --repeat 3).

    \b
    loadstone compare loadstone-runs/monday loadstone-runs/tuesday
    loadstone compare runs/pg17-and-pg18 --format markdown --fail-on worse
    """  # noqa: D301 - click's mark of lines to be kept
    from loadstone.cli.output import write_out
    from loadstone.compare.comparison import compare
    from loadstone.compare.gate import exit_code, read_accepted
    from loadstone.compare.sides import pairs_of

    known = None if given["known"] is None else read_accepted(given["known"])
    pairs = pairs_of(given["runs"])
    document = compare(pairs, given["matters"], anyway=given["anyway"])
    if known is not None:
        accept_known(document, known)
    document = visible_document(document)
    forms = forms_of(document, pairs, every=given["every"])
    for path in given["pages"]:
        write_form(path, forms[SUFFIXES[path.suffix.lower()]]())
    write_out(forms[given["form"]]())
    sys.exit(int(exit_code(document, given["fail_on"])))
