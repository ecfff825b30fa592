"""Each promise of docs/promises.md names tests, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text()
PROMISES = dict(re.findall(r"^## (\d)\. [^\n]+\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL))
NAMES = re.compile(r"`(tests/[\w/]+\.py)`")


def test_there_are_five_and_readers_find_them() -> None:
    assert list(PROMISES) == ["1", "2", "3", "4", "5"]
    assert "(docs/promises.md)" in (ROOT / "README.md").read_text()
    assert "(promises.md)" in (ROOT / "docs" / "README.md").read_text()


@pytest.mark.parametrize("number", PROMISES)
def test_a_promise_says_its_limits_and_names_tests_that_exist(number: str) -> None:
    text = PROMISES[number]
    assert "**Not promised.**" in text
    named = NAMES.findall(text.partition("**Tests:**")[2])
    assert named
    without = [
        name for name in named if not (ROOT / name).is_file() or "def test_" not in (ROOT / name).read_text()
    ]
    assert without == []


def test_helpers_that_the_page_names_exist() -> None:
    assert [name for name in NAMES.findall(PAGE) if not (ROOT / name).is_file()] == []
