"""`loadstone slo`: the largest load at which a latency is kept."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.comparisons import Percent, drawn, write_form
from loadstone.cli.group import pairs
from loadstone.model import SIZES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import ExitCode
    from loadstone.slo.experiment import SloSearch
    from loadstone.slo.limits import Limit

FORMATS = ("text", "markdown", "json")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:/s)?")


def _limits(_: click.Context, option: click.Parameter, texts: Sequence[str]) -> tuple[Limit, ...]:
    from loadstone.slo.limits import limit

    try:
        return tuple(limit(text) for text in texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from error


def _rate(_: click.Context, option: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    if found is None or not float(found[1]):
        message = f"{text!r} is not a rate above 0, such as 20000/s"
        raise click.BadParameter(message, param=option)
    return float(found[1])


@click.command("slo")
@click.argument("scenario")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    callback=_limits,
    metavar="pN=TIME",
    help="Limit to keep, such as p99=20ms: of all transactions that should have begun, 99 % are done within "
    "20 ms. May be given several times.",
)
@click.option("--errors", type=Percent(), help="Largest share of transactions that may fail, such as 0.1%.")
@click.option(
    "--target", metavar="TARGET", default="pg", show_default=True, help="pg, pg10 … pg18, or pg:/path/to/bin."
)
@click.option("--phase", metavar="ID", help="Phase of scripts, if the scenario has several.")
@click.option(
    "--size", type=click.Choice(SIZES), default="small", show_default=True, help="Size of the scenario."
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="Parameter of the scenario. May be given several times.",
)
@click.option(
    "--setting",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=pairs,
    help="Setting of the server. May be given several times.",
)
@click.option(
    "--require",
    "required",
    callback=_rate,
    metavar="RATE",
    help="Exit with 4 if this load, such as 20000/s, does not keep the limits, with 5 if it is not decided.",
)
@click.option(
    "--window",
    type=click.FloatRange(0.5, 3600),
    default=30,
    show_default=True,
    help="Least length of a whole trial in seconds.",
)
@click.option(
    "--max-trials", "most", type=click.IntRange(8, 200), default=25, show_default=True, help="Most trials."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    show_default=True,
    help="Seed of every random choice.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="a new one in loadstone-runs",
    help="New folder for the results.",
)
@click.option("--storage", type=click.Path(path_type=Path), help="Folder for the server's data.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What is printed on standard output.",
)
@click.option(
    "--allow-shell",
    is_flag=True,
    help="Allow scripts of scenarios that are not built in to run commands on this machine.",
)
def command(**given: Any) -> None:
    """Find the largest load at which latencies keep their limits.

    Each trial is a fresh private server on a fresh copy of the loaded data, at a Poisson load.

    \b
    loadstone slo session-oltp --phase log-in --limit p99=20ms
    loadstone slo session-oltp --phase log-in --limit p99=20ms --limit p99.9=100ms --require 5000/s
    """  # noqa: D301 - click's mark of lines to be kept
    from loadstone.cli import terminal
    from loadstone.slo.setup import prepare

    search = prepare(given, [*sys.argv[1:]], terminal.say)
    search.run()
    sys.exit(int(_conclude(search, given["form"])))


def _conclude(search: SloSearch, form: str) -> ExitCode:
    """Print what there is, however the search ended, and return the exit status."""
    import msgspec

    from loadstone.cli import terminal
    from loadstone.cli.output import write_out
    from loadstone.results.json_files import to_json
    from loadstone.slo import texts
    from loadstone.slo.page import page

    document = search.document
    forms = {
        "text": lambda: drawn(texts.screen(document)),
        "markdown": lambda: texts.markdown(document),
        "json": lambda: to_json(msgspec.to_builtins(document), indent=1) + "\n",
    }
    write_form(search.folder / "slo.md", forms["markdown"]())
    write_form(search.folder / "slo.html", page(document, terminal.say))
    write_out(forms[form]())
    terminal.say(f"{texts.answer(document)}; {search.folder}")
    if search.trouble is not None:
        terminal.trouble(search.trouble)
    return search.exit_code or search.required()
