"""`loadstone ab`: two sides in alternating trials until the answer is known."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    refuse_place,
    visible_document,
    write_form,
)
from loadstone.cli.experiments import (
    allow_shell_option,
    option_once,
    out_option,
    seed_option,
    set_option,
    setting_option,
    size_option,
    storage_option,
)
from loadstone.cli.group import pairs
from loadstone.cli.live import conclude, following, live_options
from loadstone.cli.watch_options import no_watch_option
from loadstone.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.ab.experiment import Experiment

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|)")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_FEWEST_BLOCKS = 2
_MOST_BLOCKS = 1000


def _span(_: click.Context, option: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    found = _SPAN.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if not seconds:
        message = f"{text!r} is not a time above 0, such as 90s, 45m or 2h"
        raise click.BadParameter(message, param=option)
    return seconds


def _looks(_: click.Context, option: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        found = ()
    in_order = all(one < other for one, other in itertools.pairwise(found))
    if not found or found[0] < _FEWEST_BLOCKS or found[-1] > _MOST_BLOCKS or not in_order:
        message = (
            f"{text!r} is not a rising list of {_FEWEST_BLOCKS} to {_MOST_BLOCKS} blocks, such as 6,10,20"
        )
        raise click.BadParameter(message, param=option)
    return found


def _arm_options(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def add(command: Callable[..., None]) -> Callable[..., None]:
        for suffix, help_text in (
            ("set", f"Parameter of the scenario for {name.upper()} alone. May be given several times."),
            ("setting", f"Setting of {name.upper()}'s server. May be given several times."),
        ):
            command = click.option(
                f"--{name}-{suffix}",
                f"{name}_{suffix}",
                multiple=True,
                metavar="NAME=VALUE",
                callback=pairs,
                help=help_text,
            )(command)
        return command

    return add


@click.command("ab")
@click.argument("scenario")
@option_once("--a", metavar="TARGET", default="pg", help="Side A: pg, pg10 … pg18, or pg:/path/to/bin.")
@option_once("--b", metavar="TARGET", show_default="as --a", help="Side B, which is compared with A.")
@_arm_options("b")
@_arm_options("a")
@size_option()
@set_option("Parameter of the scenario for both sides. May be given several times.")
@setting_option("Setting of both servers. May be given several times.")
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="ID",
    show_default="all scripts and queries, or all loads if there are none",
    help="Measure this phase only. May be given several times.",
)
@click.option(
    "--aa/--no-aa",
    "twin",
    default=None,
    show_default="--aa, unless the history has a noise floor",
    help="With or without a side A', which is set up like A and must not differ from it.",
)
@click.option(
    "--max-blocks",
    type=click.IntRange(_FEWEST_BLOCKS, _MOST_BLOCKS),
    default=30,
    show_default=True,
    help="Largest number of blocks; a block is one trial of each side.",
)
@click.option(
    "--looks",
    callback=_looks,
    metavar="N,N…",
    show_default="6,8,10,12,16,20,24,30",
    help="Blocks after which Loadstone looks whether all is decided.",
)
@click.option(
    "--max-time",
    callback=_span,
    metavar="TIME",
    help="Start no block that would end later, such as 45m or 2h.",
)
@matters_option
@seed_option("Seed of the orders, and of every random choice of the scenario.")
@out_option
@storage_option("Folder for the servers' data.")
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    default="history.jsonl",
    show_default=True,
    metavar="FILE",
    help="A history, which may have the noise floor of this machine.",
)
@form_option
@click.option(
    "--save",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    callback=files_given,
    metavar="FILE",
    help="Also write a file, in the format that its name ends in: .html, .md, .json, "
    ".xml (JUnit), .txt. May be given several times.",
)
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
@live_options
@no_watch_option
@allow_shell_option
def command(**given: Any) -> None:
    """Find out whether B is slower than A: trials of both alternate until the answer is known.

    Each trial is a fresh private server on a fresh copy of its side's data. Only one server runs at a time.
    How long it may take is printed before it starts. For servers of your own: loadstone run --repeat with
    both as targets, then loadstone compare.

    \b
    loadstone ab iot-feed --b-setting wal_compression=on
    loadstone ab session-oltp --a pg:/opt/base/bin --b pg:/opt/changed/bin --fail-on worse
    """  # noqa: D301 - click's mark of lines to be kept
    from loadstone.ab.setup import prepare
    from loadstone.cli import terminal

    _read_before(given)
    with following(given, terminal.say) as figures:
        experiment = prepare(given, [*sys.argv[1:]], terminal.say, figures)
        experiment.run()
        code = _conclude(experiment, given)
        conclude(figures, code)
    sys.exit(int(code))


def _read_before(given: dict[str, Any]) -> None:
    """Read the accept list and check the files to be written: trials take hours, and these are used after.

    Raises LoadstoneError.
    """
    from loadstone.compare.gate import read_accepted

    if given["known"] is not None:
        given["known"] = read_accepted(given["known"])
    made = None if given["out"] is None else given["out"].absolute()
    for path in given["files"]:
        if path.absolute().parent != made:
            refuse_place(path)


def _conclude(experiment: Experiment, given: dict[str, Any]) -> ExitCode:
    """Write every output of what there is, however the experiment ended, and return the exit status."""
    from loadstone.ab.texts import verdict_line
    from loadstone.cli import terminal
    from loadstone.cli.output import write_out

    terminal.say(verdict_line(experiment))
    terminal.say(f"Results: {experiment.folder}")
    code = experiment.exit_code
    if experiment.document.comparison is not None:
        failed = _output(experiment, given)
        code = code or failed
    elif given["form"] == "json":
        write_out((experiment.folder / "ab.json").read_text())
    if not code and experiment.document.comparison is None and "undecided" in given["fail_on"]:
        code = ExitCode.UNDECIDED
    if experiment.trouble is not None:
        terminal.trouble(experiment.trouble)
    return code


def _output(experiment: Experiment, given: dict[str, Any]) -> ExitCode:
    import msgspec

    from loadstone.ab.listing import trials
    from loadstone.ab.outcome import compare_document, typical_pair
    from loadstone.cli.output import write_out
    from loadstone.compare.gate import exit_code
    from loadstone.results.json_files import to_json
    from loadstone.visible import visible_tree

    document = compare_document(experiment)
    if given["known"] is not None:
        accept_known(document, given["known"])
    document = visible_document(document)
    forms = forms_of(
        document, [typical_pair(experiment)], every=given["every"], listings=[trials(experiment)]
    )
    forms["json"] = lambda: to_json(visible_tree(msgspec.to_builtins(experiment.document)), indent=1) + "\n"
    for path in (experiment.folder / "ab.html", *given["files"]):
        write_form(path, forms[SUFFIXES[path.suffix.lower()]]())
    write_out(forms[given["form"]]())
    return exit_code(document, given["fail_on"])
