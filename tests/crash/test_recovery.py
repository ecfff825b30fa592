"""Moments, recovery times and verdicts of crash tests, without a server."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.crash import texts
from loadstone.crash.documents import CommitCounts, Crash, Cycle, Flaw, Moment, Recovery
from loadstone.crash.moments import KINDS, moments
from loadstone.crash.recovery import back_at_rate, first_after, log_in_of_clients, rate_before, replayed
from loadstone.crash.verdict import bound, exit_of, verdict_of
from loadstone.errors import ExitCode

SECOND = 1_000_000_000
LOG = """\
2026-11-23 04:51:47.378 UTC [1] LOG:  database system was not properly shut down
2026-11-23 04:51:47.387 UTC [1] LOG:  redo starts at 0/FF000000
2026-11-23 04:51:47.425 UTC [2] FATAL:  the database system is not yet accepting connections
2026-11-23 04:51:49.487 UTC [1] LOG:  redo done at 1/01000000 system usage: CPU: user: 0.04 s
"""


@given(st.integers(0, 2**63 - 1), st.integers(1, 60), st.floats(0.5, 3600))
def test_a_third_of_the_moments_is_of_each_kind(seed: int, cycles: int, window_s: float) -> None:
    found = moments(seed, cycles, window_s)
    assert found == moments(seed, cycles, window_s)
    assert len(found) == cycles
    counts = Counter(moment.kind for moment in found)
    assert max(counts.values()) - min(counts.get(kind, 0) for kind in KINDS) <= 1
    for moment in found:
        assert 0.25 * window_s <= moment.after_s <= window_s
        assert moment.kind == "checkpoint" or not moment.delay_s
        assert moment.kind == "segment" or not moment.offset_bytes


def test_more_cycles_begin_with_the_same_moments() -> None:
    assert moments(7, 30, 5.0)[:10] == moments(7, 10, 5.0)


def test_rates_before_and_after_a_crash() -> None:
    before = np.arange(0, 5 * SECOND, SECOND // 100) + SECOND
    slow = 8 * SECOND + np.arange(0, SECOND, SECOND // 50)
    fast = 9 * SECOND + np.arange(0, 2 * SECOND, SECOND // 100)
    ns = np.concatenate([fast, before, np.zeros(7, np.int64), slow])
    rate = rate_before(ns, SECOND, 6 * SECOND)
    assert rate == pytest.approx(100, rel=0.02)
    assert first_after(ns, 7 * SECOND) == 1.0
    assert back_at_rate(ns, 7 * SECOND, rate) == pytest.approx(2.0, abs=0.1)
    assert back_at_rate(np.concatenate([before, slow]), 7 * SECOND, rate) is None
    assert first_after(before, 7 * SECOND) is None
    assert rate_before(ns[:0], SECOND, 6 * SECOND) is None


def test_the_replay_is_read_from_the_log() -> None:
    assert replayed(LOG) == (0x2000000, 2.1)
    assert replayed(LOG.replace("redo starts", "")) is None
    assert replayed("2026-11-23 04:51:47.378 UTC [1] LOG:  redo is not required\n") == (0, 0.0)
    assert replayed("") is None


def found(**changes: int) -> CommitCounts:
    counts = dict.fromkeys(("lost", "lost_allowed", "corrupt", "twice", "phantom", "holes"), 0)
    counts |= {"acknowledged": 1000, "unknown": 3, "unknown_present": 2} | changes
    return CommitCounts(**counts)


def cycle(number: int = 1, **changes: Any) -> Cycle:
    values: dict[str, Any] = {
        "number": number, "folder": "", "moment": Moment(kind="anywhere", after_s=1.0), "killed_ns": 1,
        "upto": [1], "allowed_s": 0.0, "recovery": Recovery(down_s=0.1), "found": found(), "restarted": True,
    }  # fmt: skip
    return Cycle(**(values | changes))


def document(cycles: list[Cycle], **changes: Any) -> Crash:
    values: dict[str, Any] = {
        "format": 1, "loadstone": "0", "id": "x", "state": "complete", "started_at": "", "command": [],
        "scenario": "s", "phase": "p", "size": "tiny", "seed": 1, "target": "pg18", "parameters": {},
        "settings": {}, "level": "process", "clients": 8, "wanted": len(cycles), "window_s": 5.0,
        "cycles": cycles, "checker": True,
    }  # fmt: skip
    made = Crash(**(values | changes))
    made.verdict = verdict_of(made)
    return made


def test_the_words_of_a_verdict() -> None:
    said = texts.answer(document([cycle(number) for number in range(1, 21)]))
    assert said.startswith(
        "20 crashes (process), 20,000 acknowledged, 0 lost, 0 phantom, 60 unknown (40 present). At 95 % "
        "confidence a crash of this kind loses something in less than 14 % of cases."
    )
    assert "shows nothing about a loss of power" in said


@pytest.mark.parametrize("crashes", [1, 3, 20, 59, 1000])
def test_the_bound_is_about_three_over_the_crashes(crashes: int) -> None:
    assert (1 - bound(crashes)) ** crashes == pytest.approx(0.05)
    assert bound(crashes) < 3 / crashes


DAMAGED = [
    *({"found": found(**{name: 1})} for name in ("lost", "corrupt", "twice", "phantom", "holes")),
    {"flaws": [Flaw(check="c", detail="d")]},
    {"restarted": False},
]


@pytest.mark.parametrize("changes", DAMAGED)
def test_any_damage_is_a_loss(changes: dict[str, Any]) -> None:
    made = document([cycle(), cycle(2, **changes)])
    assert made.verdict == "lost"
    assert exit_of(made, ExitCode.INTERRUPTED) == ExitCode.WRONG_ANSWER
    assert "see crash 2" in texts.answer(made)
    assert any(note.startswith("Crash 2: ") for note in texts.notes(made))


@pytest.mark.parametrize(
    ("changes", "verdict", "code"),
    [
        ({}, "kept", ExitCode.OK),
        ({"wanted": 3}, "undecided", ExitCode.UNDECIDED),
        ({"checker": False}, "cannot show a loss", ExitCode.UNDECIDED),
        ({"level": "power", "control": cycle(0)}, "cannot show a loss", ExitCode.UNDECIDED),
        ({"level": "power", "control": cycle(0, found=found(lost=9))}, "kept", ExitCode.OK),
        ({"level": "power", "control": cycle(0, found=None)}, "kept", ExitCode.OK),
        ({"level": "power", "wanted": 2}, "undecided", ExitCode.UNDECIDED),
        ({"data": "/somewhere"}, "did not come up", ExitCode.WRONG_ANSWER),
    ],
)
def test_verdicts(changes: dict[str, Any], verdict: str, code: ExitCode) -> None:
    made = document([cycle()], **changes)
    assert made.verdict == verdict
    assert exit_of(made, ExitCode.OK) == code
    assert texts.markdown(made)


def test_a_server_that_lost_commits_and_then_did_not_come_up_says_both() -> None:
    said = texts.answer(document([cycle(found=found(lost=9)), cycle(2, found=None)], data="/somewhere"))
    assert "see crash 1. The server did not come up again after crash 2." in said


def test_a_commit_of_a_client_shows_that_it_could_log_in() -> None:
    seen = Recovery(down_s=0.1, connection_s=1.76, commit_s=1.75)
    log_in_of_clients(seen)
    assert seen.connection_s == 1.75
    seen = Recovery(down_s=0.1, connection_s=1.0, commit_s=None)
    log_in_of_clients(seen)
    assert seen.connection_s == 1.0


def test_a_server_that_had_no_room_is_no_wrong_answer() -> None:
    made = document([cycle(found=None)], data="/somewhere")
    assert exit_of(made, ExitCode.FAILED) == ExitCode.FAILED
    assert exit_of(made, ExitCode.WRONG_ANSWER) == ExitCode.WRONG_ANSWER


def test_losses_of_asynchronous_commits_have_an_age() -> None:
    lost = cycle(allowed_s=0.6, found=found(lost_allowed=4))
    assert lost.found is not None
    lost.found.loss_window_s = 0.123
    said = texts.answer(document([lost]))
    assert "4 lost" in said
    assert (
        "may lose the last 0.600 s (3 × wal_writer_delay): 4 commits were lost so, the oldest 0.123 s" in said
    )
    assert "loses more than is allowed in less than" in said
