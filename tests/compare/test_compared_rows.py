"""What a row of a comparison comes from: repeats, rounds of one repeat, or the spread inside single runs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.compare.metrics import Metric, PhaseValues, Turn
from loadstone.compare.rows import Compared, compared
from loadstone.results.documents.summary import Rate

RATE = Metric("rate", "tps", "higher")
VALUES = st.floats(0.01, 1e7)


def side(values: dict[Turn, float], relative_se: float | None = None) -> PhaseValues:
    phase = PhaseValues("own", "insert", "Insert", {}, primary="rate")
    for turn, value in values.items():
        rate = Rate(
            value=value, low=None, high=None, n=20, reason=None, degrees_of_freedom=9, relative_se=relative_se
        )
        phase.add(RATE, turn, value, rate)
    return phase


def repeats(*values: float) -> dict[Turn, float]:
    return {(number, 0): value for number, value in enumerate(values, 1)}


def row_of(a: PhaseValues, b: PhaseValues, *, in_turn: bool = True) -> Compared:
    return compared(a, b, "rate", in_turn=in_turn)


def test_three_repeats_decide() -> None:
    found = row_of(side(repeats(100, 110, 90)), side(repeats(80, 88, 72)))
    assert found.decides
    assert (found.row.basis, found.row.paired) == ("repeats", True)
    assert found.row.ratio == pytest.approx(0.8)
    assert found.row.noise == pytest.approx(0.1, rel=0.1)
    assert found.row.smallest_effect == pytest.approx(0, abs=1e-9), "every repeat says the same"


def test_rounds_of_one_repeat_only_indicate() -> None:
    rounds: dict[Turn, float] = {(1, number): 100.0 + number for number in range(1, 4)}
    found = row_of(side(rounds), side({turn: value * 0.5 for turn, value in rounds.items()}))
    assert not found.decides
    assert (found.row.basis, found.row.repeats_a) == ("rounds", 1)
    assert found.row.ratio == pytest.approx(0.5)


def test_rounds_of_enough_repeats_are_put_together() -> None:
    rounds: dict[Turn, float] = {(r, n): 100.0 * n for r in range(1, 4) for n in range(1, 4)}
    found = row_of(side(rounds), side(rounds))
    assert (found.row.basis, found.row.repeats_a) == ("repeats", 3)
    assert found.row.a == pytest.approx(math.prod((100, 200, 300)) ** (1 / 3))


def test_single_runs_have_the_interval_of_their_seconds() -> None:
    found = row_of(side(repeats(100), 0.02), side(repeats(120), 0.02))
    assert not found.decides
    assert (found.row.basis, found.row.repeats_a) == ("within", 1)
    assert found.row.low is not None
    assert 1 < found.row.low < 1.2
    bare = row_of(side(repeats(100)), side(repeats(120)))
    assert bare.row.ratio == pytest.approx(1.2)
    assert bare.row.low is None


def test_repeats_that_one_side_lacks_are_left_out_of_pairs() -> None:
    a, b = side(repeats(100, 200, 300, 400)), side({(2, 0): 100.0, (3, 0): 150.0, (4, 0): 200.0})
    assert row_of(a, b).row.repeats_a == 3
    assert row_of(a, b).row.ratio == pytest.approx(0.5)
    apart = row_of(a, b, in_turn=False).row
    assert (apart.repeats_a, apart.repeats_b, apart.paired) == (4, 3, False)


@given(
    st.dictionaries(st.tuples(st.integers(1, 4), st.integers(0, 3)), VALUES, min_size=1, max_size=9), VALUES
)
def test_every_number_of_turns_gives_a_ratio(values: dict[Turn, float], factor: float) -> None:
    other = {turn: value * factor for turn, value in values.items()}
    for in_turn in (True, False):
        row = row_of(side(values), side(other), in_turn=in_turn).row
        assert row.ratio == pytest.approx(factor)
        if row.low is not None and row.high is not None:
            assert row.low <= factor * (1 + 1e-9)
            assert row.high >= factor * (1 - 1e-9)


@given(st.lists(st.sampled_from([0.0, -1.0, float("nan")]), max_size=3))
def test_values_without_a_logarithm_are_missing(values: list[float]) -> None:
    row = row_of(side(repeats(*values)), side(repeats(1, 2, 3))) if values else None
    assert row is None or (row.row.verdict, row.row.a) == ("missing", None)
