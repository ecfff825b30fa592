"""progress.jsonl: how far long transactions through a Python driver have come, and what became of them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from loadstone.jsonfile import JsonLines

Document = dict[str, Any]


class Progress:
    """Written by the threads that send."""

    def __init__(self, out_dir: str | None, mark_rows: int) -> None:
        """Note the time whenever `mark_rows` more rows of a transaction are in."""
        self.mark_rows = mark_rows
        self._lines = JsonLines(Path(out_dir) / "progress.jsonl") if out_dir is not None else None
        self._lock = threading.Lock()
        self._ended: dict[int, Document] = {}
        self._rows: dict[int, int] = {}

    def mark(self, number: int, rows: int) -> None:
        """Note that so many rows of a transaction are in, and nothing of it is committed."""
        with self._lock:
            self._rows[number] = rows
            self._write(number, rows, time.monotonic_ns(), "open")

    def end(self, number: int, start_ns: int, end_ns: int, *, committed: bool, rows: int) -> None:
        """Note the end of a transaction of `rows` rows."""
        state = "committed" if committed else "lost"
        with self._lock:
            rows = rows if committed else self._rows.get(number, 0)
            self._rows.pop(number, None)
            self._write(number, rows, end_ns, state)
            self._ended[number] = {
                "transaction": number,
                "rows": rows,
                "start_ns": start_ns,
                "end_ns": end_ns,
                "state": state,
            }

    def documents(self) -> list[Document]:
        """Return the transactions that have ended, by number: drive.json's `transactions`."""
        with self._lock:
            return [self._ended[number] for number in sorted(self._ended)]

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()

    def _write(self, number: int, rows: int, t_ns: int, state: str) -> None:
        if self._lines is not None:
            self._lines.write({"transaction": number, "rows": rows, "t_ns": t_ns, "state": state})
