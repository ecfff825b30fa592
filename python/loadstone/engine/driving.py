"""Loads through a Python driver: one thread reads the rows, others send them in batches, one watches.

What is timed is the driver's call, in threads of this process: rows wait ready before their batch begins.
"""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from loadstone import _core
from loadstone.engine.feeding import Batch, Feed
from loadstone.engine.longtransactions import Progress
from loadstone.engine.stepping import Steps
from loadstone.errors import LoadstoneError
from loadstone.jsonfile import JsonLines, to_json, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone._core import TableBatch

Account = dict[str, Any]
_POLL_S = 0.1
_GRACE_S = 10.0
_SEED = 1
LABEL = "batch"
_NOT_HASHED = "rows are not hashed to workers: each takes the next batch, whatever devices are in it"


class Session(Protocol):
    """One worker's connection."""

    @property
    def way(self) -> str:
        """How rows go: `arrow`, as a `file` that the server reads, by `insert`, by `copy_text`."""

    def send(self, batch: Batch, mark: Callable[[int], None] | None = None) -> None:
        """Put a batch into the database in one transaction; raises one of the loader's errors.

        `mark`, of a long transaction, is told how many rows are in, every `mark_rows`.
        """

    def interrupt(self) -> None:
        """Make `send`, which another thread is in, fail."""

    def close(self) -> None:
        """End it."""


class Loader(Protocol):
    """What an engine brings to a load."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What sessions raise when the database is in trouble."""

    def session(self) -> Session:
        """Open a connection for one worker."""

    def expect(self, tags: Sequence[TableBatch]) -> None:
        """Take note of new devices before a row of theirs is sent: those of batches that are not sent too."""

    def sqlstate(self, error: Exception) -> str:
        """Return the class of an error, in the engine's own words where it has no SQLSTATE."""

    def finish(self) -> None:
        """Bring what is loaded to its resting place: the last part of the load, inside its clock."""


def drive_load(
    document: Mapping[str, Any],
    loader: Loader,
    stopped: Callable[[], bool],
    show: Callable[[Account], None] | None,
    stepped: Callable[[Account], None] | None = None,
) -> Account:
    """Load as `document` (a DriveSpec with `load`) says; returns drive.json's content.

    `stepped` is told of each step that has ended, before the next one begins. Raises LoadstoneError when
    the data cannot be made or read, or no connection be opened.
    """
    return _Run(document, loader, stepped).run(stopped, show)


@dataclass(slots=True)
class _Totals:
    """What has been committed so far."""

    rows: int = 0
    metrics: int = 0
    batches: int = 0
    tags_rows: int = 0
    logical_bytes: int = 0
    reason: str | None = None
    """Why the load broke off."""


class _Marks:
    """sent.jsonl: when batches with a later row time than all before were handed over, and committed."""

    def __init__(self, out_dir: str | None) -> None:
        self._lines = JsonLines(Path(out_dir) / "sent.jsonl") if out_dir is not None else None
        self._latest_us: int | None = None
        self.count = 0

    def note(self, batch: Batch, sent_ns: int, acked_ns: int) -> None:
        """Take note of a committed batch; one thread at a time."""
        latest_us = batch.latest_us
        if latest_us is None or (self._latest_us is not None and latest_us <= self._latest_us):
            return
        self._latest_us = latest_us
        self.count += 1
        if self._lines is not None:
            self._lines.write({"time_us": latest_us, "sent_ns": sent_ns, "acked_ns": acked_ns})

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()


class _Run:
    def __init__(
        self,
        document: Mapping[str, Any],
        loader: Loader,
        stepped: Callable[[Account], None] | None,
    ) -> None:
        self.document = document
        self.load: Mapping[str, Any] = document["load"]
        self.loader = loader
        self.workers = int(document["clients"])
        self.gaps = [Gaps(self.load["insert_intervals"], worker) for worker in range(self.workers)]
        self.stepped = stepped
        self.steps = Steps(int(self.load.get("step_rows", 0)), hold=stepped is not None)
        self.feed = Feed(self.load, loader, self.workers, Pace(document["pace"]), self.steps)
        self.recorder = _core.Recorder(json.dumps(self._records()))
        self.marks = _Marks(document.get("out_dir"))
        long = self.load.get("transaction")
        self.long = Progress(document.get("out_dir"), int(long["mark_rows"])) if long else None
        self.totals = _Totals()
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.start_ns = 0
        self.way = ""
        self.bug: BaseException | None = None
        """What a worker died of, which is no trouble of the database."""
        self.begun: dict[int, tuple[int, Session]] = {}
        """When each worker's batch began, for the time limit."""

    def run(self, stopped: Callable[[], bool], show: Callable[[Account], None] | None) -> Account:
        sessions = self._open()
        self.way = sessions[0].way
        threads = [
            threading.Thread(target=self._work, args=(place, session), name=f"loadstone-load-{place}")
            for place, session in enumerate(sessions)
        ]
        self.start_ns = self.recorder.begin()
        self.steps.begin(self.start_ns)
        self.feed.start()
        try:
            for thread in threads:
                thread.start()
            interrupted = self._watch(threads, stopped, show)
            broken = interrupted or self.totals.reason or self.bug
            finish_ns = 0 if broken else self._finish()
        finally:
            self._end()
            self._bring_to_an_end(threads, 0.0)
            for session in sessions:
                session.close()
            self.marks.close()
            if self.long is not None:
                self.long.close()
        if self.bug is not None:
            raise self.bug
        return self._account(interrupted=interrupted, finish_ns=finish_ns)

    def _records(self) -> dict[str, Any]:
        """Return the specification of the recorder."""
        same = ("clients", "pace", "out_dir", "interval_s", "seed")
        shared = {name: self.document[name] for name in same if name in self.document}
        return shared | {"labels": [LABEL], "load": True}

    def _open(self) -> list[Session]:
        sessions: list[Session] = []
        try:
            for _ in range(self.workers):
                sessions.append(self.loader.session())  # noqa: PERF401 - those opened so far are closed
        except BaseException:
            for session in sessions:
                session.close()
            raise
        return sessions

    def _work(self, place: int, session: Session) -> None:
        try:
            self._send_all(place, session)
        except BaseException as error:  # noqa: BLE001 - raised again where it is seen
            self.bug = error
            self._end()

    def _send_all(self, place: int, session: Session) -> None:
        free_ns = 0
        while not self.ended.is_set():
            batch = self.feed.take()
            if batch is None or not self.steps.enter(batch.step):
                return
            intended_ns = self._await_turn(batch, free_ns)
            if intended_ns is None:
                return
            free_ns = time.monotonic_ns() + int(self.gaps[place].next_s() * 1e9)
            self._send(place, session, batch, intended_ns)

    def _await_turn(self, batch: Batch, free_ns: int) -> int | None:
        """Wait until a batch is to begin; returns its intended start, None when the load ends before."""
        intended_ns = free_ns if batch.offset_ns is None else self.start_ns + batch.offset_ns
        wait_ns = max(intended_ns, free_ns) - time.monotonic_ns()
        if wait_ns > 0 and self.ended.wait(wait_ns / 1e9):
            return None
        return time.monotonic_ns() if batch.offset_ns is None else intended_ns

    def _send(self, place: int, session: Session, batch: Batch, intended_ns: int) -> None:
        start_ns = time.monotonic_ns()
        self.begun[place] = (start_ns, session)
        try:
            session.send(batch, partial(self.long.mark, batch.number) if self.long else None)
        except self.loader.errors as error:
            end_ns, said = time.monotonic_ns(), str(error).strip()
            self._note_end(batch, start_ns, end_ns, committed=False)
            self.recorder.fail(0, intended_ns, start_ns, end_ns, self.loader.sqlstate(error), said)
            self._break_off(f"batch {batch.number} was refused: {said}")
        else:
            end_ns = time.monotonic_ns()
            self._note_end(batch, start_ns, end_ns, committed=True)
            self.recorder.sample(0, intended_ns, start_ns, end_ns)
            self._count(batch, start_ns, end_ns)
        finally:
            self.begun.pop(place, None)

    def _note_end(self, batch: Batch, start_ns: int, end_ns: int, *, committed: bool) -> None:
        if self.long is not None:
            self.long.end(batch.number, start_ns, end_ns, committed=committed, rows=batch.rows)

    def _count(self, batch: Batch, sent_ns: int, acked_ns: int) -> None:
        self.recorder.rows(batch.rows, batch.metrics)
        totals = self.totals
        with self.lock:
            totals.rows += batch.rows
            totals.metrics += batch.metrics
            totals.batches += 1
            totals.tags_rows += sum(part.rows for part in batch.tags)
            totals.logical_bytes += batch.logical_bytes
            self.marks.note(batch, sent_ns, acked_ns)
        self.steps.done(batch.rows, acked_ns)

    def _break_off(self, reason: str) -> None:
        with self.lock:
            if not self.ended.is_set():  # else it was cut off because the load ends
                self.totals.reason = reason
            self._end()

    def _end(self) -> None:
        """Begin no batch any more."""
        self.ended.set()
        self.steps.end()

    def _watch(
        self,
        threads: Sequence[threading.Thread],
        stopped: Callable[[], bool],
        show: Callable[[Account], None] | None,
    ) -> bool:
        """Wait for the workers' end; returns whether the user broke it off."""
        interrupted = False
        while any(thread.is_alive() for thread in threads):
            if not interrupted and stopped():
                interrupted = True
                self._end()
            if self.ended.is_set():
                self._bring_to_an_end(threads, _GRACE_S)
                break
            self._cut_off_late()
            if show is not None:
                show(self._progress())
            self._tell_steps(_POLL_S)
        self._tell_steps(0.0)
        return interrupted

    def _tell_steps(self, limit_s: float) -> None:
        for step in self.steps.news(limit_s):
            if self.stepped is not None:
                self.stepped(step)

    def _bring_to_an_end(self, threads: Sequence[threading.Thread], grace_s: float) -> None:
        """Let batches under way finish, and cut them off after a grace time."""
        self.feed.end()
        self._join(threads, grace_s)
        while any(thread.is_alive() for thread in threads):
            for _, session in list(self.begun.values()):
                session.interrupt()
            self._join(threads, _POLL_S)

    def _cut_off_late(self) -> None:
        limit_ns = int(self.document["timeout_s"] * 1e9)
        now_ns = time.monotonic_ns()
        for begun_ns, session in list(self.begun.values()):
            if now_ns - begun_ns > limit_ns:
                session.interrupt()

    @staticmethod
    def _join(threads: Sequence[threading.Thread], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _finish(self) -> int:
        begin_ns = time.monotonic_ns()
        if self.feed.failure is not None:
            self.totals.reason = str(self.feed.failure)
            return 0
        try:
            self.loader.finish()
        except self.loader.errors as error:
            self.totals.reason = f"the load could not be brought to its end: {str(error).strip()}"
        return time.monotonic_ns() - begin_ns

    def _progress(self) -> Account:
        done: Account = json.loads(self.recorder.progress())
        totals, steps = self.totals, self.steps
        more = {"steps": list(steps.finished), "holding": steps.holding} if steps.step_rows else {}
        return done | {"rows": totals.rows, "metrics": totals.metrics} | more

    def _account(self, *, interrupted: bool, finish_ns: int) -> Account:
        totals, feed = self.totals, self.feed
        state, reason = ("interrupted", "stopped by a signal") if interrupted else ("complete", None)
        if totals.reason is not None:
            state, reason = "aborted", totals.reason
        loaded = {
            "rows": totals.rows,
            "metrics": totals.metrics,
            "batches": totals.batches,
            "skipped_batches": feed.skipped,
            "tags_rows": totals.tags_rows,
            "tags_total": feed.tags_total,
            "tables": feed.tables(),
            "source": {"wait_ns": feed.wait_ns, "busy_ns": feed.busy_ns},
            "marks": self.marks.count,
            "finish_ns": finish_ns,
            "notes": [_NOT_HASHED] if self.load["hash_workers"] else [],
        }
        if "step_rows" in self.load:
            loaded["steps"] = self.steps.documents("interrupted" if interrupted else "failed")
            loaded["logical_bytes"] = totals.logical_bytes
        if self.long is not None:
            loaded["transactions"] = self.long.documents()
        # A transaction of a library in our process either came to its end or left nothing.
        more = {"load": loaded, "in_doubt_batches": [], "mode": self.way}
        account: Account = json.loads(self.recorder.finish(state, reason, json.dumps(more)))
        if self.document.get("out_dir") is not None:
            write_atomic(Path(self.document["out_dir"]) / "drive.json", to_json(account, indent=1))
        return account


class Pace:
    """When batches are to begin: offsets from the start, in the order of the batches."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Take the pace of a drive's document."""
        self._kind = str(document["kind"])
        self._gap_ns = 1e9 / float(document["rate_per_s"]) if self._kind != "closed" else 0.0
        self._random = _core.GoRand(_SEED)
        self._at_ns = 0.0

    def next_ns(self) -> int | None:
        """Return when the next batch is to begin; None: as soon as it can."""
        if self._kind == "closed":
            return None
        at_ns = self._at_ns
        waits = -math.log(1.0 - self._random.float64()) if self._kind == "poisson" else 1.0
        self._at_ns += waits * self._gap_ns
        return round(at_ns)


class Gaps:
    """TSBS's insert intervals: the least time between the starts of a worker's batches, by worker.

    `1,0-3` is one second for the first worker, and for all others whole seconds drawn anew from 0 to 2.
    """

    def __init__(self, text: str, worker: int) -> None:
        """Take worker number `worker`'s part of the text. Raises LoadstoneError when it cannot be read."""
        parts = text.split(",") if text.strip() else ["0"]
        self._random = _core.GoRand(_SEED + worker)
        part = parts[min(worker, len(parts) - 1)].strip()
        low, dash, high = part.partition("-")
        try:
            self._low, self._high = float(low), float(high) if dash else float(low)
        except ValueError:
            raise LoadstoneError(
                f'"{text}" are no insert intervals', "Write seconds by worker, as 1,2 or 0-5."
            ) from None

    def next_s(self) -> float:
        """Return how long after the start of the last batch the next one may begin."""
        width = int(self._high - self._low)
        return self._low + (self._random.int63n(width) if width > 0 else 0)
