"""Rows from the core to the server: by one connection, or by several at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

import psycopg

from loadstone import _core
from loadstone.engine.postgres.connections import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from loadstone.personalities.pgbench.initialization.session import Session

T = TypeVar("T")

CHUNK_ROWS = 5000
"""Rows that are made and sent together; it divides the 100,000 after which a line of progress comes."""
_CANCEL_S = 2.0


class StoppedError(Exception):
    """Another connection failed, or a signal came: what this one sends is not wanted any more."""


class Shared(Generic[T]):
    """Items for several threads: each goes to whichever asks next."""

    def __init__(self, items: Iterable[T], stopped: threading.Event) -> None:
        """Once `stopped` is set, whoever asks gets StoppedError."""
        self._items = iter(items)
        self._lock = threading.Lock()
        self._stopped = stopped

    def __iter__(self) -> Iterator[T]:
        """Yield what no other thread has got."""
        while True:
            with self._lock:
                if self._stopped.is_set():
                    raise StoppedError
                try:
                    item = next(self._items)
                except StopIteration:
                    return
            yield item


class Chunks:
    """A range of a table's rows in pieces, for one connection or several."""

    def __init__(
        self, table: str, rows: range, sent: Callable[[int], object], stopped: threading.Event
    ) -> None:
        """`rows` counts from 0; `sent` is called with the number of rows that a connection has taken."""
        self._table = table
        self._sent = sent
        self._end = rows.stop
        self._firsts = Shared(rows[::CHUNK_ROWS], stopped)

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines of COPY; raises StoppedError."""
        for first in self._firsts:
            rows = min(CHUNK_ROWS, self._end - first)
            yield _core.pgbench_rows(self._table, first, rows)
            self._sent(rows)


def fill_in_parallel(
    sessions: Sequence[Session], fill: Callable[[Session], object], stopped: threading.Event
) -> None:
    """Call `fill` with every connection, in threads; none commits before all have sent their rows.

    Raises ComplaintError when a connection fails, and InterruptedRun for a signal; then all roll back.
    """
    with ThreadPoolExecutor(len(sessions), "loadstone-copy") as pool:
        sending = [pool.submit(_begin, session, fill) for session in sessions]
        try:
            wait(sending, return_when=FIRST_EXCEPTION)
            _raise_first(sending)
        except BaseException:
            stopped.set()
            _end(sessions)
            raise
    for session in sessions:
        session.execute("commit")


def _begin(session: Session, fill: Callable[[Session], object]) -> None:
    session.execute("begin")
    fill(session)


def _raise_first(sending: Sequence[Future[None]]) -> None:
    failures = [done.exception() for done in sending if done.done()]
    for failure in sorted(filter(None, failures), key=lambda error: isinstance(error, StoppedError)):
        raise failure


def _end(sessions: Sequence[Session]) -> None:
    """Have the server end what each connection does; a server that cannot be asked loses the connection."""
    for session in sessions:
        try:
            session.control.cancel_safe(timeout=_CANCEL_S)
        except psycopg.Error:
            with suppress(psycopg.Error, OSError):
                cut(session.control)
