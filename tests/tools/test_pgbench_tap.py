"""Counting what PostgreSQL's own tests of pgbench say."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from pgbench_tap import Outcome, read_tap  # noqa: E402

SAID = "# Running: x\nok 1 - one\nnot ok 2 - two (got 1 vs expected 0)\n#   Failed test 'two'\nok 3 - ok 4\n"


def test_assertions_are_counted_and_failing_ones_named() -> None:
    assert read_tap(f"{SAID}1..3\n") == Outcome(2, ("two (got 1 vs expected 0)",), complete=True)


def test_what_is_known_to_fail_may_fail() -> None:
    said = "not ok 1 - rare # TODO a known fault\n#   Failed (TODO) test 'rare'\nok 2 - two\n1..2\n"
    assert read_tap(said) == Outcome(2, (), complete=True)


def test_a_file_that_dies_halfway_is_not_taken_for_a_whole_one() -> None:
    assert not read_tap(SAID).complete
