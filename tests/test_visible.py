"""Characters that act on a terminal are shown as text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.visible import visible, visible_tree


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("a\rb", r"a\x0db"),
        ("a\u202eb", r"a\u202eb"),
        ("caf\udce9", r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("two\nlines\tand a tab, é, 中, 🙂", "two\nlines\tand a tab, é, 中, 🙂"),
    ],
)
def test_what_acts_on_a_terminal_is_text(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_is_left_that_a_terminal_obeys_or_a_file_refuses(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not {c for c in shown if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
    assert visible(shown) == shown


def test_names_and_values_of_a_document_are_made_visible() -> None:
    document = {"a\x1b": ["\x1b", 1, None, {"b": "\x1b"}]}
    assert visible_tree(document) == {r"a\x1b": [r"\x1b", 1, None, {"b": r"\x1b"}]}
