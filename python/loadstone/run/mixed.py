"""What goes on beside a load: it begins when the load's drive begins, and ends with it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.signals import Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ConcurrentQueries(Signals):
    """Runs what is to go on beside a load, each part in a thread of its own.

    Stands in for the run's signals, which is how a drive says when it begins and how it is ended early.
    """

    def __init__(self, signals: Signals, parts: Sequence[Callable[[Signals], None]]) -> None:
        """Begin nothing yet; each part is given what ends its drive."""
        super().__init__()
        self._signals = signals
        self._stoppers = [_Stopper() for _ in parts]
        self._troubles: list[Exception] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=pair, name="during the load", daemon=True)
            for pair in zip(parts, self._stoppers, strict=True)
        ]

    def during(self, stop: Callable[[], None] | None) -> None:
        """Begin when the load's drive begins, and end with it."""
        # At the end a signal waits until its threads are gone: they ask a server that would go before them.
        self._signals.during(stop or _nothing)
        for thread, stopper in zip(self._threads, self._stoppers, strict=True):
            if stop is not None:
                thread.start()
            elif thread.ident is not None:
                stopper.stop()
        if stop is None:
            for thread in self._threads:
                if thread.ident is not None:
                    thread.join()
            self._signals.during(None)

    def raise_trouble(self) -> None:
        """Raise what kept a part from its work."""
        for trouble in self._troubles:
            if isinstance(trouble, LoadstoneError):
                raise RunFailedError(f"during the load: {trouble.message}", trouble.hint) from trouble
            raise trouble

    def _guarded(self, part: Callable[[Signals], None], stopper: Signals) -> None:
        try:
            part(stopper)
        except Exception as error:  # noqa: BLE001 - handed to the run's own thread
            self._troubles.append(error)


class _Stopper(Signals):
    """Ends a drive from another thread, also one that has not begun when the word comes."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._ended = False
        self._stop_drive: Callable[[], None] | None = None

    def during(self, stop: Callable[[], None] | None) -> None:
        """Remember how to end the drive; end it where the word has come already."""
        with self._lock:
            self._stop_drive = stop
            if self._ended and stop is not None:
                stop()

    def stop(self) -> None:
        """End the drive."""
        with self._lock:
            self._ended = True
            if self._stop_drive is not None:
                self._stop_drive()


def _nothing() -> None:
    """Do nothing: what was in flight has been told to end."""
