"""Ctrl-C and SIGTERM: the first ends the run in order, the second at once."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Self

from loadstone.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


class InterruptedRun(KeyboardInterrupt):  # noqa: N818 - it is the interpreter's own, with a number
    """A signal ended the run; psycopg cancels the statement under way when it meets one."""

    def __init__(self, signum: int) -> None:
        """Remember which signal it was."""
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum


class Signals:
    """While entered, signals stop the drive that is under way, or raise `InterruptedRun`."""

    def __init__(self) -> None:
        """Nothing is installed before the context is entered."""
        self.received: int | None = None
        self._stop: Callable[[], None] | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        """Put the former handlers back."""
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]

    def during(self, stop: Callable[[], None] | None) -> None:
        """Name what the first signal shall call instead of raising; None when nothing is under way."""
        self._stop = stop

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that the received signal asks for."""
        return ExitCode.TERMINATED if self.received == signal.SIGTERM else ExitCode.INTERRUPTED

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        first, self.received = self.received is None, signum
        if first and self._stop is not None:
            self._stop()
            return
        raise InterruptedRun(signum)
