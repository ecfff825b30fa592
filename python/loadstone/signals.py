"""Ctrl-C and SIGTERM: the first ends the run in order, the second at once."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

from loadstone.errors import ExitCode, ResultsLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

T = TypeVar("T")
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedRun(KeyboardInterrupt):
    """A signal ended the run; psycopg cancels the statement in flight when it meets one."""

    def __init__(self, signum: int) -> None:
        """Remember which signal it was."""
        super().__init__(f"stopped by {signal.Signals(signum).name}")
        self.signum = signum

    @property
    def exit_code(self) -> ExitCode:
        """The exit status that the signal asks for; a terminal that goes away is like SIGTERM."""
        return ExitCode.INTERRUPTED if self.signum == signal.SIGINT else ExitCode.TERMINATED


def end_as_by_sigpipe() -> None:
    """End as every other program of a pipe does whose reader has had enough."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    # Whoever started us may have left it blocked, and then it would only wait.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPIPE})
    os.kill(os.getpid(), signal.SIGPIPE)


class Signals:
    """While entered, signals stop the drive that is running, or raise `InterruptedRun`."""

    def __init__(self) -> None:
        """Nothing is installed before the context is entered."""
        self.received: int | None = None
        """The first signal that came."""
        self.impatient = False
        """Whether a second one came: nothing is worth waiting for any more."""
        self._stop: Callable[[], None] | None = None
        self._ending = False
        """Whether what was opened is being ended."""
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        for signum in _ENDING:
            # nohup has SIGHUP ignored, and means it.
            if signum == signal.SIGHUP and signal.getsignal(signum) == signal.SIG_IGN:
                continue
            self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Put the former handlers back; raises InterruptedRun when results are lost with the terminal."""
        for signum, handler in self._before.items():
            signal.signal(signum, handler)  # type: ignore[arg-type]
        if self.received == signal.SIGHUP and isinstance(error, ResultsLostError):
            raise InterruptedRun(self.received) from error

    def during(self, stop: Callable[[], None] | None) -> None:
        """Name what the first signal shall call instead of raising; None when nothing is running.

        It is called at once where a signal has come already: what the handler raised then was lost, in a
        callback whose exceptions are ignored or in a library that raises an error of its own instead.
        """
        self._stop = stop
        if stop is not None and self.received is not None:
            stop()

    @contextmanager
    def calling(self, stop: Callable[[], None]) -> Iterator[None]:
        """While entered, the first signal calls `stop` instead of raising."""
        self.during(stop)
        try:
            yield
        finally:
            self.during(None)

    @contextmanager
    def closing(self, resource: AbstractContextManager[T]) -> Iterator[T]:
        """Enter a resource whose end the first signal does not cut short: it is raised when all is ended.

        A second one does; what is left then goes with the next start of Loadstone.
        """
        outer = False
        try:
            with resource as entered:
                try:
                    yield entered
                finally:
                    outer, self._ending = self._ending, True
        finally:
            self._ending = outer
        self.check()

    def check(self) -> None:
        """Raise `InterruptedRun` when a signal has come that only stopped a drive."""
        if self.received is not None:
            raise InterruptedRun(self.received)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        if self.impatient:
            return  # what is left to do is quick, and must be done: to end what we started
        if self.received is not None:
            self.impatient = True
            raise InterruptedRun(self.received)
        self.received = signum
        if self._stop is not None:
            self._stop()
        elif not self._ending:
            raise InterruptedRun(signum)


def completed(work: Callable[[], None]) -> None:
    """Do `work`, and again where a signal cut it short, which is raised when all is done.

    For what removes things where no `Signals` is at hand; what was done already must be no trouble to it.
    """
    try:
        work()
    except KeyboardInterrupt:
        work()
        raise
