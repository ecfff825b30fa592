"""Steps of a load through a Python driver: each begins when the one before is committed whole."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Document = dict[str, Any]


@dataclass(slots=True)
class _Step:
    """A step of which rows were read, and what of it is committed."""

    number: int
    first_row: int
    start_ns: int = 0
    end_ns: int = 0
    rows: int = 0
    batches: int = 0
    read: int = 0
    """Batches that were read."""
    whole: bool = False
    """Whether these are all."""

    def document(self, state: str) -> Document:
        """Return an entry of drive.json's `steps`."""
        return {
            "step": self.number,
            "first_row": self.first_row,
            "rows": self.rows,
            "batches": self.batches,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns or None,
            "state": state,
        }


class Steps:
    """The gate before each step, for the threads that read rows, send them and watch."""

    def __init__(self, step_rows: int, *, hold: bool) -> None:
        """Take the rows of a step (0: all rows are one); `hold` waits until each was told of."""
        self.step_rows = step_rows
        self.finished: list[Document] = []
        """Steps that are committed whole."""
        self._hold = hold
        self._told = 0
        self._change = threading.Condition()
        self._steps: deque[_Step] = deque()
        """Those that are not committed whole, in order; only the first can be open."""
        self._open = False
        self._free_ns = 0
        self._ended = False

    def begin(self, start_ns: int) -> None:
        """Open the gate before the first step."""
        self._free_ns = start_ns

    def left(self, row: int) -> int | None:
        """Return how many rows from this one on belong to its step; None: all that there are."""
        return self.step_rows - row % self.step_rows if self.step_rows else None

    def number(self, row: int) -> int:
        """Return the step that a row belongs to."""
        return row // self.step_rows if self.step_rows else 0

    def announce(self, number: int, row: int) -> None:
        """Tell that a batch was read: its step, and the number of its first row."""
        with self._change:
            last = self._steps[-1] if self._steps else None
            if last is None or last.number != number:
                if last is not None:
                    last.whole = True
                last = _Step(number, row)
                self._steps.append(last)
            last.read += 1
            self._advance()

    def close(self) -> None:
        """Tell that all batches of the step that was announced last were read."""
        with self._change:
            if self._steps:
                self._steps[-1].whole = True
            self._advance()

    def enter(self, number: int) -> bool:
        """Wait until a batch of this step may begin; False when the load ends before."""
        with self._change:
            self._change.wait_for(lambda: self._ended or (self._open and self._steps[0].number == number))
            return not self._ended

    def done(self, rows: int, end_ns: int) -> None:
        """Count a committed batch: one of the open step."""
        with self._change:
            step = self._steps[0]
            step.rows, step.batches, step.end_ns = step.rows + rows, step.batches + 1, end_ns
            self._advance()

    def news(self, timeout_s: float) -> Iterator[Document]:
        """Wait for steps to end, and yield them; where the load holds, the next begins after them."""
        with self._change:
            self._change.wait_for(lambda: self._ended or self._told < len(self.finished), timeout_s)
        while self._told < len(self.finished):
            yield self.finished[self._told]
            with self._change:
                self._told += 1
                if self._hold:
                    self._free_ns = time.monotonic_ns()
                self._advance()

    @property
    def holding(self) -> bool:
        """Whether the next step waits until the one before was told of."""
        return self._hold and self._told < len(self.finished)

    def end(self) -> None:
        """Let nobody wait any longer."""
        with self._change:
            self._ended = True
            self._change.notify_all()

    def documents(self, state: str) -> list[Document]:
        """Return all steps that have begun; `state` is that of one that is not whole."""
        with self._change:
            return [*self.finished, *([self._steps[0].document(state)] if self._open else [])]

    def _advance(self) -> None:
        """End the open step when it is committed whole, and open the next when nothing holds it."""
        step = self._steps[0] if self._steps else None
        if self._open and step is not None and step.whole and step.batches == step.read:
            self._steps.popleft()
            self._open = False
            self.finished.append(step.document("complete"))
            self._free_ns = step.end_ns
        if not self._open and self._steps and not self.holding:
            self._steps[0].start_ns = self._free_ns
            self._open = True
        self._change.notify_all()
