"""The options of `--watch`: what watches the machine of a server that is another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable


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
