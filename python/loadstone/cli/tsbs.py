"""`loadstone tsbs`: the arguments are TSBS's."""

from __future__ import annotations

import sys

import click

from loadstone.cli.group import Foreign
from loadstone.cli.output import write_notice, write_out


@click.command("tsbs", cls=Foreign)
def command(arguments: tuple[str, ...]) -> None:
    """Use TSBS's command lines: data, load, queries."""
    from loadstone.personalities import tsbs

    sys.exit(tsbs.main(arguments, write_out, write_notice))
