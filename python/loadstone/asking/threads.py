"""Queries by threads around a Python driver, for engines that the core's driver does not reach.

Each worker has a connection of its own, takes the next query when it is free, and hands times to the core's
recorder: what is measured, counted and written is as by the wire protocol. The clock runs from just before
the driver is called until it has given the whole answer as Arrow; what is done with it then is outside.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from loadstone import _core
from loadstone.asking.repeats import Repeats
from loadstone.jsonfile import to_json, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from loadstone.drive import Progress
    from loadstone.engine.control import Control
    from loadstone.engine.driver import DriverEngine
    from loadstone.signals import Signals
    from loadstone.target import OpenTarget

Account = dict[str, Any]

CHANGED = "answer"
"""What an error is called when a query's answer is another than the first time."""
_POLL_S = 0.1
_GRACE_S = 2.0
"""How long queries under way may still take at an early end."""
_NAME = "loadstone-query-{}"


@dataclass(frozen=True, slots=True)
class _Job:
    query: int
    """Number of the query among those of the file."""
    label: int
    sql: str
    intended_ns: int | None
    """When it should start; None: as soon as somebody is free."""


class Asker(Protocol):
    """Whoever carries queries to a database."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failing query raises."""

    def connect(self, name: str) -> Control:
        """Open one worker's connection."""

    def answer(self, connection: Control, sql: str) -> Any:
        """Run a query and return its whole answer; one that is an Arrow table is digested."""

    def at_most(self, connection: Control, limit_s: float) -> AbstractContextManager[None]:
        """Make what the connection does inside the context fail after a while."""

    def cut_off(self, connection: Control, name: str) -> None:
        """Make what the connection of this name does fail now; called by another thread."""


@dataclass(frozen=True, slots=True)
class EngineAsker:
    """A target behind a Python driver."""

    opened: OpenTarget
    engine: DriverEngine

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failing query raises."""
        return self.engine.errors

    def connect(self, name: str) -> Control:
        """Open one worker's connection."""
        return self.opened.connect(name)

    def answer(self, connection: Control, sql: str) -> Any:
        """Run a query and return its answer as Arrow."""
        return self.engine.answer(connection, sql)

    def at_most(self, connection: Control, limit_s: float) -> AbstractContextManager[None]:
        """Interrupt a query that takes too long."""
        return self.engine.at_most(connection, limit_s)

    def cut_off(self, connection: Control, name: str) -> None:
        """Interrupt a query."""
        self.engine.cancel(connection, name)


def ask(
    document: Mapping[str, Any],
    asker: Asker,
    signals: Signals | None,
    show: Callable[[Progress], None] | None,
    told: Callable[[str, Any], None] | None = None,
    noted: Callable[[int, int], None] | None = None,
) -> Account:
    """Run the queries of a drive's document and return its account.

    `told` is given each query's text with its answer, `noted` its beginning and its end, one at a time.
    Raises LoadstoneError when a worker cannot connect; queries that fail are counted.
    """
    run = _Asking(document, asker, told, noted)
    if signals is not None:
        signals.during(run.stop)
    try:
        return run.perform(show)
    finally:
        if signals is not None:
            signals.during(None)


class _Asking:
    def __init__(
        self,
        document: Mapping[str, Any],
        asker: Asker,
        told: Callable[[str, Any], None] | None,
        noted: Callable[[int, int], None] | None,
    ) -> None:
        self._document, self._asker = document, asker
        self._told, self._noted = told, noted
        self._telling = threading.Lock()
        self._queries: Mapping[str, Any] = document["queries"]
        self._stopped = threading.Event()
        self._feed = _Feed(document, self._stopped)
        wanted = self._queries["answers"] == "digest"
        self._answers = Repeats(int(self._queries["answers_max"])) if wanted else None
        self._brittle = document.get("on_error") == "abort_client"
        self._trouble: list[BaseException] = []
        self._broken: str | None = None
        """How the query failed that was to be the last."""
        self._end_s = 0.0

    def stop(self) -> None:
        """Ask for an early end: queries under way are finished."""
        self._stopped.set()

    def perform(self, show: Callable[[Progress], None] | None) -> Account:
        with contextlib.ExitStack() as stack:
            controls = []
            for number in range(int(self._document["clients"])):
                control = self._asker.connect(_NAME.format(number))
                stack.callback(control.close)
                controls.append(control)
            recorder = _core.Recorder(json.dumps(self._recording()))
            threads = [
                threading.Thread(target=self._work, args=(control, recorder), name=_NAME.format(number))
                for number, control in enumerate(controls)
            ]
            self._feed.begin(recorder.begin())
            for thread in threads:
                thread.start()
            while alive := [thread for thread in threads if thread.is_alive()]:
                alive[0].join(_POLL_S)
                if show is not None:
                    show(json.loads(recorder.progress()))
                self._cut_off(controls)
            return self._account(recorder)

    def _cut_off(self, controls: list[Control]) -> None:
        """Once it is asked for an early end, let queries under way have a grace time, and end them."""
        if not self._stopped.is_set():
            return
        if not self._end_s:
            self._end_s = time.monotonic() + _GRACE_S
        elif time.monotonic() >= self._end_s:
            for number, control in enumerate(controls):
                with contextlib.suppress(*self._asker.errors):
                    self._asker.cut_off(control, _NAME.format(number))

    def _recording(self) -> dict[str, Any]:
        keys = ("clients", "pace", "interval_s", "out_dir", "seed", "duration_s")
        return {key: self._document[key] for key in keys} | {
            "labels": self._queries["labels"],
            "burn_in": self._queries["burn_in"],
        }

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
        answer, trouble = None, None
        with self._asker.at_most(control, limit_s):
            start_ns = time.monotonic_ns()
            try:
                answer = self._asker.answer(control, job.sql)
            except self._asker.errors as error:
                trouble = _words_of(error)
            end_ns = time.monotonic_ns()
        if trouble is not None and end_ns - start_ns >= limit_s * 1e9:
            trouble = ("timeout", f"no answer within {limit_s:g} s")
        if trouble is None:
            trouble = self._look_at(job, answer)
        if self._noted is not None:
            with self._telling:
                self._noted(start_ns, end_ns)
        intended_ns = start_ns if job.intended_ns is None else job.intended_ns
        if trouble is None:
            recorder.sample(job.label, intended_ns, start_ns, end_ns)
        else:
            recorder.fail(job.label, intended_ns, start_ns, end_ns, *trouble)
            if self._brittle:
                self._broken = trouble[1]
                self._feed.end()

    def _look_at(self, job: _Job, answer: Any) -> tuple[str, str] | None:
        """Show an answer, and compare it with the first; returns what is wrong, as state and message."""
        if self._told is not None:
            with self._telling:
                self._told(job.sql, answer)
        if self._answers is None or not isinstance(answer, pa.Table):
            return None
        words = self._answers.take(job.query, job.sql, answer)
        return (CHANGED, words) if words else None

    def _account(self, recorder: _core.Recorder) -> Account:
        if self._trouble:
            raise self._trouble[0]
        state = "interrupted" if self._stopped.is_set() else "aborted" if self._broken else "complete"
        account: Account = json.loads(recorder.finish(state, self._broken))
        # Only now: the drive lasts until it is finished, and to digest answers is no part of it.
        account["queries"] |= self._answers.listed() if self._answers is not None else {"answers": []}
        if self._document["out_dir"] is not None:
            write_atomic(Path(self._document["out_dir"]) / "drive.json", to_json(account, indent=1))
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
        self._ended = False

    def begin(self, begun_ns: int) -> None:
        """Say when the clock of pace and duration began."""
        self._begun_ns = begun_ns

    def end(self) -> None:
        """Give no more queries."""
        self._ended = True

    def next(self) -> _Job | None:
        """Return the next query; None when there is no more."""
        with self._lock:
            if self._ended or self._stopped.is_set() or (self._most and self._given >= self._most):
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


def _words_of(error: BaseException) -> tuple[str, str]:
    """Return an error's SQLSTATE, or the name of its class, and its first line."""
    state = getattr(error, "sqlstate", None) or type(error).__name__
    return str(state), str(error).strip().split("\n", 1)[0]


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
