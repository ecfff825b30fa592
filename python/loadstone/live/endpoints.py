"""What is served of a run while it goes on: the page of `--live`, the metrics of `--openmetrics`."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.live.figures import LiveFigures

_PORTS = range(1, 2**16)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """`--live`, `--live-port`, `--openmetrics`, as given."""

    page: bool = False
    port: int | None = None
    """Of the page; None: any that is free."""
    openmetrics: str | None = None

    @property
    def given(self) -> bool:
        """Whether anything is to be served."""
        return self.page or self.openmetrics is not None

    def check(self) -> None:
        """Raise LoadstoneError for a port without a page, or one that does not exist."""
        if self.port is not None and not self.page:
            raise LoadstoneError("--live-port is the port of the page of --live", "Add --live, or remove it.")
        if self.port is not None and self.port not in _PORTS:
            raise LoadstoneError(
                f"--live-port {self.port} is not a port",
                f"Use 1 to {_PORTS[-1]}, or none for any that is free.",
            )


@contextmanager
def serving(options: LiveOptions, say: Callable[[str], None]) -> Iterator[LiveFigures | None]:
    """Serve what was requested inside the context; None where nothing was. `say` gets the addresses.

    Raises LoadstoneError before anything is touched, such as for a port that is taken.
    """
    options.check()
    if not options.given:
        yield None
        return
    from loadstone.live.figures import LiveFigures  # noqa: PLC0415 - few runs need it

    figures = LiveFigures()
    with ExitStack() as stack:
        if options.openmetrics is not None:
            from loadstone.live import openmetrics  # noqa: PLC0415 - as above

            url = stack.enter_context(openmetrics.serving(options.openmetrics, figures))
            say(f"metrics of this run: {url}")
        if options.page:
            from loadstone.live import page  # noqa: PLC0415 - as above

            url = stack.enter_context(page.serving(options.port or 0, figures))
            say(f"this run in a browser: {url}")
        yield figures
