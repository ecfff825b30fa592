"""The options of `--watch`: what watches the machine of a server that is another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable


def _refuse_watch(context: click.Context, option: click.Parameter, urls: tuple[str, ...]) -> None:
    del context, option
    if urls:
        raise LoadstoneError(
            "--watch is for a server on another machine, and the servers of trials are private ones on this "
            "machine",
            "Remove it: the run folder of each trial has this machine's CPU, memory, disks and network. "
            "`loadstone pgbench --slo` searches on your own server, and takes --watch.",
        )


no_watch_option = click.option(
    "--watch", multiple=True, hidden=True, expose_value=False, callback=_refuse_watch
)
"""For experiments on private servers: refused with the reason."""


def watch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--watch` and its helpers."""
    options = [
        click.option(
            "--watch",
            multiple=True,
            metavar="[TARGET=]URL",
            help="Watch the machine of a target's server: a node_exporter or postgres_exporter at http://… "
            "or https://…, or ssh://[USER@]HOST[:PORT]. TARGET is the target as given, or its id in the "
            "report. May be given several times.",
        ),
        click.option(
            "--watch-token-file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="File with the bearer token for exporters; LOADSTONE_WATCH_TOKEN otherwise. Basic auth: "
            "the user in the URL, LOADSTONE_WATCH_PASSWORD or ~/.netrc.",
        ),
        click.option(
            "--watch-ca",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Certificate authority to trust for exporters over HTTPS (PEM); the system's otherwise.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command
