"""The command line: arguments become one call each; the only place that prints and exits."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from loadstone import __version__, calibrate, terminal
from loadstone.engines import all_engines
from loadstone.errors import ExitCode, LoadstoneError, RunFailedError
from loadstone.generate import COMPRESSIONS, FILE_FORMATS, Files, generate
from loadstone.model import InOut, Rows
from loadstone.personalities import pgbench, tsbs
from loadstone.plan import SIZES, estimated_seconds, plan_to_json
from loadstone.processtitle import hide_passwords
from loadstone.run import Listener, Outcome, Request, execute, plan_of
from loadstone.scenario import builtin_scenarios, find_scenario
from loadstone.signals import InterruptedRun, Signals, end_as_by_sigpipe
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_SCENARIO = "iot-feed"
DEFAULT_TARGET = "pg"


class Group(click.Group):
    """Turns every way of ending into the exit status that docs/exit-codes.md gives it."""

    def main(self, *args: Any, **given: Any) -> Any:
        """Run the command line and exit."""
        hide_passwords()
        given["standalone_mode"] = False
        try:
            code = super().main(*args, **given)
        except LoadstoneError as error:
            terminal.trouble(error)
            code = error.exit_code
        except click.ClickException as error:
            error.show()
            code = ExitCode.BAD_INPUT
        except click.Abort:
            terminal.say("stopped by SIGINT")
            code = ExitCode.INTERRUPTED
        except Exception:  # noqa: BLE001 - it is a bug of ours, shown whole
            terminal.bug()
            code = ExitCode.FAILED
        sys.exit(int(code or ExitCode.OK))


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="loadstone %(version)s")
def main() -> None:
    """Find out what load a database really holds."""


def _pairs(_: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            message = f"{text!r} is not name=value"
            raise click.BadParameter(message, param=option)
        pairs[name] = value
    return pairs


def _planning_options(command: Callable[..., None]) -> Callable[..., None]:
    options = [
        click.argument("scenarios", nargs=-1),
        click.option(
            "--target",
            "-t",
            "targets",
            multiple=True,
            metavar="URL",
            help="Server to measure: pg (a private PostgreSQL, the default), pg10 … pg18, pg:/path/to/bin, "
            "postgres://…, or what else `loadstone engines` lists. May be given several times: they are "
            "compared.",
        ),
        click.option(
            "--size",
            type=click.Choice(SIZES),
            default="small",
            show_default=True,
            help="tiny: seconds; small: about two minutes; full: as published.",
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="NAME=VALUE",
            callback=_pairs,
            help="Value of a scenario's parameter; a list (none,btree) for one that is swept. May be given "
            "several times.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(0, 2**63 - 1),
            default=1,
            show_default=True,
            help="Seed of every random choice.",
        ),
        click.option(
            "--repeat",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Run everything so many times.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@_planning_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="one below loadstone-runs",
    help="New folder for the results.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Go on with the broken run in this folder; the other options as they were.",
)
@click.option("--storage", type=click.Path(path_type=Path), help="Where private servers keep their data.")
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="Setting of private servers, such as fsync=off. May be given several times.",
)
@click.option(
    "--keep", is_flag=True, help="Leave private servers running, and the schema loadstone in place."
)
@click.option("--replace", is_flag=True, help="Drop what others left in the schema loadstone.")
@click.option(
    "--ignore-space", is_flag=True, help="Begin bulk loads also where they are not expected to find room."
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="TARGET=N/h",
    help="What an hour of a target costs, such as pg18=2.50/h, in whatever currency: the report then says "
    "what imports and queries cost. TARGET is the target as given, or its id in the report. May be given "
    "several times.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="After loads in steps (index-import): load once more into partitions of the advised size, and show "
    "whether import then stays as fast.",
)
@click.option("--no-calibrate", is_flag=True, help="Do not measure our own ceiling before the run.")
@click.option(
    "--io",
    type=click.Choice(get_args(InOut)),
    default="auto",
    show_default=True,
    help="The kernel's interface that the driver uses.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on standard output.")
def run(**given: Any) -> None:
    """Run scenarios (by name, or by their folder) and write a report.

    `loadstone scenarios` lists those that are built in.

    \b
    loadstone run session-oltp
    loadstone run index-import --size full --target postgres://me@host/db --verify
    """  # noqa: D301 - click's mark of lines to be kept
    request = _request(given)
    verify = _verifier(request) if given["verify"] else None
    with terminal.listener(quiet=given["as_json"]) as listener:
        outcome = execute(request, listener)
        if verify is not None:
            outcome = verify(outcome, listener)
    sys.exit(int(_conclude(outcome, as_json=given["as_json"])))


def _verifier(request: Request) -> Callable[[Outcome, Listener], Outcome]:
    from loadstone import advising  # noqa: PLC0415 - its libraries take half a second to load

    advising.refuse_unverifiable(request)
    return partial(advising.verify, request)


def _request(given: dict[str, Any]) -> Request:
    return Request(
        scenarios=[find_scenario(name) for name in given["scenarios"] or [DEFAULT_SCENARIO]],
        targets=given["targets"] or [DEFAULT_TARGET],
        size=given["size"],
        overrides=given["overrides"],
        seed=given["seed"],
        repeats=given["repeat"],
        out=given.get("out"),
        resume=given.get("resume"),
        storage=given.get("storage"),
        settings=given.get("settings") or {},
        prices=given.get("prices") or (),
        keep=given.get("keep", False),
        replace=given.get("replace", False),
        ignore_space=given.get("ignore_space", False),
        calibrate=not given.get("no_calibrate", False),
        io=given.get("io", "auto"),
        command=["loadstone", *sys.argv[1:]],
    )


def _conclude(outcome: Outcome, *, as_json: bool) -> ExitCode:
    """Report what there is, however the run ended, and return the exit status."""
    code = outcome.exit_code
    try:
        _report(outcome.folder.path, as_json=as_json)
    except LoadstoneError as error:
        terminal.trouble(error)
        code = code or error.exit_code
    for farewell in outcome.farewells:
        terminal.say(farewell)
    if outcome.trouble is not None:
        terminal.trouble(outcome.trouble)
    return code


def _report(folder: Path, *, as_json: bool = False) -> None:
    # Their libraries take half a second to load: for those who need them.
    from loadstone.report import write_report  # noqa: PLC0415
    from loadstone.report.terminal import headline_json, summary_table  # noqa: PLC0415
    from loadstone.summary import write_summary  # noqa: PLC0415

    summary = write_summary(folder)
    report = write_report(folder)
    if as_json:
        click.echo(json.dumps(headline_json(summary), indent=1, sort_keys=True))
    else:
        terminal.show(summary_table(summary))
        terminal.say(f"Report: {report}")


@main.command()
@_planning_options
def plan(**given: Any) -> None:
    """Print what a run would do, as plan.json, and touch nothing."""
    request = _request(given)
    made = plan_of(request, parse_targets(request.targets))
    click.echo(plan_to_json(made), nl=False)
    terminal.say(f"about {estimated_seconds(made):.0f} s of measuring")


@main.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
def report(folders: tuple[Path, ...]) -> None:
    """Write summary.json and report.html of run folders anew."""
    for folder in folders:
        _report(folder)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN_DIR")
@click.option(
    "--variant",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="Only the loads of this variant, such as indexes=3.",
)
@click.option("--target", "-t", metavar="ID", help="Only the loads on this target, by its id in the report.")
def advise(folder: Path, variant: dict[str, str], target: str | None) -> None:
    """Print what partitions a run of loads in steps advises: DDL, with its reasons as comments."""
    from loadstone import advising  # noqa: PLC0415 - its libraries take half a second to load

    _out(advising.advice_text(folder, variant, target))


@main.command()
def scenarios() -> None:
    """List the built-in scenarios."""
    for name in builtin_scenarios():
        click.echo(f"{name:<16}{find_scenario(name).title}")


@main.command("generate")
@click.argument("name", metavar="SET")
@click.option("--rows", type=click.IntRange(1), default=1_000_000, show_default=True, help="How many rows.")
@click.option(
    "--first",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of the first row, counted from 0.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of every value.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="A choice that the set offers, such as table=union of types. May be given several times.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FILE_FORMATS),
    default="text",
    show_default=True,
    help="text, csv and binary are what COPY reads, of PostgreSQL and its relatives.",
)
@click.option(
    "--compress",
    type=click.Choice(COMPRESSIONS),
    default="none",
    show_default=True,
    help="Compress each file; in Parquet its pages.",
)
@click.option(
    "--step-rows",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    show_default="one file",
    help="A file for each N rows, numbered, in a folder.",
)
@click.option("--header", is_flag=True, help="Begin CSV with a line of the columns' names.")
@click.option(
    "--out",
    required=True,
    metavar="PATH",
    help="A new file, with --step-rows a new folder; - is standard output.",
)
@click.option("--overwrite", is_flag=True, help="Replace the file, or the folder when it holds nothing else.")
@click.option(
    "--threads",
    type=click.IntRange(0, 256),
    default=0,
    metavar="N",
    show_default="one a core",
    help="Threads that make rows.",
)
def generate_command(
    name: str, rows: int, first: int, seed: int, options: dict[str, str], **given: Any
) -> None:
    """Make rows of a built-in data set as files, the very rows that our own loads send.

    SET is `import` (one table of twelve columns, as phones are seen by cells) or `types` (a table of each
    type, with `--option table=…` and `--option distribution=…`).

    \b
    loadstone generate import --rows 1000000 --out import.tsv
    psql -c "\\copy test from import.tsv"
    loadstone generate import --step-rows 100000 --format csv --compress zstd --out steps/
    loadstone generate types --option table=text --out - | psql -c "\\copy table_text from stdin"
    """  # noqa: D301 - click's mark of lines to be kept
    files = Files(format=given.pop("format_"), **given)
    what = Rows(set=name, rows=rows, first=first, seed=seed, options=options)
    try:
        with Signals() as signals:
            account = generate(what, files, signals)
    except InterruptedRun as signalled:
        terminal.say(f"{signalled}: nothing incomplete is left")
        sys.exit(int(signalled.exit_code))
    if account["state"] == "reader_gone":
        end_as_by_sigpipe()
    terminal.say(
        f"{account['rows']:,} rows, {account['bytes']:,} bytes, {account['duration_ns'] / 1e9:.1f} s"
    )


@main.command("engines")
def list_engines() -> None:
    """List the engines: how targets name them, against what they were verified, and what they need."""
    engines = all_engines().values()
    wide = max(len(engine.name) for engine in engines) + 2
    for engine in engines:
        click.echo(f"{engine.name:<{wide}}{', '.join(engine.target_forms):<60}{engine.status}")
        if engine.needs:
            click.echo(f"{'':<{wide}}needs {engine.needs}")


@main.command("calibrate")
@click.option(
    "--clients",
    "-c",
    "clients",
    multiple=True,
    type=click.IntRange(1, 100_000),
    help="Number of clients; may be given several times.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=calibrate.SECONDS,
    show_default=True,
    help="Time of each measurement.",
)
@click.option("--json", "as_json", is_flag=True, help="Print calibration.json on standard output.")
def calibrate_command(clients: tuple[int, ...], seconds: float, *, as_json: bool) -> None:
    """Measure our own ceiling on this machine, against a built-in server that answers at once."""
    wanted = [(mode, number) for mode in calibrate.MODES for number in clients or calibrate.CLIENTS]
    terminal.say(f"{len(wanted)} measurements of {seconds:g} s …")
    try:
        with Signals() as signals:
            found = calibrate.calibrate_for(wanted, signals, seconds)
    except InterruptedRun as signalled:
        terminal.say(str(signalled))
        sys.exit(int(signalled.exit_code))
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        terminal.show_calibration(found)


class Foreign(click.Command):
    """A command whose arguments are another program's: they are handed on as they are, `--` and all."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Understand nothing."""
        ctx.params["arguments"] = tuple(args)
        return []


@main.command("pgbench", cls=Foreign)
def pgbench_command(arguments: tuple[str, ...]) -> None:
    """Run pgbench's scripts with pgbench's options: `loadstone pgbench --help` lists them."""
    sys.exit(pgbench.main(arguments, _out, partial(click.echo, nl=False, err=True)))


@main.command("tsbs", cls=Foreign)
def tsbs_command(arguments: tuple[str, ...]) -> None:
    """Make and load TSBS's data, make and run its queries: `loadstone tsbs --help` lists the commands."""
    sys.exit(tsbs.main(arguments, _out, partial(click.echo, nl=False, err=True)))


def _out(text: str) -> None:
    """Write results: a full disk or a reader that has gone is no bug of ours."""
    try:
        click.echo(text, nl=False)
    except OSError as error:
        # What Python still holds must not complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise RunFailedError(
            f"the results could not be written to standard output: {error.strerror}",
            "Send them where there is room, to a reader that reads to the end.",
        ) from error
