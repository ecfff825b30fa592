"""Rows read by a thread of its own, a few batches ahead of those who send them."""

from __future__ import annotations

import json
import math
import queue
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadstone import _core
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone._core import TableBatch
    from loadstone.engine.driving import Loader, Pace
    from loadstone.engine.stepping import Steps

Account = dict[str, Any]
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows that go into the database together, in one transaction."""

    number: int
    offset_ns: int | None
    """When it is to begin, after the start of the load; None: as soon as it can."""
    rows: int
    metrics: int
    tags: Sequence[TableBatch]
    """New rows of the table of devices, which come first."""
    tables: Sequence[TableBatch]
    latest_us: int | None = None
    """Its latest row time, microseconds since 1970; None when it has no rows, or rows no time."""
    step: int = 0
    """The step that it belongs to."""
    logical_bytes: int = 0
    """Bytes of its rows' values; 0 of time series."""


class Feed:
    """Reads batches in a thread of its own, a few ahead of the workers."""

    def __init__(
        self, load: Mapping[str, Any], loader: Loader, workers: int, pace: Pace, steps: Steps
    ) -> None:
        self._series = load["data"]["kind"] not in ("rows", "parquet")
        try:
            self._stream = _core.DataStream(json.dumps(load["data"]), fingerprints=self._series)
        except _core.DriveError as error:
            raise LoadstoneError(*error.args) from error
        self.dataset = json.loads(self._stream.dataset())
        self._tags_name = self.dataset["tags"]["name"] if self.dataset["tags"] else None
        self._load = load
        self._loader = loader
        self._pace = pace
        self._steps = steps
        self._ready: queue.Queue[Batch | None] = queue.Queue(maxsize=workers + 1)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="loadstone-rows", daemon=True)
        self.skipped = 0
        self.tags_total = 0
        self.busy_ns = self.wait_ns = 0
        self.failure: LoadstoneError | None = None

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def take(self) -> Batch | None:
        """Return the next batch; None when there is no more."""
        begin_ns = time.monotonic_ns()
        batch = self._ready.get()
        self.wait_ns += time.monotonic_ns() - begin_ns
        if batch is None:
            self._ready.put(None)  # for the next worker
        return batch

    def end(self) -> None:
        """Read no more; whoever waits for a batch gets none."""
        self._ended.set()
        while self._thread.is_alive() or not self._ready.empty():
            try:
                self._ready.get(timeout=_POLL_S / 10)
            except queue.Empty:
                continue
        self._ready.put(None)

    def tables(self) -> list[Account]:
        """Return rows and fingerprint of each table, of all that was read: what the tables must hold.

        Plain rows have no fingerprint yet: it is taken when they are verified.
        """
        if not self._series:
            (table,) = self.dataset["tables"]
            return [{"name": table["name"], "rows": self._stream.rows, "fingerprint": None}]
        found: list[Account] = json.loads(self._stream.fingerprints())
        return found

    def _fill(self) -> None:
        try:
            for batch in self._batches():
                if not self._offer(batch):
                    return
            self._steps.close()
        except _core.DriveError as error:
            self.failure = LoadstoneError(*error.args)
        self._offer(None)

    def _offer(self, batch: Batch | None) -> bool:
        while not self._ended.is_set():
            try:
                self._ready.put(batch, timeout=_POLL_S)
            except queue.Full:
                continue
            return True
        return False

    def _batches(self) -> Iterator[Batch]:
        limit = int(self._load["limit_rows"]) or math.inf
        number = 0
        while not self._ended.is_set() and self._stream.rows < limit:
            metrics = self._stream.metrics
            begin_ns = time.monotonic_ns()
            first = self._stream.rows
            left = min(limit - first, self._steps.left(first) or math.inf)
            parts = self._stream.read(int(min(self._load["batch_rows"], left)))
            self.busy_ns += time.monotonic_ns() - begin_ns
            if parts is None:
                return
            tags = [part for part in parts if part.table == self._tags_name]
            self.tags_total += sum(part.rows for part in tags)
            self._loader.expect(tags)
            if _is_skipped(number, self._load["skip"]):
                self.skipped += 1
            else:
                step = self._steps.number(first)
                self._steps.announce(step, first)
                tables = [part for part in parts if part.table != self._tags_name]
                batch = self._batch(number, tags, tables, self._stream.metrics - metrics)
                yield replace(batch, offset_ns=self._pace.next_ns(), step=step)
            number += 1

    def _batch(
        self, number: int, tags: Sequence[TableBatch], tables: Sequence[TableBatch], metrics: int
    ) -> Batch:
        batch = Batch(number, None, sum(part.rows for part in tables), metrics, tags, tables)
        if self._series:
            return replace(batch, latest_us=max((_latest_us(part) for part in tables), default=None))
        return replace(batch, logical_bytes=sum(_logical_bytes(part) for part in tables))


def _logical_bytes(part: TableBatch) -> int:
    """Return the bytes of rows' values as crates/gen/src/rows.rs counts them: nothing for NULL."""
    total = 0
    for column in pa.record_batch(part).columns:
        if pa.types.is_string(column.type):
            total += pc.sum(pc.binary_length(column)).as_py() or 0
        else:
            total += (len(column) - column.null_count) * max(1, column.type.bit_width // 8)
    return total


def _latest_us(part: TableBatch) -> int:
    """Return the latest time of a table's rows, microseconds since 1970; there is one row at least."""
    time_column = pa.record_batch(part).column("time")
    latest: int = pc.max(time_column.cast(pa.timestamp("us", "UTC"), safe=False)).cast(pa.int64()).as_py()
    return latest


def _is_skipped(number: int, ranges: Sequence[Sequence[int]]) -> bool:
    return any(first <= number <= last for first, last in ranges)
