"""The clock of another machine, placed on ours."""

from hypothesis import given
from hypothesis import strategies as st

from loadstone.watch.clock import RemoteClock, RoundTrip

NS = st.integers(0, 10**12)


@given(st.integers(-(10**15), 10**15), st.lists(st.tuples(NS, NS, NS), min_size=1))
def test_an_answer_was_made_within_its_round_trip_and_the_error_holds(
    offset_ns: int, trips: list[tuple[int, int, int]]
) -> None:
    clock = RemoteClock()
    for sent_ns, there_ns, back_ns in trips:
        made_ns, received_ns = sent_ns + there_ns, sent_ns + there_ns + back_ns
        placed_ns = clock.place(RoundTrip(sent_ns, received_ns, made_ns + offset_ns))
        assert sent_ns <= placed_ns <= received_ns
        assert clock.best is not None
        assert abs(placed_ns - made_ns) <= clock.best.error_ns + 1
    found_s, error_s = clock.wall_offset_s(0), clock.error_s
    assert found_s is not None
    assert error_s is not None
    assert abs(found_s - offset_ns / 1e9) <= error_s + 1e-6


def test_a_clock_that_was_set_is_estimated_anew() -> None:
    clock = RemoteClock()
    clock.place(RoundTrip(0, 10, 5))
    assert clock.place(RoundTrip(1000, 1100, 10**9)) == 1050
    assert clock.wall_offset_s(0) == (10**9 - 1050) / 1e9


def test_without_a_clock_the_middle_is_taken_and_no_offset_is_known() -> None:
    clock = RemoteClock()
    assert clock.place(RoundTrip(10, 20)) == 15
    assert clock.wall_offset_s(0) is None
    assert clock.error_s is None
