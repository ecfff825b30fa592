"""Searches on a server that becomes slower for good: they say so, and end undecided."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.simulated_queues import P99, Queue, SimulatedBench

from loadstone.errors import ExitCode
from loadstone.slo import texts
from loadstone.slo.changed import FEWEST_BEFORE, FEWEST_SINCE, change_of
from loadstone.slo.documents import Slo, Trial
from loadstone.slo.experiment import SloSearch
from loadstone.slo.page import page


def searched(bench: SimulatedBench, **changes: Any) -> SloSearch:
    document = Slo(
        format=1, loadstone="0", id="x", state="running", started_at="", command=[], scenario="s", phase="p",
        size="tiny", seed=1, target="pg18", parameters={}, settings={}, limits=[P99.text], errors=None,
        **changes,
    )  # fmt: skip
    search = SloSearch(document, lambda _: None, bench, window_s=30, most=25)
    search.run()
    return search


def changed(slower_from: int, seeds: int) -> list[Slo]:
    """Return searches on servers that do half as much from a trial on."""
    queues = (Queue(np.random.default_rng(seed), noise=0.03) for seed in range(seeds))
    return [searched(SimulatedBench(queue, slower_from)).document for queue in queues]


def test_a_server_that_halves_its_rate_is_noticed() -> None:
    found = changed(slower_from=10, seeds=16)
    noticed = [one for one in found if one.changed is not None]
    assert all(one.found == "found" for one in found if one not in noticed), "decided by the trials before"
    assert len(noticed) > 0.75 * len(found)
    for one in noticed:
        assert one.changed is not None
        assert (one.state, one.found) == ("complete", "not decided")
        assert (one.lower, one.upper, one.binds, one.irregular) == (None, None, None, [])
        assert max(one.changed.before) < 10 <= min(one.changed.since)
        assert len(one.changed.since) >= FEWEST_SINCE
    assert np.median([len(one.trials) for one in noticed]) < 18, "no more trials are made"


def test_the_answer_says_when_and_at_which_rates() -> None:
    search = searched(SimulatedBench(Queue(np.random.default_rng(3)), slower_from=9), required=400.0)
    found = search.document
    assert found.changed is not None
    answer = texts.answer(found)
    assert "p99=20ms: not decided: the server became slower during the search" in answer
    times = re.findall(r"\d\d:\d\d:\d\d UTC", answer)
    first, last = (found.trials[one - 1] for one in (found.changed.before[-1], found.changed.since[0]))
    assert [one[:8] for one in times] == [(trial.started_at or "")[11:19] for trial in (first, last)]
    assert "trials " in answer
    assert "kept at" not in answer
    assert "became slower" in texts.markdown(found)
    assert "became slower" in page(found, pytest.fail)
    assert search.required() is ExitCode.UNDECIDED, "400/s was kept only before"


def test_a_search_that_ran_out_of_trials_compares_those_of_any_length() -> None:
    """The server is slower from the first whole trial on: whole ones of before are missing."""
    undecided = [one for one in changed(slower_from=7, seeds=8) if one.found == "not decided"]
    assert undecided
    for one in undecided:
        assert one.changed is not None
        assert max(one.changed.before) < 7 <= min(one.changed.since)


def trial(number: int, rate: float, in_time: float, *, whole: bool = True, counted: bool = True) -> Trial:
    return Trial(
        number=number, kind="whole" if whole else "short", rate=rate, seconds=30, folder="", should=1000,
        in_time=[round(1000 * in_time)], failed=0, misses=[] if in_time >= P99.share else [P99.text],
        done_per_s=rate, counted=counted,
    )  # fmt: skip


def trials(*found: Trial) -> list[Trial]:
    return [replace(one, number=number) for number, one in enumerate(found, 1)]


NEAR = [trial(0, 800.0, 0.995), trial(0, 840.0, 0.97)]
FAR = [trial(0, 800.0, 0.1)] * FEWEST_SINCE


def test_a_few_bad_trials_are_disturbances() -> None:
    assert change_of(trials(*NEAR, *FAR[1:]), (P99,)) is None
    assert change_of(trials(*NEAR, *FAR[1:], trial(0, 800.0, 0.9), FAR[0]), (P99,)) is None, "it came back"
    assert change_of(trials(NEAR[0], *FAR), (P99,)) is None, "once is chance"
    narrow = [trial(0, 800.0, 0.6)] * 9
    assert change_of(trials(*NEAR, *narrow), (P99,)) is None


def test_higher_loads_and_longer_trials_may_be_far_from_the_limits() -> None:
    higher = [trial(0, 900.0, 0.0)] * 9
    assert change_of(trials(*NEAR, *higher), (P99,)) is None
    short = [trial(0, 800.0, 0.995, whole=False)] * FEWEST_BEFORE
    assert change_of(trials(*short, *FAR), (P99,)) is None
    assert change_of(trials(*short, *FAR), (P99,), any_length=True) is not None


@given(
    st.lists(st.tuples(st.sampled_from([500.0, 600.0, 700.0, 800.0]), st.booleans()), max_size=24),
    st.floats(400, 900),
)
def test_a_server_with_a_sharp_boundary_never_seems_to_change(
    made: list[tuple[float, bool]], boundary: float
) -> None:
    found = [trial(0, rate, 1.0 if rate <= boundary else 0.0, whole=whole) for rate, whole in made]
    assert change_of(trials(*found), (P99,)) is None
    assert change_of(trials(*found), (P99,), any_length=True) is None
