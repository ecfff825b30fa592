"""When a trial that missed a limit says nothing about the server: our own threads were late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.stopped_drive import stopped

from loadstone import model
from loadstone.results.documents import Drive
from loadstone.results.documents.base import Counts, Stats
from loadstone.results.documents.drive import Loop
from loadstone.slo.counting import TrialPlan, counted
from loadstone.slo.lateness import delayed_share, was_late
from loadstone.slo.limits import limit
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

P90, P99 = limit("p90=20ms"), limit("p99=20ms")
WINDOW_NS = 10_000_000_000
BLANK = Drive(
    start_ns=0,
    measure_ns=0,
    end_ns=WINDOW_NS,
    counts=Counts(0, 0, 0, 0, 0),
    response=Stats(),
    bytes_sent=None,
)


def drive(turns_ns: Sequence[float], threads: int = 1) -> Drive:
    """Return a drive whose event loop made these turns."""
    turns = np.array(turns_ns)
    lag = Stats(len(turns), float(turns.mean()), float(turns.std()), float(turns.min()), float(turns.max()))
    return replace(BLANK, loop=Loop(lag=lag), threads=threads)


def test_short_turns_explain_nothing_and_long_ones_what_they_can() -> None:
    punctual = drive([50_000] * 100_000)
    assert not was_late(punctual, (P90, P99), ["p99=20ms"])
    # 60 times 30 ms of 10 s: 18 % of the time, in which 27 ms are waited for at most.
    stopped = drive([*[50_000] * 100_000, *[30e6] * 60])
    assert was_late(stopped, (P90, P99), ["p99=20ms", "p90=20ms"])
    # Ten times: enough to miss p99, and not p90.
    now_and_then = drive([*[50_000] * 100_000, *[30e6] * 10])
    assert was_late(now_and_then, (P90, P99), ["p99=20ms"])
    assert not was_late(now_and_then, (P90, P99), ["p99=20ms", "p90=20ms"])


def test_what_was_kept_needs_no_excuse_and_errors_have_none() -> None:
    stopped = drive([100e6] * 90)
    assert not was_late(stopped, (P99,), [])
    assert not was_late(stopped, (P99,), ["errors"])
    assert not was_late(stopped, (P99,), ["p99=20ms", "errors"])
    assert not was_late(BLANK, (P99,), ["p99=20ms"]), "nothing is known of its threads"


@given(st.lists(st.floats(1e4, 2e8), min_size=1, max_size=60), st.integers(1, 4))
def test_the_share_is_never_too_small(turns_ns: list[float], threads: int) -> None:
    turns = np.array(turns_ns)
    total = threads * WINDOW_NS
    half = P99.ns / 2
    exact = 2 * np.maximum(turns - half, 0).sum() / total
    found = delayed_share(drive(turns_ns, threads), P99)
    assert found is not None
    assert found >= min(exact, 1) * (1 - 1e-9)
    assert found == pytest.approx(min(1, np.square(turns).sum() / (P99.ns * total)))


@pytest.mark.slow
def test_a_trial_in_which_our_process_was_stopped_is_known(tmp_path: Path) -> None:
    pace = model.Pace("poisson", 300.0)
    drive = model.Drive((model.Script("s", "select 1;\n"),), clients=16, threads=1, duration_s=2.5, pace=pace)
    with null_server(20) as (_, connection):
        account = stopped(drive_document(drive, connection, tmp_path), 0.7)
    (tmp_path / "drive.json").write_bytes(account)
    trial = counted(tmp_path / "drive.json", TrialPlan(1, "whole", 300.0, 2.5), (P90,), None)
    assert trial.misses == ["p90=20ms"], "a quarter of the transactions were late"
    assert trial.client_late
