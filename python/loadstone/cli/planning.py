"""What `run` and `plan` have in common: their options, and the request made of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from loadstone.cli.experiments import allow_shell_option, seed_option, set_option, size_option
from loadstone.errors import ShellRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.cli.experiments import Decorator
    from loadstone.run import Request
    from loadstone.watch.watchers import WatchOptions

T = TypeVar("T")

_FIELDS = {"repeat": "repeats", "no_calibrate": "calibrate"}
"""Options whose fields have other names."""
DEFAULT_SCENARIO = "iot-feed"
DEFAULT_TARGET = "pg"


def planning_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say what is planned."""
    options: list[Decorator] = [
        click.argument("scenarios", nargs=-1),
        click.option(
            "--target",
            "-t",
            "targets",
            multiple=True,
            metavar="URL",
            help="Server to measure: pg (a private PostgreSQL, the default), pg10 … pg18, pg:/path/to/bin, "
            "postgres://…, or another URL that `loadstone engines` lists. ?setting.NAME=VALUE at its end is "
            "a setting of this target alone. May be given several times, to compare the servers.",
        ),
        size_option("tiny: seconds; small: about two minutes; full: as published."),
        set_option(
            "Value of a scenario's parameter; a list (none,btree) for a swept parameter. May be given "
            "several times."
        ),
        seed_option(),
        click.option(
            "--repeat",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Number of times to run everything.",
        ),
        allow_shell_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def with_consent(request: Request, work: Callable[[Request], T]) -> T:
    """Do something with the request; ask on a terminal whether a scenario may run commands."""
    try:
        return work(request)
    except ShellRefusedError as refused:
        if not _is_allowed(refused):
            raise
    return work(replace(request, allow_shell=True))


def _is_allowed(refused: ShellRefusedError) -> bool:
    streams = (sys.stdin, sys.stderr)
    if not all(stream is not None and stream.isatty() for stream in streams):
        return False
    from loadstone.cli import terminal

    terminal.say(f"{refused.message}")
    return click.confirm("Run it?", default=False, err=True)


def fields_given() -> frozenset[str]:
    """Return the fields of the request that the command line itself gives."""
    context = click.get_current_context()
    return frozenset(
        _FIELDS.get(name, name)
        for name in context.params
        if context.get_parameter_source(name) not in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    )


def _watch_options(given: dict[str, Any]) -> WatchOptions:
    from loadstone.watch.watchers import WatchOptions

    return WatchOptions(given.get("watch") or (), given.get("watch_token_file"), given.get("watch_ca"))


def request_of(given: dict[str, Any]) -> Request:
    """Make the request of the options of `plan` or `run`."""
    from loadstone.run import Request
    from loadstone.scenario.scenario import find_scenario

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
        allow_shell=given.get("allow_shell", False),
        ignore_space=given.get("ignore_space", False),
        calibrate=not given.get("no_calibrate", False),
        io=given.get("io", "auto"),
        hosts=given.get("hosts"),
        verify=given.get("verify", False),
        watch=_watch_options(given),
        command=["loadstone", *sys.argv[1:]],
    )
