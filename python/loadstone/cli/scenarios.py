"""`loadstone scenarios`: the list of the built-in ones, and the format of one's own."""

from __future__ import annotations

import json

import click


@click.command("scenarios")
@click.option("--schema", is_flag=True, help="Print the JSON schema of scenario.toml instead, for editors.")
def command(*, schema: bool) -> None:
    """List the built-in scenarios."""
    if schema:
        from loadstone.scenario.schema import scenario_schema

        click.echo(json.dumps(scenario_schema(), ensure_ascii=False, indent=1))
        return
    from loadstone.scenario.builtin import builtin_titles

    for name, title in builtin_titles().items():
        click.echo(f"{name:<16}{title}")
