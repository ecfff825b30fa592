"""`loadstone run`: scenarios run, and their report."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from loadstone.cli.experiments import out_option, setting_option, storage_option
from loadstone.cli.live import live_options, serving
from loadstone.cli.output import show_report
from loadstone.cli.planning import fields_given, planning_options, request_of, with_consent
from loadstone.cli.watch_options import watch_options
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.model import InOut

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.run import Listener, Outcome, Request


@click.command("run")
@planning_options
@out_option
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Resume the interrupted run in DIR, with the same options. Only passwords must be given again.",
)
@storage_option("Folder for the data of private servers.")
@setting_option(
    "Setting of private servers, such as fsync=off. On your own server: a setting that a session may change, "
    "such as work_mem=64MB, for all of Loadstone's connections. May be given several times."
)
@click.option("--keep", is_flag=True, help="Keep private servers running, and keep the schema loadstone.")
@click.option("--replace", is_flag=True, help="Drop a schema loadstone that Loadstone did not create.")
@click.option("--ignore-space", is_flag=True, help="Start bulk loads even if disk space looks too small.")
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="TARGET=N/h",
    help="Price per hour of a target, such as pg18=2.50/h, in any currency: the report then shows the "
    "cost of imports and queries. TARGET is the target as given, or its id in the report. May be "
    "given several times.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="After loads in steps (index-import): load again into partitions of the advised size, and show "
    "whether import then stays fast.",
)
@click.option("--no-calibrate", is_flag=True, help="Do not measure Loadstone's own ceiling before the run.")
@click.option(
    "--io",
    type=click.Choice(get_args(InOut)),
    default="auto",
    show_default=True,
    help="Kernel interface for network I/O.",
)
@watch_options
@live_options
@click.option(
    "--hosts",
    metavar="HOSTS",
    help="Drive the load from several hosts, on dask.distributed: local:N (N processes here), or "
    "ssh://me@h1,me@h2 or tcp://HOST:8786 (the scheduler of a Dask cluster, one agent on each of its hosts).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on standard output.")
def command(**given: Any) -> None:
    """Run scenarios (names or folders) and write a report.

    `loadstone scenarios` lists the built-in scenarios.

    \b
    loadstone run session-oltp
    loadstone run index-import --size full --target postgres://me@host/db --verify
    """  # noqa: D301 - click's mark of lines to be kept
    request = request_of(given)
    if request.resume is not None:
        from loadstone.run.remembered import with_what_was_asked

        request = with_what_was_asked(request, fields_given())
    outcome = with_consent(request, partial(_outcome, given))
    sys.exit(int(_conclude(outcome, as_json=given["as_json"])))


def _outcome(given: dict[str, Any], request: Request) -> Outcome:
    from loadstone.cli import terminal
    from loadstone.run import execute

    verify = _verifier(request) if request.verify else None
    with terminal.listener(quiet=given["as_json"]) as shown, serving(given, shown) as live:
        outcome = execute(request, live.listener)
        outcome = outcome if verify is None else verify(outcome, live.listener)
        live.ended(outcome)
        return outcome


def _verifier(request: Request) -> Callable[[Outcome, Listener], Outcome]:
    from loadstone import advice

    advice.refuse_unverifiable(request)
    return partial(advice.verify, request)


def _conclude(outcome: Outcome, *, as_json: bool) -> ExitCode:
    """Report what there is, however the run ended, and return the exit status."""
    from loadstone.cli import terminal

    code = outcome.exit_code
    try:
        show_report(outcome.folder.path, as_json=as_json)
    except LoadstoneError as error:
        terminal.trouble(error)
        code = code or error.exit_code
    for farewell in outcome.farewells:
        terminal.say(farewell)
    if outcome.trouble is not None:
        terminal.trouble(outcome.trouble)
    return code
