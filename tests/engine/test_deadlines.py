"""Time limits of blocking calls: kept, called off, by one thread for any number of them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from support.sandbox import wait_until

from loadstone.engine.library.deadlines import Deadlines

if TYPE_CHECKING:
    import pytest


def waiting() -> int:
    return sum(thread.name == "loadstone-deadlines" for thread in threading.enumerate())


def test_what_takes_too_long_is_told_once_and_not_before() -> None:
    told: list[float] = []
    deadlines, later, begun = Deadlines(), threading.Event(), time.monotonic()
    with deadlines.within(0.2, lambda: told.append(time.monotonic() - begun)):
        wait_until(lambda: bool(told), "the call")
        with deadlines.within(0.1, later.set):  # a second call would be due before this one
            assert later.wait(120)
    (after,) = told
    assert after >= 0.2


def test_what_ends_in_time_is_not_told() -> None:
    told: list[int] = []
    deadlines = Deadlines()
    for number in range(100):
        with deadlines.within(0.3, lambda number=number: told.append(number)):  # type: ignore[misc]
            pass
    with deadlines.within(0.4, lambda: told.append(-1)):  # all others would be due before this one
        wait_until(lambda: -1 in told, "the last one's call")
    assert told == [-1]


def test_a_late_call_that_hangs_keeps_no_other_waiting() -> None:
    deadlines, hangs, told = Deadlines(), threading.Event(), threading.Event()

    def hang() -> None:
        hangs.wait(60)

    with deadlines.within(0.0, hang):
        with deadlines.within(0.1, told.set):
            assert told.wait(30)
        hangs.set()


def test_one_thread_waits_for_all_and_ends_with_them() -> None:
    deadlines, before = Deadlines(), waiting()
    ended = threading.Event()

    def ask() -> None:
        with deadlines.within(60, lambda: None):
            ended.wait(30)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert waiting() <= before + 1
    ended.set()
    for thread in threads:
        thread.join()
    wait_until(lambda: waiting() <= before, "the end of the thread that waits")
    with deadlines.within(0.0, ended.clear):
        wait_until(lambda: not ended.is_set(), "the call of a new one")


def test_a_call_for_which_there_is_no_thread_is_made_when_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deadlines, refused, told = Deadlines(), threading.Event(), threading.Event()
    start = threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        if thread.name == "loadstone-late" and not refused.is_set():
            refused.set()
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    with deadlines.within(0.0, told.set):
        assert told.wait(30)
    assert refused.is_set()
