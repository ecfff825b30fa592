"""Lines of progress while rows are sent, in pgbench's form."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from loadstone.visible import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str], object]

EVERY_ROWS = 100_000
EVERY_S = 5.0


class CopyProgress:
    """Counts the rows that were sent, by one connection or by several."""

    def __init__(
        self, total: int, write: Write, *, quiet: bool, terminal: bool, table: str | None = None
    ) -> None:
        """`quiet` shows a line every five seconds; on a terminal each line replaces the one before.

        `table` is named in each line, as pgbench does since version 17.
        """
        self._total = total
        self._of_table = f" of {table}" if table else ""
        self._write = write
        self._quiet = quiet
        self._terminal = terminal
        self._lock = threading.Lock()
        self._begun_s = time.monotonic()
        self._rows = 0
        self._next_s = EVERY_S
        self._width = 0

    def advance(self, rows: int) -> None:
        """Count rows, and show a line where one is due."""
        with self._lock:
            before, self._rows = self._rows, self._rows + rows
            elapsed_s = time.monotonic() - self._begun_s
            if self._is_due(before, elapsed_s):
                self._show(elapsed_s)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line from a terminal, however it ended."""
        with self._lock:
            if self._width and self._terminal:
                self._write(Drawn(f"{' ' * self._width}\r"))

    def _is_due(self, before: int, elapsed_s: float) -> bool:
        if not self._quiet:
            return self._rows // EVERY_ROWS > before // EVERY_ROWS
        # pgbench looks at the time after each hundred rows only.
        ended = self._rows == self._total and self._total % 100 == 0
        if not ended and elapsed_s < self._next_s:
            return False
        self._next_s = EVERY_S * (elapsed_s // EVERY_S + 1)
        return True

    def _show(self, elapsed_s: float) -> None:
        remaining_s = (self._total - self._rows) * elapsed_s / self._rows
        line = (
            f"{self._rows} of {self._total} tuples ({self._rows * 100 // self._total}%){self._of_table} done "
            f"(elapsed {elapsed_s:.2f} s, remaining {remaining_s:.2f} s)"
        )
        self._write(Drawn(f"{line:<{self._width}}\r") if self._terminal else f"{line}\n")
        self._width = len(line)
