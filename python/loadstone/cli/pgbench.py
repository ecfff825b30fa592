"""`loadstone pgbench`: the arguments are pgbench's."""

from __future__ import annotations

import sys

import click

from loadstone.cli.group import Foreign
from loadstone.cli.output import write_notice, write_out


@click.command("pgbench", cls=Foreign)
def command(arguments: tuple[str, ...]) -> None:
    """Run pgbench's scripts, with pgbench's options."""
    from loadstone.personalities import pgbench

    sys.exit(pgbench.main(arguments, write_out, write_notice))
