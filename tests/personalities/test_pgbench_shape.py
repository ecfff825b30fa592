"""What `loadstone pgbench` understands of the shape of a load: warm-up, ramp-up, rates that change."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.model import RatePiece
from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.personalities.pgbench.options import Options, parse
from loadstone.personalities.pgbench.progress import ProgressLines
from loadstone.personalities.pgbench.rates import varying

RATES = {
    "100..5000/60s": [(100, 5000, 60)],
    "100,500,1000/20s": [(100, 100, 20), (500, 500, 20), (1000, 1000, 20)],
    "100/30s,100..5000/1min,500": [(100, 100, 30), (100, 5000, 60), (500, 500, 1)],
    "0..2e3/1.5h": [(0, 2000, 5400)],
    "1,.5/250ms": [(1, 1, 0.25), (0.5, 0.5, 0.25)],
    "5/10": [(5, 5, 10)],
}
REFUSED = {
    "100..5000": '"100..5000" has no time',
    "100,200": '"100" has no time',
    "100/10s,1..2": '"1..2" has no time',
    "100..0/5s": "The last rate is 0, and goes on to the end",
    "1/0s": "A time is 0 or longer than nine years",
    "1/1e300h": "A time is 0 or longer than nine years",
    "1e9/5s": "A rate is above ten million",
    "1/5d": '"1/5d" is no rate, ramp or step',
    "-1..5/3s": '"-1..5/3s" is no rate, ramp or step',
    "1,,2/3s": '"" is no rate, ramp or step',
    "1..2..3/4s": '"1..2..3/4s" is no rate, ramp or step',
    "1_0/4s": '"1_0/4s" is no rate, ramp or step',
}
NUMBERS = st.one_of(st.integers(0, 10**7).map(float), st.floats(0, 1e7, allow_nan=False))
TIMES = st.floats(1e-3, 1e4, allow_nan=False)


def parsed(*arguments: str) -> Options:
    return parse(arguments, {})


@pytest.mark.parametrize("text", RATES)
def test_a_rate_that_changes_is_read_piece_by_piece(text: str) -> None:
    pieces = parsed("-R", text).varying
    assert pieces
    assert [(p.from_per_s, p.to_per_s, p.length_s) for p in pieces.pieces] == RATES[text]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_rate_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(ComplaintError) as caught:
        parsed(f"--rate={text}")
    assert caught.value.message == f'invalid rate limit: "{text}"'
    assert caught.value.detail == f"{REFUSED[text]}."
    assert "100..5000/60s" in caught.value.hint


@given(st.lists(st.tuples(NUMBERS, st.none() | NUMBERS, TIMES, st.sampled_from(["", "s", "ms", "min", "h"]))))
def test_every_rate_that_is_written_down_is_read_again(
    made: list[tuple[float, float | None, float, str]],
) -> None:
    made = [*made, (1.0, 2.0, 5.0, "s")]
    text = ",".join(f"{a!r}{'' if b is None else f'..{b!r}'}/{t!r}{unit}" for a, b, t, unit in made)
    scale = {"": 1, "s": 1, "ms": 1e-3, "min": 60, "h": 3600}
    assert varying(text).pieces == tuple(
        RatePiece(a, a if b is None else b, t * scale[unit]) for a, b, t, unit in made
    )


@given(st.text("0123456789.,/eE+-smih ", max_size=20))
def test_no_text_ends_in_anything_but_a_rate_or_a_complaint(text: str) -> None:
    with contextlib.suppress(ComplaintError):
        options = parsed(f"--rate={text}")
        assert options.rate_per_s
        assert options.rate_per_s > 0


def test_one_number_is_pgbench_s_own_rate() -> None:
    for text, rate in {"500": 500.0, "0.05": 0.05, "1e2x": 100.0}.items():
        options = parsed("-R", text)
        assert (options.rate_per_s, options.varying) == (rate, None)
    assert parsed("-R", "1..2/3s", "-R", "7").varying is None


@pytest.mark.parametrize("text", ["10000001", "1e9", "1e300"])
def test_a_rate_that_no_driver_keeps_is_refused_before_anything_is_touched(text: str) -> None:
    with pytest.raises(ComplaintError) as caught:
        parsed("-R", text)
    assert (caught.value.message, caught.value.detail) == (
        f'invalid rate limit: "{text}"',
        "It is above ten million.",
    )
    assert parsed("-R", "1e7").rate_per_s == 1e7


def test_the_options_of_the_shape_have_their_values() -> None:
    options = parsed("-T", "10", "--warmup=2.5", "--ramp-up", "12", "--connect-rate=0.5")
    assert (options.warmup_s, options.ramp_up_s, options.connect_rate_per_s) == (2.5, 12.0, 0.5)
    assert parsed("--ramp-up=1e6", "-t", "5").ramp_up_s == 1e6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--warmup=2", "a warm-up (--warmup) needs a duration (-T)"),
        ("--warmup=2 -t 5", "a warm-up (--warmup) needs a duration (-T)"),
        ("--warmup=0 -T 5", 'invalid warm-up: "0"'),
        ("--warmup=2s -T 5", 'invalid warm-up: "2s"'),
        ("--warmup=nan -T 5", 'invalid warm-up: "nan"'),
        ("--ramp-up=5 -T 5", "the ramp-up (5 s) must end before the run (5 s)"),
        ("--connect-rate=-1", 'invalid connect rate: "-1"'),
        ("--connect-rate=inf", 'invalid connect rate: "inf"'),
        ("-i --warmup=2", "some of the specified options cannot be used in initialization (-i) mode"),
    ],
)
def test_impossible_shapes_are_refused(arguments: str, words: str) -> None:
    with pytest.raises(ComplaintError) as caught:
        parsed(*arguments.split())
    assert caught.value.message == words


def test_our_own_options_take_no_abbreviation_from_pgbench_s() -> None:
    assert parsed("--conn").connect
    assert parsed("--conne").connect
    with pytest.raises(ComplaintError, match="unrecognized option '--warm=5'"):
        parsed("--warm=5")


def test_lines_of_progress_say_what_is_warm_up() -> None:
    said: list[str] = []
    lines = ProgressLines(Options(progress_s=1), said.append, 60.0)
    row = {"done": 5, "failed": 0, "response": None}
    for second, warmup in ((1, True), (2, False)):
        latest = row | {"start_ns": second * 10**9, "end_ns": (second + 1) * 10**9, "warmup": warmup}
        lines.show({"recent": [latest], "start_ns": 10**9, "deadline_ns": None})
    assert said == [
        "progress: 1.0 s, 5.0 tps, lat 0.000 ms stddev 0.000, 0 failed, warm-up\n",
        "progress: 2.0 s, 5.0 tps, lat 0.000 ms stddev 0.000, 0 failed\n",
    ]
