"""Queries by threads around a Python driver, for engines that the core's driver does not reach.

Each worker has a connection of its own, takes the next query when it is free, and hands times to the core's
recorder: what is measured, counted and written is as by the wire protocol. The clock runs from just before the
driver is called until it has given the whole answer; the digest is made outside of it.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.errors import LoadstoneError
from loadstone.tsbs.answers import difference, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.drive import Progress
    from loadstone.engine.control import Control
    from loadstone.engine.driver import DriverEngine
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget

Account = dict[str, Any]

CHANGED = "answer"
"""What an error is called when a query's answer is another than the first time."""
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class _Job:
    query: int
    """Number of the query among those of the file."""
    label: int
    sql: str
    intended_ns: int | None
    """When it should start; None: as soon as somebody is free."""


def ask(
    document: Mapping[str, Any],
    opened: OpenTarget,
    engine: DriverEngine,
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
) -> Account:
    """Run the queries of a drive's document and return its account.

    Raises LoadstoneError when a worker cannot connect; failing queries are counted.
    """
    run = _Asking(document, opened, engine)
    if signals is not None:
        signals.during(run.stop)
    try:
        return run.perform(show)
    finally:
        if signals is not None:
            signals.during(None)


class _Asking:
    def __init__(self, document: Mapping[str, Any], opened: OpenTarget, engine: DriverEngine) -> None:
        self._document, self._opened, self._engine = document, opened, engine
        self._queries: Mapping[str, Any] = document["queries"]
        self._stopped = threading.Event()
        self._feed = _Feed(document, self._stopped)
        self._answers = _Answers() if self._queries["answers"] == "digest" else None
        self._trouble: list[BaseException] = []
        self._names: list[str] = []

    def stop(self) -> None:
        """Ask for an early end: queries under way are interrupted."""
        self._stopped.set()

    def perform(self, show: Callable[[Progress], None] | None) -> Account:
        clients = int(self._document["clients"])
        with contextlib.ExitStack() as stack:
            controls = []
            for number in range(clients):
                control = self._opened.connect(f"loadstone-query-{number}")
                stack.callback(control.close)
                controls.append(control)
            recorder = _core.Recorder(json.dumps(self._recording()))
            threads = [
                threading.Thread(target=self._work, args=(control, recorder), name=f"query-{number}")
                for number, control in enumerate(controls)
            ]
            self._feed.begin()
            for thread in threads:
                thread.start()
            self._wait(threads, recorder, show)
            return self._account(recorder)

    def _recording(self) -> dict[str, Any]:
        keys = ("clients", "pace", "interval_s", "out_dir", "seed")
        return {key: self._document[key] for key in keys} | {
            "labels": self._queries["labels"],
            "burn_in": self._queries["burn_in"],
        }

    def _wait(
        self,
        threads: list[threading.Thread],
        recorder: _core.Recorder,
        show: Callable[[Progress], None] | None,
    ) -> None:
        interrupted = False
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(_POLL_S / len(threads))
            if self._stopped.is_set() and not interrupted:
                interrupted = True
            if show is not None:
                show(json.loads(recorder.progress()))

    def _work(self, control: Control, recorder: _core.Recorder) -> None:
        try:
            while (job := self._feed.next()) is not None:
                self._one(control, recorder, job)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._trouble.append(error)
            self._stopped.set()

    def _one(self, control: Control, recorder: _core.Recorder, job: _Job) -> None:
        if job.intended_ns is not None:
            _sleep_until(job.intended_ns, self._stopped)
        limit_s = float(self._document["timeout_s"])
        start_ns = time.monotonic_ns()
        intended_ns = start_ns if job.intended_ns is None else job.intended_ns
        state, message, table = None, "", None
        try:
            with self._engine.at_most(control, limit_s):
                table = self._engine.answer(control, job.sql)
        except self._engine.errors as error:
            state, message = type(error).__name__, str(error).strip()
        end_ns = time.monotonic_ns()
        if state is not None and end_ns - start_ns >= limit_s * 1e9:
            state, message = "timeout", f"no answer within {limit_s:g} s"
        if table is not None and self._answers is not None:
            words = self._answers.take(job.query, digest(table))
            if words:
                state, message = CHANGED, f"query {job.query} has another answer than before: {words}"
        recorder.sample(job.label, intended_ns, start_ns, end_ns, state is None, state, message)

    def _account(self, recorder: _core.Recorder) -> Account:
        if self._trouble:
            raise self._trouble[0]
        account: Account = json.loads(recorder.finish("interrupted" if self._stopped.is_set() else "complete"))
        queries = account.setdefault("queries", {})
        queries["answers"] = self._answers.listed() if self._answers is not None else []
        return account


class _Feed:
    """The queries of the file, in order, as workers ask for them."""

    def __init__(self, document: Mapping[str, Any], stopped: threading.Event) -> None:
        queries = document["queries"]
        self._path, self._loop = Path(queries["file"]), bool(queries["loop"])
        self._most = int(queries["max_queries"])
        self._duration_s = document["duration_s"]
        self._lock, self._stopped = threading.Lock(), stopped
        self._starts = _starts(document["pace"], int(document["seed"]))
        self._lines = self._read()
        self._begun_ns = 0
        self._given = 0

    def begin(self) -> None:
        """Start the clock of the pace and of the duration."""
        self._begun_ns = time.monotonic_ns()

    def next(self) -> _Job | None:
        """Return the next query; None when there is no more."""
        with self._lock:
            if self._stopped.is_set() or (self._most and self._given >= self._most):
                return None
            after_ns = next(self._starts)
            elapsed_ns = time.monotonic_ns() - self._begun_ns if after_ns is None else after_ns
            if self._duration_s is not None and elapsed_ns >= self._duration_s * 1e9:
                return None
            line = next(self._lines, None)
            if line is None:
                return None
            self._given += 1
            query, (label, sql) = line
            return _Job(query, label, sql, None if after_ns is None else self._begun_ns + after_ns)

    def _read(self) -> Iterator[tuple[int, tuple[int, str]]]:
        while True:
            with self._path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines):
                    label, sql = json.loads(line)
                    yield number, (label, sql)
            if not self._loop:
                return


@dataclass
class _Answers:
    """The first answer of each query."""

    _digests: dict[int, dict[str, Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, query: int, found: dict[str, Any]) -> str | None:
        """Keep a query's first answer; of a later one return how it differs, if it does."""
        with self._lock:
            first = self._digests.setdefault(query, found)
        return None if first is found else difference(first, found)

    def listed(self) -> list[dict[str, Any]]:
        """Return what drive.json says of answers."""
        return [{"query": query, "digest": found} for query, found in sorted(self._digests.items())]


def _starts(pace: Mapping[str, Any], seed: int) -> Iterator[int | None]:
    """Yield the nanoseconds from the beginning at which queries are to start; None: at any time."""
    if pace["kind"] == "closed":
        while True:
            yield None
    gap_ns = 1e9 / float(pace["rate_per_s"])
    rand, at_ns = _core.GoRand(seed), 0.0
    while True:
        yield int(at_ns)
        at_ns += gap_ns if pace["kind"] == "fixed" else -gap_ns * log(1.0 - rand.float64())


def _sleep_until(moment_ns: int, stopped: threading.Event) -> None:
    while (left_ns := moment_ns - time.monotonic_ns()) > 0:
        if stopped.wait(min(left_ns / 1e9, _POLL_S)):
            return


def refuse_probe(document: Mapping[str, Any]) -> None:
    """Raise LoadstoneError when a probe is asked for, which needs the core's driver."""
    if document["queries"]["probe"] is not None:
        raise LoadstoneError("freshness is not measured through a Python driver", "Leave the probe out.")
