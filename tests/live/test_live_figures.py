"""What the listener keeps of a run that goes on."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.live_runs import PHASE, begun, progress

from loadstone.live.figures import INTERVALS_KEPT, LiveFigures, LiveTrial
from loadstone.results.redact import remember


def test_an_interval_counts_once_however_often_it_is_told() -> None:
    figures = begun()
    for at in (1, 1, 2, 2, 2):
        figures.progressed("pg18", PHASE, progress(at))
    assert [interval.t_s for interval in figures.intervals] == [1, 2]
    (totals,) = figures.totals.values()
    assert totals.outcomes == {"done": 200, "failed": 2, "skipped": 0, "dropped": 0}
    assert totals.response_s == 0.4
    assert figures.intervals[-1].rate_per_s == 100
    assert figures.intervals[-1].p99_s == 0.004


def cut_off(at: int, share: float, drive_ns: int) -> dict[str, Any]:
    """Progress whose interval is shorter than a second, of the drive that began then."""
    told = progress(at, start_ns=at * 10**9, end_ns=round((at + share) * 10**9))
    return told | {"start_ns": drive_ns}


def test_a_cut_off_interval_counts_but_has_no_rate() -> None:
    figures = begun()
    for told in (cut_off(1, 1, 1), cut_off(2, 1, 1), cut_off(3, 0.4, 1)):
        figures.progressed("pg18", PHASE, told)
    assert [interval.t_s for interval in figures.intervals] == [1, 2]
    assert figures.phase.outcomes["done"] == 300
    # The only one of a drive is shown, unless it is so short that its rate says nothing.
    figures.progressed("pg18", PHASE, cut_off(4, 0.4, 4))
    figures.progressed("pg18", PHASE, cut_off(5, 0.01, 5))
    assert [interval.t_s for interval in figures.intervals] == [1, 2, 3.4]
    (totals,) = figures.totals.values()
    assert (totals.outcomes["done"], totals.responses) == (500, 500)


def test_the_counts_of_a_phase_begin_with_it() -> None:
    figures = begun()
    figures.progressed("pg18", PHASE, progress(1, rows=7))
    figures.ended("pg18", {"state": "complete"})
    assert figures.phase.document() == {"done": 100, "failed": 1, "skipped": 0, "dropped": 0, "rows": 7}
    figures.began("pg18", PHASE)
    assert not any(figures.phase.document().values())
    figures.progressed("pg18", PHASE, progress(2, done=5))
    assert figures.phase.document()["done"] == 5
    (totals,) = figures.totals.values()
    assert totals.outcomes["done"] == 105, "what is counted for Prometheus only grows"


def test_drives_without_intervals_are_no_trouble() -> None:
    figures = begun()
    for told in ({}, {"latest": None}, progress(1, response=None)):
        figures.progressed("pg18", PHASE, told)
    assert figures.intervals[-1].p50_s is None


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=50))
def test_totals_are_the_sums_of_the_intervals(counts: list[tuple[int, int]]) -> None:
    figures = begun()
    for at, (done, failed) in enumerate(counts, start=1):
        figures.progressed("pg18", PHASE, progress(at, done, failed))
    for totals in figures.totals.values():
        assert totals.outcomes["done"] == sum(done for done, _ in counts)
        assert totals.outcomes["failed"] == sum(failed for _, failed in counts)
        assert totals.responses == totals.outcomes["done"]


def test_intervals_that_come_together_all_count_once() -> None:
    figures = begun()
    rows = [progress(at)["latest"] for at in (1, 2, 3)]
    figures.progressed("pg18", PHASE, {"latest": rows[1], "recent": rows[:2]})
    figures.progressed("pg18", PHASE, {"latest": rows[2], "recent": rows})
    assert [interval.t_s for interval in figures.intervals] == [1, 2, 3]


def test_a_trial_is_named_and_its_phases_are_counted_from_its_beginning() -> None:
    figures = begun()
    figures.expect(2)
    figures.ended("pg18", {"state": "complete"})
    assert (figures.now().phases, figures.now().phases_ended) == (2, 1)
    figures.try_out(LiveTrial(4, "short", offered_per_s=1234.4))
    assert figures.now().doing == "trial 4, short, 1,234/s offered: starting"
    figures.began("pg18", PHASE)
    assert figures.now().doing == "trial 4, short, 1,234/s offered: pg18: Insert: index=none"
    figures.expect(3)
    figures.ended("pg18", {"state": "complete"})
    assert (figures.now().phases, figures.now().phases_ended) == (3, 1)
    assert sum(figures.ended_phases.values()) == 2, "what is counted for Prometheus only grows"
    figures.try_out(LiveTrial(5, arm="A'", block=2))
    assert figures.now().doing == "trial 5, block 2, arm A': starting"


def test_memory_does_not_grow_with_the_run() -> None:
    figures = begun()
    for at in range(1, INTERVALS_KEPT + 100):
        figures.progressed("pg18", PHASE, progress(at))
    assert len(figures.intervals) == INTERVALS_KEPT


def test_secrets_and_control_characters_do_not_reach_a_reader() -> None:
    remember("linen-password")
    figures = LiveFigures()
    figures.said("opening \x1b[31m linen-password")
    assert figures.now().doing == "opening \\x1b[31m ***"
