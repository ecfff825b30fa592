"""`loadstone slo`: the largest load at which a latency is kept."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from loadstone.cli.comparisons import Percent, drawn, write_form
from loadstone.cli.experiments import (
    allow_shell_option,
    form_option,
    out_option,
    phase_option,
    private_target_option,
    seed_option,
    set_option,
    setting_option,
    size_option,
    storage_option,
)
from loadstone.cli.live import conclude, following, live_options
from loadstone.cli.watch_options import no_watch_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.errors import ExitCode
    from loadstone.slo.experiment import SloSearch
    from loadstone.slo.limits import Limit


def _limits(_: click.Context, option: click.Parameter, texts: Sequence[str]) -> tuple[Limit, ...]:
    from loadstone.slo.limits import limit

    try:
        return tuple(limit(text) for text in texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from error


def _rate(_: click.Context, option: click.Parameter, text: str | None) -> float | None:
    from loadstone.slo.limits import rate

    if text is None:
        return None
    try:
        return rate(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from error


@click.command("slo")
@click.argument("scenario")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    callback=_limits,
    metavar="pN=TIME",
    help="Needed: a limit to keep, such as p99=20ms: of all transactions that should have begun, 99 % are "
    "done within 20 ms. May be given several times.",
)
@click.option(
    "--errors", type=Percent("0.1%"), help="Largest share of transactions that may fail, such as 0.1%."
)
@private_target_option
@phase_option
@size_option()
@set_option()
@setting_option()
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
    help="Least length of a whole trial in seconds; longer where a percentile like p99.9 needs it.",
)
@click.option(
    "--max-trials",
    "most",
    type=click.IntRange(8, 200),
    default=25,
    show_default=True,
    help="Largest number of trials.",
)
@seed_option()
@out_option
@storage_option()
@form_option
@live_options
@no_watch_option
@allow_shell_option
def command(**given: Any) -> None:
    """Find the largest load at which latencies keep their limits.

    Each trial is a fresh private server on a fresh copy of the loaded data; transactions start at random
    times (Poisson), whatever the server does. A search takes 10 to 25 trials, about 15 minutes: it says so
    before it starts. For a server of your own: loadstone pgbench --slo.

    \b
    loadstone slo session-oltp --phase log-in --limit p99=20ms
    loadstone slo session-oltp --phase log-in --limit p99=20ms --limit p99.9=100ms --require 5000/s
    """  # noqa: D301 - click's mark of lines to be kept
    from loadstone.cli import terminal
    from loadstone.slo.setup import prepare

    with following(given, terminal.say) as figures:
        search = prepare(given, [*sys.argv[1:]], terminal.say, figures)
        search.run()
        code = _conclude(search, given["form"])
        conclude(figures, code)
    sys.exit(int(code))


def _conclude(search: SloSearch, form: str) -> ExitCode:
    """Print what there is, however the search ended, and return the exit status."""
    from loadstone.cli import terminal
    from loadstone.cli.output import write_out
    from loadstone.experiment.documents import text_of
    from loadstone.slo import texts
    from loadstone.slo.page import page

    document = search.document
    forms = {
        "text": lambda: drawn(texts.screen(document)),
        "markdown": lambda: texts.markdown(document),
        "json": lambda: text_of(document),
    }
    folder = search.folder
    if folder is not None:
        write_form(folder / "slo.md", forms["markdown"]())
        write_form(folder / "slo.html", page(document, terminal.say))
    write_out(forms[form]())
    terminal.say(texts.answer(document))
    if folder is not None:
        terminal.say(f"Results: {folder}")
    if search.trouble is not None:
        terminal.trouble(search.trouble)
    return search.exit_code or search.required()
