"""Options that commands share which run scenarios: the scenario's size and parameters, servers, results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.group import pairs
from loadstone.model import SIZES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FORMATS = ("text", "markdown", "json")


def option_once(name: str, *, default: str | None = None, **rest: Any) -> Decorator:
    """Return an option that is refused if it is given twice; click would take the last one."""

    def only(_: click.Context, __: click.Parameter, values: Sequence[str]) -> str | None:
        if len(values) > 1:
            raise click.BadParameter(f"is given {len(values)} times, but there can be only one")
        return values[0] if values else None

    shown: dict[str, Any] = {"default": (default,), "show_default": True} if default else {}
    return click.option(name, multiple=True, callback=only, **shown | rest)


private_target_option = option_once(
    "--target", metavar="TARGET", default="pg", help="Private server: pg, pg10 … pg18, or pg:/path/to/bin."
)
phase_option = option_once("--phase", metavar="ID", help="Phase of scripts, if the scenario has several.")
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="a new one in loadstone-runs",
    help="New folder for the results.",
)
allow_shell_option = click.option(
    "--allow-shell",
    is_flag=True,
    help="Allow scripts of scenarios that are not built in to run commands on this machine "
    "(\\shell and \\setshell).",
)


def format_option(forms: Sequence[str]) -> Decorator:
    """Return `--format`, as `form`."""
    return click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        default="text",
        show_default=True,
        help="What is printed on standard output.",
    )


form_option = format_option(FORMATS)


def size_option(meaning: str = "Size of the scenario.") -> Decorator:
    """Return `--size`."""
    return click.option("--size", type=click.Choice(SIZES), default="small", show_default=True, help=meaning)


def set_option(meaning: str = "Parameter of the scenario. May be given several times.") -> Decorator:
    """Return `--set NAME=VALUE`, as a mapping `overrides`."""
    return click.option(
        "--set", "overrides", multiple=True, metavar="NAME=VALUE", callback=pairs, help=meaning
    )


def setting_option(meaning: str = "Setting of the server. May be given several times.") -> Decorator:
    """Return `--setting NAME=VALUE`, as a mapping `settings`."""
    return click.option(
        "--setting", "settings", multiple=True, metavar="NAME=VALUE", callback=pairs, help=meaning
    )


def seed_option(meaning: str = "Seed of every random choice.") -> Decorator:
    """Return `--seed`."""
    return click.option(
        "--seed", type=click.IntRange(0, 2**63 - 1), default=1, show_default=True, help=meaning
    )


def storage_option(meaning: str = "Folder for the server's data.") -> Decorator:
    """Return `--storage`."""
    return click.option("--storage", type=click.Path(path_type=Path), help=meaning)
