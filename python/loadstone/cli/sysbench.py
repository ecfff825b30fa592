"""`loadstone sysbench`: the arguments are sysbench's."""

from __future__ import annotations

import sys

import click

from loadstone.cli.group import Foreign
from loadstone.cli.output import write_notice, write_out


@click.command("sysbench", cls=Foreign)
def command(arguments: tuple[str, ...]) -> None:
    """Run sysbench's scripts, with sysbench's options."""
    from loadstone.personalities import sysbench

    sys.exit(sysbench.main(arguments, write_out, write_notice, _write_text))


def _write_text(text: str) -> None:
    # The help has names of options that look like passwords.
    click.echo(text, nl=False)
