"""Watches machine, server and ourselves once a second, in threads of its own, into monitor.jsonl.

The server's own counters are asked for by SQL in a second thread: a server that hangs costs that part of a
sample, never the sample.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from loadstone.errors import LoadstoneError
from loadstone.host.cgroup import ControlGroup
from loadstone.host.gpu import Gpus
from loadstone.host.procfs import Host, ProcessTree, own_process

if TYPE_CHECKING:
    from pathlib import Path

Sample = dict[str, Any]
T = TypeVar("T")
Level = Literal["info", "warning", "error"]
Write = Callable[[Mapping[str, object]], object]
"""Takes one line; may raise LoadstoneError or OSError when it cannot."""
LogEvent = Callable[[Level, str, str], object]
"""Takes an event: level, message, hint. Called from the monitor's threads."""
Ask = Callable[[], Sample | None]
"""Asks the server for `engine` of monitor.jsonl; None when there is nothing to see."""

_STOP_S = 1.9
"""Within which `stop` returns, whatever hangs."""
_LAST_WAIT_S = 0.5
"""How long an ending monitor waits for the server's answer to its last question."""
_PAUSE_NS = 200_000_000
"""A wait that ends so much later than asked was one of a process that was stopped."""
_RETRY_LIMIT_S = 30.0
_BY_SQL = "The server's own counters"
_OUTAGES_LOGGED = 5


def next_deadline(deadline_ns: int, interval_ns: int, now_ns: int) -> int:
    """Return the next moment of the grid after `now_ns`: no drift, and no burst after a long delay."""
    missed = max(0, (now_ns - deadline_ns) // interval_ns)
    return deadline_ns + (missed + 1) * interval_ns


class Questions:
    """Asks one question at a time in a thread of its own and hands the answer over if it comes in time."""

    def __init__(self, ask: Ask, tell: LogEvent, interval_s: float, subject: str = _BY_SQL) -> None:
        """Prepare; the thread starts with the first question. `subject`, in the plural, is asked for."""
        self._subject = subject
        self._ask = ask
        self._tell = tell
        self._interval_s = interval_s
        self._grace_ns = int(interval_s * 1e9)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._asked = self._answered = 0
        self._answer: Sample | None = None
        self._failure: str | None = None
        self._failures = self._outages = 0
        self._troubled = False
        self._retry_ns = 0

    def ask(self) -> int | None:
        """Ask for an answer; returns its number, None while the last one is still due or we hold back."""
        with self._changed:
            self._closing = False
            if self._asked > self._answered or time.monotonic_ns() < self._retry_ns:
                return None
            self._asked += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="loadstone-questions", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._asked

    def answer(self, number: int, until: Callable[[], int]) -> Sample | None:
        """Return the answer `number`; None when it failed or has not come by `until()` (monotonic ns)."""
        with self._changed:
            grace_ns = 0
            while self._answered < number:
                before_ns = time.monotonic_ns()
                left_ns = until() + grace_ns - before_ns
                if left_ns <= 0:
                    break
                self._changed.wait(left_ns / 1e9)
                over_ns = time.monotonic_ns() - before_ns - left_ns
                if over_ns > _PAUSE_NS and not grace_ns:
                    grace_ns = over_ns + self._grace_ns  # we were stopped, and could take no answer
            in_time = self._answered >= number
            answer, failure = (self._answer, self._failure) if in_time else (None, None)
        if not in_time:
            self._trouble("it did not answer in time")
        elif failure is not None:
            self._trouble(failure)
        else:
            self._recover()
        return answer

    def wake(self) -> None:
        """Make a waiting `answer` look at its `until` again."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Let the thread end when its question is answered; never waits."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._asked == self._answered and not self._closing:
                    self._changed.wait()
                if self._asked == self._answered:
                    self._thread = None
                    return
            answer, failure = self._try()
            with self._changed:
                self._answered, self._answer, self._failure = self._asked, answer, failure
                self._failures = self._failures + 1 if failure else 0
                wait_s = min(_RETRY_LIMIT_S, self._interval_s * 2 ** min(self._failures - 1, 10))
                self._retry_ns = time.monotonic_ns() + int(wait_s * 1e9) if failure else 0
                self._changed.notify_all()

    def _try(self) -> tuple[Sample | None, str | None]:
        try:
            return self._ask(), None
        except Exception as error:  # noqa: BLE001 - whatever a driver raises, watching goes on
            return None, str(error).strip() or type(error).__name__

    def _trouble(self, reason: str) -> None:
        if self._troubled:
            return
        self._troubled = True
        self._outages += 1
        if self._outages <= _OUTAGES_LOGGED:
            last = " Further gaps are not reported." if self._outages == _OUTAGES_LOGGED else ""
            hint = f"The report has a gap here; Loadstone tries again.{last}"
            self._tell("warning", f"{self._subject} cannot be read: {reason}", hint)

    def _recover(self) -> None:
        if self._troubled and self._outages <= _OUTAGES_LOGGED:
            self._tell("info", f"{self._subject} can be read again.", "")
        self._troubled = False


@dataclass(frozen=True, slots=True)
class Watched:
    """What there is to watch."""

    server_pid: int | None = None
    """The server's first process (PostgreSQL's postmaster) when it is on this machine."""
    paths: Sequence[Path] = field(default_factory=tuple)
    """Paths on the disks that matter; without any, all disks are watched."""
    ask: Ask | None = None
    """Asks the server by SQL on a connection of its own; always called from one thread at a time."""
    sources: Mapping[str, Ask] = field(default_factory=dict)
    """What watches the server's machine, another one: asks for entries of `watch` of monitor.jsonl, each in a
    thread of its own. The names are shown."""


class Monitor:
    """Samples from `start` to `stop`; both may be called at any time and more than once.

    The first sample is taken at once and the last one at `stop`, so the shortest phase has two.
    """

    def __init__(self, watched: Watched, write: Write, tell: LogEvent, *, interval_s: float = 1.0) -> None:
        """Prepare; nothing is watched before `start`."""
        self._write = write
        self._tell_event = tell
        self._interval_ns = int(interval_s * 1e9)
        self._host = Host(watched.paths)
        self._tree = ProcessTree(watched.server_pid) if watched.server_pid is not None else None
        self._group = ControlGroup.of(watched.server_pid) if watched.server_pid is not None else None
        self._oom_kills: int | None = None
        self._gpus: Gpus | None = None
        self._questions = Questions(watched.ask, self._tell, interval_s) if watched.ask else None
        self._sources = [
            Questions(ask, self._tell, interval_s, f"The counters of {name}")
            for name, ask in watched.sources.items()
        ]
        self._logged: set[str] = set()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._stop_ns: int | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to sample; does nothing when it is running."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._stopping = threading.Event()
            self._stop_ns = None
            arguments = (self._stopping,)
            self._thread = threading.Thread(
                target=self._run, args=arguments, name="loadstone-monitor", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Take a last sample and end; returns within two seconds even when the server or the disk hangs."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._stop_ns = time.monotonic_ns()
        self._stopping.set()
        for questions in self._all_questions():
            questions.wake()
        if thread is not threading.current_thread():
            thread.join(_STOP_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Take no samples inside the context: the server is started again in it."""
        under_way = self._thread is not None
        self.stop()
        try:
            yield
        finally:
            if under_way:
                self.start()

    def watch_server(self, pid: int) -> None:
        """Watch another process: the server was started again."""
        if self._tree is None:
            self._tree = ProcessTree(pid)
        else:
            self._tree.watch(pid)
        self._group = ControlGroup.of(pid)
        self._logged.discard("server")

    def _run(self, stopping: threading.Event) -> None:
        self._gpus = Gpus()
        deadline_ns = time.monotonic_ns()
        while not stopping.is_set():
            late_ns = time.monotonic_ns() - deadline_ns
            begin_ns = deadline_ns + late_ns if late_ns > _PAUSE_NS else deadline_ns
            self._sample(begin_ns + self._interval_ns)
            now_ns = time.monotonic_ns()
            deadline_ns = next_deadline(deadline_ns, self._interval_ns, now_ns)
            stopping.wait((deadline_ns - now_ns) / 1e9)
        self._sample(time.monotonic_ns() + int(_LAST_WAIT_S * 1e9))
        for questions in self._all_questions():
            questions.close()
        self._gpus.close()

    def _all_questions(self) -> list[Questions]:
        return [*([self._questions] if self._questions else []), *self._sources]

    def _sample(self, until_ns: int) -> None:
        number = self._questions.ask() if self._questions else None
        watching = [(source, source.ask()) for source in self._sources]
        sample: Sample = {
            "t_ns": time.monotonic_ns(),
            "host": self._part("host", self._host.sample),
            "server": self._part("server", self._server),
            "client": self._part("client", own_process),
            "group": self._part("group", self._control_group),
            "gpu": self._part("gpu", self._graphics),
            "engine": None,
        }
        if number is not None and self._questions is not None:
            sample["engine"] = self._questions.answer(number, lambda: self._patience_ns(until_ns))
        if watching:
            sample["watch"] = self._watched(watching, until_ns)
        try:
            self._write(sample)
        except (LoadstoneError, OSError) as error:
            self._tell_once("write", f"Samples of the machine are lost: {error}")

    def _watched(self, asked: Sequence[tuple[Questions, int | None]], until_ns: int) -> list[Sample]:
        """Return what has answered in time."""
        answers = (
            source.answer(number, lambda: self._patience_ns(until_ns))
            for source, number in asked
            if number is not None
        )
        return [answer for answer in answers if answer is not None]

    def _patience_ns(self, until_ns: int) -> int:
        """Until when to wait for the server: less when we are to stop."""
        if self._stop_ns is None:
            return until_ns - self._interval_ns // 20  # time to write the line before the next sample
        return min(until_ns, self._stop_ns + int(2 * _LAST_WAIT_S * 1e9))

    def _server(self) -> Sample | None:
        if self._tree is None:
            return None
        sample = self._tree.sample()
        if sample is None:
            self._tell_once("server", "The server's processes have ended.")
        elif sample["read_bytes"] is None:
            reason = "run Loadstone as root or as the server's user to see them."
            self._tell_once(
                "io", f"Loadstone cannot see what the server's processes read and write: {reason}"
            )
        return sample

    def _control_group(self) -> Sample | None:
        sample = self._group.sample() if self._group is not None else None
        if sample is None:
            return None
        kills, before = sample["oom_kills"], self._oom_kills
        if kills is not None:
            self._oom_kills = kills
            if before is not None and kills > before:
                limit = sample["limit_bytes"]
                self._tell(
                    "warning",
                    f"The system killed {kills - before} of the server's processes because memory ran out.",
                    f"The control group's limit is {limit:,} bytes." if limit else "",
                )
        return sample

    def _graphics(self) -> list[Sample] | None:
        sample = self._gpus.sample() if self._gpus is not None else None
        for words in self._gpus.gone if self._gpus is not None else ():
            self._tell_once(words, words)
        return sample

    def _part(self, name: str, take: Callable[[], T | None]) -> T | None:
        try:
            return take()
        except Exception as error:  # noqa: BLE001 - an odd kernel may cost a part of the sample, not the run
            self._tell_once(name, f"The samples “{name}” cannot be read here: {error}")
            return None

    def _tell_once(self, key: str, message: str) -> None:
        if key not in self._logged:
            self._logged.add(key)
            self._tell("warning", message, "")

    def _tell(self, level: Level, message: str, hint: str) -> None:
        try:
            self._tell_event(level, message, hint)
        except (LoadstoneError, OSError):
            self._logged.add("write")  # the same full disk; whoever owns the folder has been told
