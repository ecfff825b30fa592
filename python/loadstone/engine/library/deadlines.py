"""Time limits of calls that block: one thread waits for all of them.

A thread for each, as of `threading.Timer`, has to come to its turn before the call may begin: with fifty
clients that ask short queries, that took longer than the queries.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOOK_S = 0.05
_IDLE_LOOKS = 20
"""Looks that find nothing to wait for, after which the thread ends."""


class Deadlines:
    """What is to be done at its time unless it is called off; late by up to a twentieth of a second."""

    def __init__(self) -> None:
        """Wait for nothing yet."""
        self._due: dict[object, tuple[float, Callable[[], None]]] = {}
        self._lock = threading.Lock()
        self._waits = False

    @contextmanager
    def within(self, limit_s: float, late: Callable[[], None]) -> Iterator[None]:
        """Call `late`, in a thread of its own, where what is done inside takes longer."""
        mark = object()
        with self._lock:
            self._due[mark] = (time.monotonic() + limit_s, late)
            starts, self._waits = not self._waits, True
        if starts:
            threading.Thread(target=self._wait, name="loadstone-deadlines", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._due.pop(mark, None)

    def _wait(self) -> None:
        idle = 0
        while True:
            time.sleep(_LOOK_S)
            with self._lock:
                idle = 0 if self._due else idle + 1
                if idle >= _IDLE_LOOKS:
                    self._waits = False
                    return
                late = [mark for mark, (end, _) in self._due.items() if time.monotonic() >= end]
                for mark in late:
                    if _started(self._due[mark][1]):
                        del self._due[mark]


def _started(call: Callable[[], None]) -> bool:
    """Call in a thread of its own; the system may have none just now, and the limits of others go on."""
    try:
        threading.Thread(target=call, name="loadstone-late", daemon=True).start()
    except RuntimeError:
        return False
    return True
