"""What the first, the second and the third signal do."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack

import pytest

from loadstone.errors import ExitCode
from loadstone.run.mixed import ConcurrentQueries
from loadstone.signals import InterruptedRun, Signals


def send(signum: int) -> None:
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize(
    ("signum", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, ExitCode.TERMINATED),
        (signal.SIGHUP, ExitCode.TERMINATED),
    ],
)
def test_the_first_one_interrupts_and_says_which_it_was(signum: int, code: ExitCode) -> None:
    with Signals() as signals, pytest.raises(InterruptedRun) as caught:
        send(signum)
    assert signals.received == signum
    assert caught.value.exit_code is code
    assert str(caught.value) == f"stopped by {signal.Signals(signum).name}"


def test_while_a_drive_is_under_way_the_first_one_stops_it_and_is_found_later() -> None:
    stopped = []
    with Signals() as signals:
        signals.check()
        signals.during(lambda: stopped.append(True))
        send(signal.SIGTERM)
        assert stopped == [True]
        assert not signals.impatient
        signals.during(None)
        with pytest.raises(InterruptedRun, match="SIGTERM"):
            signals.check()


def test_the_second_one_does_not_wait_for_the_drive_and_keeps_the_first_ones_code() -> None:
    stopped = []
    with Signals() as signals:
        signals.during(lambda: stopped.append(True))
        send(signal.SIGTERM)
        with pytest.raises(InterruptedRun) as caught:
            send(signal.SIGINT)
    assert stopped == [True]
    assert signals.impatient
    assert caught.value.exit_code is ExitCode.TERMINATED


def test_the_third_one_cannot_keep_us_from_cleaning_up() -> None:
    with Signals() as signals:
        for _ in range(2):
            with pytest.raises(InterruptedRun):
                send(signal.SIGINT)
        send(signal.SIGINT)
        send(signal.SIGTERM)
    assert signals.received == signal.SIGINT


def test_the_handlers_before_are_put_back() -> None:
    before = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    with Signals():
        pass
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            send(signal.SIGHUP)
        assert signals.received is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_drive_that_begins_after_a_signal_whose_exception_was_lost_is_stopped_at_once() -> None:
    stopped = []
    with Signals() as signals:
        with pytest.raises(InterruptedRun):
            send(signal.SIGINT)  # as if a library had made an error of its own of it, and that been handled
        signals.during(lambda: stopped.append(True))
        assert stopped == [True]
        signals.during(None)
        with pytest.raises(InterruptedRun, match="SIGINT"):
            signals.check()


def test_a_signal_while_what_ran_beside_a_load_ends_waits_for_its_end() -> None:
    gone = []

    def part(stopper: Signals) -> None:
        told = threading.Event()
        stopper.during(told.set)
        told.wait()
        send(signal.SIGINT)  # the load is over, and its company on its way out
        time.sleep(0.2)  # its way out takes a while: whoever did not wait would be seen
        gone.append(True)

    with Signals() as signals:
        concurrent = ConcurrentQueries(signals, [part])
        concurrent.during(lambda: None)
        concurrent.during(None)
        assert gone == [True]
        with pytest.raises(InterruptedRun):
            signals.check()


def test_a_signal_while_two_things_end_waits_for_both() -> None:
    done = []

    def end() -> None:
        send(signal.SIGINT)
        done.append(True)

    def use(signals: Signals) -> None:
        with signals.closing(ExitStack()) as outer:
            outer.callback(end)
            with signals.closing(ExitStack()):
                pass

    with Signals() as signals, pytest.raises(InterruptedRun):
        use(signals)
    assert done == [True]


def test_a_signal_after_the_end_of_one_thing_is_raised_at_once() -> None:
    with Signals() as signals:
        with signals.closing(ExitStack()):
            pass
        with pytest.raises(InterruptedRun):
            send(signal.SIGINT)
