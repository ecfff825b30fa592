"""Answers through a Python driver: what is compared, what is digested, and when."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from loadstone.asking import repeats
from loadstone.asking.answer import digest
from loadstone.asking.repeats import Repeats
from loadstone.asking.threads import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STATES = ["CA", None, "TX", "NY"]


def table(*order: int, last: float = 4.5) -> pa.Table:
    """Return four rows in this order."""
    values = [1.5, 2.5, None, last]
    return pa.table({"state": [STATES[n] for n in order], "mean": [values[n] for n in order]})


FIRST = table(0, 1, 2, 3)


@pytest.fixture
def digested(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return when something was digested, as it goes on."""
    moments: list[int] = []

    def noting(answer: pa.Table) -> dict[str, Any]:
        moments.append(time.monotonic_ns())
        return digest(answer)

    monkeypatch.setattr(repeats, "digest", noting)
    return moments


def test_the_rows_of_the_first_answer_are_known_in_any_order(digested: list[int]) -> None:
    kept = Repeats(10)
    again = [FIRST, table(3, 2, 1, 0), pa.concat_tables([FIRST.slice(2), FIRST.slice(0, 2)])]
    assert [kept.take(0, "q", answer) for answer in again] == [None] * 3
    assert digested == []
    assert kept.listed() == {"answers": [{"query": 0, "digest": digest(FIRST)}], "answers_left_out": 0}
    assert len(digested) == 1


def test_a_last_digit_is_no_difference_and_a_millionth_is() -> None:
    kept = Repeats(10)
    kept.take(7, "q", FIRST)
    assert kept.take(8, "q", table(0, 1, 2, 3, last=4.5 + 1e-15)) is None
    words = kept.take(9, "q", table(3, 1, 2, 0, last=4.5 + 1e-6))
    assert words is not None
    assert words.startswith("query 7 gave another answer than before: column 2 (mean): sums differ by ")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (table(0, 1, 2), "row count 4 here, 3 there"),
        (table(0, 1, 2, 0), "column 1 (state): texts differ"),
        (FIRST.select(["state"]), "column count 2 here, 1 there"),
    ],
    ids=["fewer rows", "another row", "fewer columns"],
)
@pytest.mark.parametrize("room", [0, 1 << 20], ids=["digested at once", "kept"])
def test_what_differs_is_said_whether_the_first_was_kept_or_not(
    room: int, other: pa.Table, words: str
) -> None:
    kept = Repeats(10, room)
    kept.take(0, "q", FIRST)
    assert words in str(kept.take(1, "q", other))
    assert kept.take(2, "q", table(1, 0, 3, 2)) is None
    assert kept.listed()["answers"] == [{"query": 0, "digest": digest(FIRST)}]


def test_room_is_for_so_many_bytes_and_answers_for_so_many_queries(digested: list[int]) -> None:
    kept = Repeats(3, 2 * FIRST.get_total_buffer_size())
    for number in range(4):
        kept.take(number, f"q{number}", FIRST)
    assert len(digested) == 2, "the first fits, the fourth is left out"
    found = kept.listed()
    assert ([entry["query"] for entry in found["answers"]], found["answers_left_out"]) == ([0, 1, 2], 1)


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([pa.array(["b", "a"]).dictionary_encode()]),
        pa.chunked_array([pa.array([[2], [1]])]),
        pa.chunked_array([pa.nulls(2)]),
        pa.chunked_array([pa.array([float("nan"), 1.0])]),
        pa.chunked_array([pa.array([(0, 0, 2), (0, 0, 1)], pa.month_day_nano_interval())]),
    ],
    ids=["dictionary", "list", "null", "NaN", "interval"],
)
def test_types_without_an_order_are_compared_all_the_same(column: pa.ChunkedArray) -> None:
    whole = pa.table([column, column], names=["a", "a"])
    kept = Repeats(10)
    assert [kept.take(0, "q", whole) for _ in range(2)] == [None, None]
    assert kept.take(0, "q", whole.take([1, 0])) is None
    assert kept.take(0, "q", whole.slice(1)) == (
        "query 0 gave another answer than before: row count 2 here, 1 there (before: here; now: there)"
    )


class _Giving:
    """An engine whose answers are known."""

    errors = (RuntimeError,)

    def __init__(self, answers: Callable[[int], pa.Table]) -> None:
        self._answers, self._asked = answers, 0

    def connect(self, _name: str) -> Any:
        return _Closing()

    def answer(self, _connection: Any, _sql: str) -> pa.Table:
        self._asked += 1
        return self._answers(self._asked)

    def at_most(self, _connection: Any, _limit_s: float) -> Any:
        return nullcontext()

    def cut_off(self, _connection: Any, _name: str) -> None:
        """Nothing is under way for long."""


def _account(folder: Path, answers: Callable[[int], pa.Table], texts: int, most: int) -> dict[str, Any]:
    file = folder / "queries.jsonl"
    file.write_text("".join(json.dumps([0, f"q{number}"]) + "\n" for number in range(texts)))
    document = {
        "queries": {"labels": ["a"], "file": str(file), "burn_in": 0, "max_queries": most, "loop": True,
                    "answers": "digest", "answers_max": 100},
        "clients": 1, "pace": {"kind": "closed"}, "interval_s": 1.0, "out_dir": str(folder),
        "duration_s": None, "timeout_s": 60.0, "seed": 1,
    }  # fmt: skip
    return ask(document, _Giving(answers), None, None)


class _Closing:
    def close(self) -> None:
        """There is nothing to close."""


def test_nothing_is_digested_before_the_drive_has_ended(tmp_path: Path, digested: list[int]) -> None:
    orders = [(0, 1, 2, 3), (2, 0, 3, 1)]
    account = _account(tmp_path, lambda number: table(*orders[number % 2]), texts=3, most=50)
    assert account["counts"]["done"] == 50
    assert len(digested) == 3
    assert min(digested) >= account["end_ns"]
    assert [entry["digest"]["keys"] for entry in account["queries"]["answers"]] == [digest(FIRST)["keys"]] * 3
    assert json.loads((tmp_path / "drive.json").read_text()) == account


def test_an_answer_that_changes_is_a_failed_query(tmp_path: Path) -> None:
    account = _account(tmp_path, lambda number: FIRST if number < 3 else table(0, 1, 2), texts=1, most=4)
    assert (account["counts"]["done"], account["counts"]["failed"]) == (2, 2)
    (error,) = account["errors"]
    assert error["sqlstate"] == "answer"
