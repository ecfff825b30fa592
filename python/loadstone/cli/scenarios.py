"""`loadstone scenarios`: the list of the built-in ones."""

from __future__ import annotations

import click


@click.command("scenarios")
def command() -> None:
    """List the built-in scenarios."""
    from loadstone.scenario.builtin import builtin_titles

    for name, title in builtin_titles().items():
        click.echo(f"{name:<16}{title}")
