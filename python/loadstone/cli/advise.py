"""`loadstone advise`: what partitions a run of loads in steps advises."""

from __future__ import annotations

from pathlib import Path

import click

from loadstone.cli.group import pairs
from loadstone.cli.output import write_out


@click.command("advise")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN_DIR")
@click.option(
    "--variant",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="Only the loads of this variant, such as indexes=3.",
)
@click.option("--target", "-t", metavar="ID", help="Only the loads on this target, by its id in the report.")
def command(folder: Path, variant: dict[str, str], target: str | None) -> None:
    """Print advice on partitions, as DDL.

    The advice comes from a run with loads in steps. The reasons are comments.
    """
    from loadstone import advice

    write_out(advice.advice_text(folder, variant, target))
