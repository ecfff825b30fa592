"""The options `--live` and `--openmetrics`: figures while a run goes on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from loadstone.live.endpoints import LiveOptions
from loadstone.live.endpoints import serving as served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.errors import ExitCode
    from loadstone.live.figures import LiveFigures
    from loadstone.run import Listener, Outcome


def live_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options."""
    options = [
        click.option(
            "--live",
            is_flag=True,
            help="Show the run in a browser while it goes on: prints the address of a page on this machine.",
        ),
        click.option(
            "--live-port", type=click.IntRange(1, 2**16 - 1), metavar="PORT", help="Port of that page."
        ),
        click.option(
            "--openmetrics",
            metavar="[HOST:]PORT",
            help="Serve rates, latencies and errors for Prometheus while the run goes on; with a port alone, "
            "on this machine only.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


class Live:
    """What is served of a run: `listener` takes note, `end` has the last word."""

    def __init__(self, listener: Listener, end: Callable[[str], None]) -> None:
        """Say how the run ended with `end`."""
        self.listener = listener
        self._end = end

    def ended(self, outcome: Outcome) -> None:
        """Keep how the run ended."""
        words = outcome.trouble.message if outcome.trouble is not None else "complete"
        self._end(f"{words} (exit code {int(outcome.exit_code)}, results in {outcome.folder.path})")


def live_options_of(given: dict[str, Any]) -> LiveOptions:
    """Return the options as given."""
    return LiveOptions(given["live"], given["live_port"], given["openmetrics"])


@contextmanager
def following(given: dict[str, Any], say: Callable[[str], None]) -> Iterator[LiveFigures | None]:
    """Serve the trials of an experiment inside the context; None where nothing was requested.

    Raises LoadstoneError before anything is touched.
    """
    with served(live_options_of(given), say) as figures:
        yield figures


def conclude(figures: LiveFigures | None, code: ExitCode) -> None:
    """Say on the page how all ended."""
    if figures is not None:
        figures.end(f"{'complete' if not code else 'not complete'} (exit code {int(code)})")


@contextmanager
def serving(given: dict[str, Any], listener: Listener) -> Iterator[Live]:
    """Serve what was requested inside the context. Raises LoadstoneError before anything is touched."""
    with served(live_options_of(given), listener.said) as figures:
        if figures is None:
            yield Live(listener, lambda _: None)
            return
        from loadstone.live.figures import Listeners

        yield Live(Listeners(listener, figures), figures.end)
