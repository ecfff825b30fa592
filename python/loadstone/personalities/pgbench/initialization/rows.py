"""Rows from the core to the server: by one connection, or by several at the same time."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

from loadstone import _core
from loadstone.engine.postgres.connections import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.personalities.pgbench.initialization.session import Session

CHUNK_ROWS = 5000
"""Rows that are made and sent together; it divides the 100,000 after which a line of progress comes."""
_CANCEL_S = 2.0


class StoppedError(Exception):
    """Another connection failed, or a signal came: what this one sends is not wanted any more."""


class Chunks:
    """The rows of a table in pieces: each goes to whichever connection asks next."""

    def __init__(self, table: str, rows: int, sent: Callable[[int], object]) -> None:
        """`sent` is called with the number of rows of each chunk that a connection has taken."""
        self._table = table
        self._sent = sent
        self._firsts = iter(range(0, rows, CHUNK_ROWS))
        self._rows = rows
        self._lock = threading.Lock()
        self.stopped = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield lines of COPY; raises StoppedError once `stopped` is set."""
        while (first := self._next()) is not None:
            rows = min(CHUNK_ROWS, self._rows - first)
            yield _core.pgbench_rows(self._table, first, rows)
            self._sent(rows)

    def _next(self) -> int | None:
        with self._lock:
            if self.stopped:
                raise StoppedError
            return next(self._firsts, None)


def send_in_parallel(sessions: Sequence[Session], statement: str, chunks: Chunks) -> None:
    """Fill a table by several connections; none commits before all rows have arrived.

    Raises ComplaintError when a connection fails, and InterruptedRun for a signal; then all roll back.
    """
    with ThreadPoolExecutor(len(sessions), "loadstone-copy") as pool:
        sending = [pool.submit(_send, session, statement, chunks) for session in sessions]
        try:
            wait(sending, return_when=FIRST_EXCEPTION)
            _raise_first(sending)
        except BaseException:
            chunks.stopped = True
            _end(sessions)
            raise
    for session in sessions:
        session.execute("commit")


def _send(session: Session, statement: str, chunks: Chunks) -> None:
    session.execute("begin")
    session.copy(statement, chunks)


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
