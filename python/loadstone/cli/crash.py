"""`loadstone crash`: whether acknowledged commits survive when the server is killed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from loadstone.cli.comparisons import drawn, write_form
from loadstone.cli.experiments import (
    allow_shell_option,
    form_option,
    out_option,
    phase_option,
    private_target_option,
    seed_option,
    set_option,
    setting_option,
    size_option,
    storage_option,
)
from loadstone.cli.group import Seconds
from loadstone.crash.documents import LevelName
from loadstone.scenario.tables.crash import Moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.crash.documents import Crash, Crashes
    from loadstone.crash.experiment import CrashTest
    from loadstone.crash.sweep import CrashSweep
    from loadstone.errors import ExitCode


@click.command("crash")
@click.argument("scenario", default="pgbench-grid", required=False)
@click.option(
    "--level",
    type=click.Choice(get_args(LevelName)),
    default="process",
    show_default=True,
    help="What is lost in a crash: the processes, or also all that was not synced to the disk.",
)
@click.option(
    "--cycles",
    type=click.IntRange(1, 10_000),
    show_default="20, or as the scenario says",
    help="Crashes to make, of each value.",
)
@private_target_option
@phase_option
@size_option()
@set_option(
    "Parameter of the scenario; one may have several values (max_wal_size=64MB,1GB), a server for each. "
    "May be given several times."
)
@setting_option()
@click.option(
    "--window",
    type=Seconds(0.5, 3600),
    show_default="5, or as the scenario says",
    help="Longest load before a crash in seconds.",
)
@click.option(
    "--moments",
    type=click.Choice(get_args(Moments)),
    show_default="random, or as the scenario says",
    help="When servers crash: at random moments, or late in the checkpoint cycle, when most WAL is to be "
    "replayed.",
)
@seed_option("Seed of every random choice, the moments of the crashes included.")
@out_option
@storage_option()
@click.option(
    "--verify",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Judge the results of an earlier run again; nothing is started.",
)
@form_option
@allow_shell_option
def command(**given: Any) -> None:
    """Find out whether acknowledged commits survive a crash.

    A private server is killed under load at random moments and started again. Each client has a ledger of
    its commits, with which the database is compared after each crash.

    \b
    loadstone crash --target pg18 --cycles 20
    loadstone crash session-oltp --phase log-in --setting synchronous_commit=off
    loadstone crash recovery-time --set max_wal_size=64MB,256MB,1GB
    loadstone crash --verify loadstone-runs/DIR
    """  # noqa: D301 - click's mark of lines to be kept
    if given["verify"] is not None:
        _refuse_others(given)
        sys.exit(int(_verify(given["verify"], given["form"])))
    from loadstone.cli import terminal
    from loadstone.crash.setup import prepare

    test = prepare(given, [*sys.argv[1:]], terminal.say)
    test.run()
    sys.exit(int(_conclude(test, given["form"])))


def _refuse_others(given: dict[str, Any]) -> None:
    context = click.get_current_context()
    for name in given:
        source = context.get_parameter_source(name)
        if name not in ("verify", "form") and source is click.core.ParameterSource.COMMANDLINE:
            shown = "SCENARIO" if name == "scenario" else f"--{name}"
            message = f"{shown} has no meaning with --verify, which starts nothing"
            raise click.UsageError(message)


def _verify(folder: Path, form: str) -> ExitCode:
    from loadstone.cli.output import write_out
    from loadstone.crash.again import is_sweep, judged_again, sweep_judged_again
    from loadstone.crash.sweep import joint_status
    from loadstone.crash.verdict import exit_of
    from loadstone.errors import ExitCode

    if is_sweep(folder):
        joint, begun = sweep_judged_again(folder)
        write_out(_joint_forms(joint, begun, form))
        is_whole = joint.state == "complete"
        return joint_status(begun, ExitCode.OK if is_whole else ExitCode.UNDECIDED)
    document = judged_again(folder)
    write_out(_forms(document, form))
    return exit_of(document, ExitCode.OK)


def _forms(document: Crash, form: str) -> str:
    from loadstone.crash import texts
    from loadstone.experiment.documents import text_of

    if form == "json":
        return text_of(document)
    return texts.markdown(document) if form == "markdown" else drawn(texts.screen(document))


def _joint_forms(document: Crashes, begun: Sequence[Crash], form: str) -> str:
    from loadstone.crash import joint_texts
    from loadstone.experiment.documents import text_of

    if form == "json":
        return text_of(document)
    if form == "markdown":
        return joint_texts.markdown(document, begun)
    return drawn(joint_texts.screen(document, begun))


def _conclude(test: CrashTest | CrashSweep, form: str) -> ExitCode:
    """Print what there is, however the test ended, and return the exit status."""
    from loadstone.cli import terminal
    from loadstone.cli.output import write_out
    from loadstone.crash import joint_texts, texts
    from loadstone.crash.page import page
    from loadstone.crash.sweep import CrashSweep

    if isinstance(test, CrashSweep):
        _write_joint(test)
        write_out(_joint_forms(test.document, test.documents, form))
        terminal.say(joint_texts.answer(test.document, test.documents))
        terminal.say(f"Results: {test.folder}")
    else:
        write_form(test.folder / "crash.md", texts.markdown(test.document))
        write_form(test.folder / "crash.html", page(test.document, terminal.say))
        write_out(_forms(test.document, form))
        terminal.say(texts.answer(test.document))
        terminal.say(f"Results: {test.folder}")
    if test.trouble is not None:
        terminal.trouble(test.trouble)
    return test.status()


def _write_joint(test: CrashSweep) -> None:
    """Write the tables of each value and of all, and the page."""
    from loadstone.cli import terminal
    from loadstone.crash import joint_texts, texts
    from loadstone.crash.joint_page import page

    for entry, one in zip(test.document.values, test.documents, strict=False):
        write_form(test.folder / entry.folder / "crash.md", texts.markdown(one))
    write_form(test.folder / "crashes.md", joint_texts.markdown(test.document, test.documents))
    write_form(test.folder / "crashes.html", page(test.document, test.documents, terminal.say))
