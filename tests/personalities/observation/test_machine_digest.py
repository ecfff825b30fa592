"""The digest of a watched machine: means over the measured time, without keeping samples."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.personalities.observation.machine import Digest

SECOND = 10**9
SOURCE = "http://db1:9100/metrics"


def line(at_s: float, busy_s: float, *, there: bool = True) -> dict[str, Any]:
    """A line of monitor.jsonl, of a machine with one core."""
    t_ns = round(at_s * SECOND)
    cpu = {"user": busy_s, "idle": round(at_s - busy_s, 2)}
    entry = {
        "source": SOURCE, "t_ns": t_ns, "clock_offset_s": None, "clock_error_s": None, "server": None,
        "host": {"cpu_s": cpu, "cores": 1}, "counters": None, "gauges": None,
    }  # fmt: skip
    return {"t_ns": t_ns, "host": {"ours": True}, "watch": [entry] if there else []}


def digest(*lines: dict[str, Any], since_s: float = 0.0) -> Digest:
    found = Digest([SOURCE])
    found.since_ns = round(since_s * SECOND)
    for one in lines:
        found.take(one)
    return found


@given(st.lists(st.tuples(st.integers(10, 490), st.integers(0, 490)), min_size=1, max_size=30))
def test_the_mean_is_the_whole_growth_over_the_whole_time(steps: list[tuple[int, int]]) -> None:
    """Times in ticks of 10 ms, as the kernel counts them: length and busy part of each step."""
    at, busy, lines, shares = 10_000, 1_000, [line(100.0, 10.0)], []
    for length, most in steps:
        part = min(length, most)
        at, busy = at + length, busy + part
        lines.append(line(at / 100, busy / 100))
        shares.append(part / length)
    found = digest(*lines)
    assert found.mean("machine_cpu") == pytest.approx((busy - 1_000) / (at - 10_000), abs=1e-6)
    assert found.highest("machine_cpu") == pytest.approx(max(shares), abs=1e-6)


def test_what_came_before_the_measured_time_does_not_count() -> None:
    lines = [line(100, 0), line(101, 1), line(102, 1.25), line(103, 1.5)]
    assert digest(*lines, since_s=101).mean("machine_cpu") == pytest.approx(0.25)
    assert digest(*lines, since_s=104).mean("machine_cpu") is None


def test_before_a_drive_has_begun_nothing_counts() -> None:
    found = Digest([SOURCE])
    for one in (line(100, 0), line(101, 1)):
        found.take(one)
    assert found.mean("machine_cpu") is None


def test_a_gap_and_a_restart_are_no_figures() -> None:
    gap = digest(line(100, 0), line(101, 1, there=False), line(102, 2), line(103, 2.5))
    assert gap.mean("machine_cpu") == pytest.approx(0.5)
    assert (gap.samples, gap.seen[SOURCE]) == (4, 3)
    restarted = digest(line(100, 50), line(101, 0.5), line(102, 0.75))
    assert restarted.mean("machine_cpu") == pytest.approx(0.25)
