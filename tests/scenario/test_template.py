import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError
from loadstone.scenario.template import names_in, render


def test_names_and_values() -> None:
    text = "{% for i in range(tables) %}feed{{ i }}{{ suffix }} {% endfor %}"
    assert names_in(text, "x") == {"tables", "suffix"}
    assert render(text, {"tables": 2, "suffix": "a"}, "x") == "feed0a feed1a "


def test_booleans_are_spelt_as_in_sql() -> None:
    assert render("{{ on }}", {"on": True}, "x") == "true"


@given(st.text())
def test_quoting_keeps_the_text(text: str) -> None:
    literal = render("{{ t | literal }}", {"t": text}, "x")
    assert literal[0] == literal[-1] == "'"
    assert literal[1:-1].replace("''", "'") == text
    identifier = render("{{ t | identifier }}", {"t": text}, "x")
    assert identifier[1:-1].replace('""', '"') == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n{{ b", "where, line 2: broken template"),
        ("{{ b }}", "'b' is undefined"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ 'a' + 1 }}", "cannot be filled in"),
        ("{% include 'x' %}", "cannot be filled in"),
        ("{{ ''.__class__.__mro__ }}", "cannot be filled in"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(text: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words) as caught:
        render(text, {}, "where")
    assert caught.value.hint
