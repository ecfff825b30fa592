"""`loadstone advise`: what a run advises, on partitions and on capacity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.group import pairs
from loadstone.cli.output import write_out

if TYPE_CHECKING:
    from collections.abc import Callable


class _Advise(click.Group):
    """Without the name of a subject, the advice is on partitions."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the usual subject in front where none is named."""
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["partitions", *args])


def _choice(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that choose among the loads of a run."""
    options = [
        click.option(
            "--variant",
            multiple=True,
            metavar="NAME=VALUE",
            callback=pairs,
            help="Only the loads of this variant, such as indexes=3.",
        ),
        click.option(
            "--target", "-t", metavar="ID", help="Only the loads on this target, by its id in the report."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group("advise", cls=_Advise, subcommand_metavar="[SUBJECT] RUN_DIR [ARGS]...")
def command() -> None:
    """Print advice on partitions or capacity.

    `loadstone advise RUN_DIR` is `loadstone advise partitions RUN_DIR`.
    """


@command.command("partitions")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN_DIR")
@_choice
def partitions(folder: Path, variant: dict[str, str], target: str | None) -> None:
    """Print advice on partitions, as DDL.

    The advice comes from a run with loads in steps. The reasons are comments.
    """
    from loadstone import advice

    write_out(advice.advice_text(folder, variant, target))


@command.command("capacity")
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN_DIR")
@click.option("--devices", type=click.IntRange(1, 10**12), required=True, help="Devices that report.")
@click.option(
    "--interval",
    metavar="TIME",
    required=True,
    help="Time between two reports of a device, such as 10s or 5m.",
)
@click.option(
    "--retention",
    metavar="TIME",
    required=True,
    help="How long rows are kept, such as 90d; a number is days.",
)
@click.option(
    "--rows-per-report", type=click.IntRange(1, 10**6), default=1, show_default=True, help="Rows of a report."
)
@click.option("--phase", metavar="ID", help="Only the loads of this phase.")
@_choice
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def capacity(folder: Path, as_json: bool, **given: Any) -> None:  # noqa: FBT001 - a flag
    """Print how many servers, how much disk and which partitions a number of devices needs.

    Every figure comes from what the run measured; how far it is extrapolated, and what was not measured, is
    part of the answer.
    """
    import msgspec

    from loadstone.capacity import answer, texts
    from loadstone.capacity.documents import Wanted

    wanted = Wanted(
        devices=given["devices"],
        interval_s=answer.span_s(given["interval"], "s"),
        rows_per_report=given["rows_per_report"],
        retention_s=answer.span_s(given["retention"], "d"),
    )
    found = answer.answer(folder, wanted, given["variant"], given["target"], given["phase"])
    write_out(
        f"{msgspec.json.format(msgspec.json.encode(found)).decode()}\n" if as_json else texts.text(found)
    )
