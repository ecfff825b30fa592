"""The monitor keeps its beat whatever hangs, and says once what it cannot see."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import RunFailedError
from loadstone.host.monitor import Level, Monitor, Questions, Watched, next_deadline
from loadstone.results.folder import RunFolder

FAST = 0.05
CALM = 0.5
"""Between samples where the answer to each question must come in time, which is before the next sample."""


class Log:
    """Collects what the monitor writes and tells; `wait` until there is enough of it."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.events: list[tuple[str, str, str]] = []
        self.changed = threading.Condition()

    def write(self, line: Mapping[str, object]) -> None:
        with self.changed:
            self.lines.append(dict(line))
            self.changed.notify_all()

    def tell(self, level: Level, message: str, hint: str) -> None:
        with self.changed:
            self.events.append((level, message, hint))
            self.changed.notify_all()

    def wait(self, condition: Callable[[], bool], timeout: float = 120) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, timeout), (self.lines[-3:], self.events)

    def wait_lines(self, count: int) -> None:
        self.wait(lambda: len(self.lines) >= count)


@pytest.fixture
def log() -> Log:
    return Log()


def monitor(log: Log, interval_s: float = FAST, **watched: Any) -> Monitor:
    return Monitor(Watched(**watched), log.write, log.tell, interval_s=interval_s)


def test_lines_have_the_keys_of_the_format(log: Log) -> None:
    with monitor(log, interval_s=20, ask=lambda: {"counters": {"wal_bytes": 1}}):
        log.wait_lines(1)
    line = log.lines[0]
    assert list(line) == ["t_ns", "host", "server", "client", "group", "gpu", "engine"]
    assert set(line["host"]) == {
        "cpu_s",
        "cores",
        "load1",
        "memory_total_bytes",
        "memory_available_bytes",
        "swap_used_bytes",
        "disk",
        "network",
        "pressure",
        "throttled_s",
    }
    assert set(line["client"]) == {"cpu_user_s", "cpu_system_s", "rss_bytes"}
    assert line["server"] is None
    assert line["engine"] == {"counters": {"wal_bytes": 1}}
    assert log.events == []


def test_samples_are_never_early(log: Log) -> None:
    begin = time.monotonic_ns()
    with monitor(log):
        log.wait_lines(20)
    times = [line["t_ns"] for line in log.lines[:-1]]
    assert times == sorted(times)
    assert times[0] >= begin
    # Never early: sample n is taken at or after its moment, so delays do not add up to a longer period.
    assert all(t - begin >= number * FAST * 1e9 for number, t in enumerate(times))


@given(st.integers(0, 2**62), st.integers(1, 10**10), st.integers(-(10**11), 10**11))
def test_the_next_deadline(deadline: int, interval: int, late: int) -> None:
    now = deadline + late
    following = next_deadline(deadline, interval, now)
    assert (following - deadline) % interval == 0
    assert following > now or late < 0
    assert following - max(now, deadline) <= interval


def test_the_shortest_phase_has_a_first_and_a_last_sample(log: Log) -> None:
    watching = monitor(log, interval_s=60)
    watching.start()
    log.wait_lines(1)
    watching.stop()
    assert len(log.lines) == 2


def test_start_and_stop_at_any_time(log: Log) -> None:
    watching = monitor(log)
    watching.stop()
    watching.start()
    watching.start()
    log.wait_lines(2)
    watching.stop()
    count = len(log.lines)
    watching.stop()
    watching.start()
    log.wait_lines(count + 2)
    watching.stop()
    assert [t.name for t in threading.enumerate() if t.name == "loadstone-monitor"] == []


def test_a_hung_server_leaves_its_part_empty_and_nothing_else(log: Log) -> None:
    release, calls = threading.Event(), []

    def ask() -> dict[str, Any]:
        calls.append(time.monotonic_ns())
        if len(calls) == 1:
            release.wait(60)
        return {"counters": {}}

    with monitor(log, CALM / 2, ask=ask):
        log.wait_lines(4)
        assert len(calls) == 1  # no second question while the first is open
        assert all(line["engine"] is None and line["host"] for line in log.lines)
        release.set()
        log.wait(lambda: log.lines[-1]["engine"] is not None)
        log.wait(lambda: len(log.events) == 2)
    assert [(level, "did not answer in time" in text) for level, text, _ in log.events] == [
        ("warning", True),
        ("info", False),
    ]


def test_a_pause_of_our_own_is_not_blamed_on_the_server(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer comes when we go on: only then can it be taken."""
    release, clock = threading.Event(), iter([0, 0])

    def ask() -> dict[str, Any]:
        release.wait(60)
        return {"counters": {}}

    def until() -> int:
        if asked.is_set():
            release.set()
        asked.set()
        return 1_000_000

    asked = threading.Event()
    # In this module alone: other threads of the process read the clock as well.
    told = {"monotonic_ns": lambda: next(clock, 5_000_000_000)}
    monkeypatch.setattr("loadstone.host.monitor.time", SimpleNamespace(**(vars(time) | told)))
    questions = Questions(ask, log.tell, 60.0)
    number = questions.ask()
    assert number is not None
    assert questions.answer(number, until) == {"counters": {}}
    questions.close()
    assert log.events == []


def test_stop_returns_though_the_server_hangs(log: Log) -> None:
    asked, release = threading.Event(), threading.Event()

    def ask() -> None:
        asked.set()
        release.wait(60)

    watching = monitor(log, interval_s=60, ask=ask)
    watching.start()
    assert asked.wait(120)
    begin = time.monotonic()
    watching.stop()
    assert time.monotonic() - begin < 30.0
    assert [line["engine"] for line in log.lines] == [None, None]
    watching.start()  # the question is still open: no second thread may ask beside it
    assert len([t for t in threading.enumerate() if t.name == "loadstone-questions"]) == 1
    watching.stop()
    release.set()


def test_a_server_that_fails_is_asked_more_and_more_seldom_and_told_once(log: Log) -> None:
    calls = []

    def ask() -> dict[str, Any]:
        calls.append(len(log.lines))
        raise OSError("connection refused")

    with monitor(log, CALM / 2, ask=ask):
        log.wait_lines(8)
    assert 2 <= len(calls) <= 5  # without holding back it would be once a line
    (event,) = log.events
    assert event[0] == "warning"
    assert "connection refused" in event[1]


def test_an_answer_of_none_is_no_trouble(log: Log) -> None:
    with monitor(log, CALM, ask=lambda: None):
        log.wait_lines(3)
    assert log.events == []


def test_lines_that_cannot_be_written_are_told_once_and_watching_goes_on(log: Log) -> None:
    def write(line: Mapping[str, object]) -> None:
        log.write(line)
        if len(log.lines) < 4:
            raise RunFailedError("No space left on device.")

    watching = Monitor(Watched(), write, log.tell, interval_s=FAST)
    with watching:
        log.wait_lines(6)
    (event,) = log.events
    assert event[0] == "warning"
    assert "No space left" in event[1]


def test_a_server_that_is_gone_is_told_once_and_again_after_a_restart(log: Log) -> None:
    watching = monitor(log, server_pid=2**22 + 1)
    with watching:
        log.wait_lines(4)
        assert [text for _, text, _ in log.events] == ["The server's processes have ended."]
        watching.watch_server(2**22 + 2)
        log.wait(lambda: len(log.events) == 2)
    assert all(line["server"] is None for line in log.lines)


def test_a_sample_that_takes_long_is_followed_by_no_burst(log: Log) -> None:
    slow = threading.Event()

    def write(line: Mapping[str, object]) -> None:
        log.write(line)
        if not slow.is_set():
            slow.set()
            time.sleep(10 * FAST)  # the sample that takes long

    watching = Monitor(Watched(), write, log.tell, interval_s=FAST)
    with watching:
        log.wait_lines(4)
    assert log.lines[1]["t_ns"] - log.lines[0]["t_ns"] >= 9 * FAST * 1e9


def test_into_a_real_run_folder(log: Log, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run", "id")
    target = folder.target("pg18")
    lines = target.monitor()

    def tell(level: Level, message: str, hint: str) -> None:
        folder.event(level, "warning", message, hint=hint, target="pg18")
        log.tell(level, message, hint)

    def write(line: Mapping[str, object]) -> None:
        lines.write(line)
        log.write(line)

    with Monitor(Watched(server_pid=2**22 + 1, paths=[tmp_path]), write, tell, interval_s=FAST):
        log.wait(lambda: len(log.lines) >= 2 and len(log.events) >= 1)
    lines.close()
    samples = list(target.read_monitor())
    assert len(samples) >= 2
    host = samples[0].host
    assert host
    assert host.cpu_s
    assert (host.cpu_s.idle or 0) > 0
    assert [event.message for event in folder.read_events()] == ["The server's processes have ended."]
    folder.close()


def test_a_gpu_is_sampled_and_its_end_is_told_once(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    class Fading:
        """One GPU that is lost after the second sample."""

        def __init__(self) -> None:
            self.gone: list[str] = []
            self.samples = 0

        def sample(self) -> list[dict[str, Any]]:
            self.samples += 1
            if self.samples > 2:
                self.gone = ["GPU 0 (H100) no longer answers: GPU is lost"]
            return [{"index": 0, "utilisation": 0.5 if self.samples <= 2 else None}]

        def close(self) -> None:
            self.samples = -1000

    gpus = Fading()
    monkeypatch.setattr("loadstone.host.monitor.Gpus", lambda: gpus)
    with monitor(log):
        log.wait_lines(5)
    assert [line["gpu"][0]["utilisation"] for line in log.lines[:4]] == [0.5, 0.5, None, None]
    assert [text for _, text, _ in log.events] == ["GPU 0 (H100) no longer answers: GPU is lost"]
    assert gpus.samples == -1000


def test_processes_killed_for_want_of_memory_are_told(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    kills = [3, 3, 5, 5]

    class Group:
        @staticmethod
        def of(pid: int) -> "Group":
            assert pid == 2**22 + 1
            return Group()

        def sample(self) -> dict[str, Any]:
            return {"limit_bytes": 100663296, "oom_kills": kills.pop(0) if len(kills) > 1 else kills[0]}

    monkeypatch.setattr("loadstone.host.monitor.ControlGroup", Group)
    with monitor(log, server_pid=2**22 + 1):
        log.wait_lines(5)
    assert [line["group"]["oom_kills"] for line in log.lines[:4]] == [3, 3, 5, 5]
    told = [(text, hint) for _, text, hint in log.events if "memory" in text]
    assert told == [
        (
            "The system killed 2 of the server's processes because memory ran out.",
            "The control group's limit is 100,663,296 bytes.",
        )
    ]
