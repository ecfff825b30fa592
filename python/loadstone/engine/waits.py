"""Waits for a server's answer: looked into after three seconds, told of, cut off where none will come.

How long a statement takes is the server's business: an index build may take a day. So a limit holds for
silence, and for waiting behind somebody else's lock, never for work. Which of them it is, the server is asked
on another connection.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from loadstone.engine.library.deadlines import Deadlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

SAY_S = 3.0
"""After so long a wait is looked into, and told of."""
LOOK_S = 5.0
"""Time between two looks at a wait that goes on."""
ASK_S = 2.0
"""Longest wait for the answer of the other connection."""
SILENCE_S = 60.0
"""Longest wait for a server that gives no sign of life, or does not know of the statement."""
LOCK_S = 300.0
"""Longest wait behind a lock that another session holds."""
LEAVE_S = 2.0
"""Longest wait for the end of a statement that a signal has interrupted."""

_LOG = logging.getLogger("loadstone.waits")
DEADLINES = Deadlines()


def at_most(limit_s: float, work: Callable[[], T]) -> T:
    """Do something that knows no limit, in a thread that is left when it takes longer: TimeoutError then."""
    done: Future[T] = Future()
    threading.Thread(target=_settle, args=(done, work), name="loadstone-limited", daemon=True).start()
    try:
        return done.result(limit_s)
    except TimeoutError as error:
        if done.done():
            raise  # it is the work's own
        raise TimeoutError(f"no answer within {limit_s:g} s") from error


def _settle(done: Future[T], work: Callable[[], T]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - whoever waits raises it
        done.set_exception(error)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a wait has found."""

    words: str = ""
    """What it waits for; empty: the server works on it."""
    limit_s: float | None = None
    """How long that may last; None: as long as it takes."""
    hint: str = ""


class Wait:
    """One wait; `verdict` says why it was cut off, if it was."""

    def __init__(self, look: Callable[[], Seen], cut: Callable[[], None]) -> None:
        """`look` asks the server elsewhere, and `cut` makes the wait fail; both are called from a thread."""
        self._look = look
        self._cut = cut
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.verdict: Seen | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Do the waiting in here."""
        try:
            with DEADLINES.within(SAY_S, self._watch):
                yield
        finally:
            with self._lock:  # what is cut is this wait, never the next one
                self._over.set()

    def _watch(self) -> None:
        begun = since = time.monotonic() - SAY_S
        told = ""
        while not self._over.is_set():
            seen = self._look()
            now = time.monotonic()
            if seen.limit_s is None:
                since = now
            elif now - since >= seen.limit_s:
                self._give_up(seen, now - since)
                return
            if seen.words and seen.words != told and not self._over.is_set():
                told = seen.words
                _LOG.warning("waiting for %.0f s: %s", now - begun, seen.words)
            self._over.wait(LOOK_S if seen.limit_s is None else min(LOOK_S, since + seen.limit_s - now))

    def _give_up(self, seen: Seen, after_s: float) -> None:
        with self._lock:
            if not self._over.is_set():
                self.verdict = Seen(f"gave up after {after_s:.0f} s: {seen.words}", hint=seen.hint)
                self._cut()
