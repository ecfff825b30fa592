"""`loadstone engines`: the list of them."""

from __future__ import annotations

import click


@click.command("engines")
def command() -> None:
    """List the engines: URLs, tested servers, requirements."""
    from loadstone.engines import all_engines

    engines = all_engines().values()
    wide = max(len(engine.name) for engine in engines) + 2
    for engine in engines:
        click.echo(f"{engine.name:<{wide}}{', '.join(engine.target_forms):<60}{engine.status}")
        if engine.needs:
            click.echo(f"{'':<{wide}}needs {engine.needs}")
