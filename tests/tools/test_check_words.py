"""The rule that pages, help and scenarios are written in plain words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from check_words import REFUSED, findings, in_help, in_names, in_page, in_scenario, in_source  # noqa: E402
from user_texts import of_python, of_rust, of_template  # noqa: E402

REFUSED_SENTENCES = [
    "What it lacks is skipped, in words.",
    "One query is still under way.",
    "The file lies in the folder.",
    "A figure stands beside another.",
    "Seconds beside each other resemble each other.",
    "The manifest is no signature.",
    "The load was broken off.",
    "`--resume` goes on with the run.",
    "The tables must hold the rows.",
]
PLAIN_SENTENCES = [
    "There is no lock.",
    "Adjacent seconds are no longer correlated.",
    "The report says why.",
    "The file is in the folder.",
    "`lies in` is code",
    "```\nthe server stands in code\n```",
    "[a page](what-stands-in-it.md)",
]


@pytest.mark.parametrize("sentence", REFUSED_SENTENCES)
def test_a_wording_that_is_read_twice_is_found(sentence: str) -> None:
    assert [line for line, _, _ in in_page(f"# Page\n\n{sentence}\n")][:1] == [3]


@pytest.mark.parametrize("sentence", PLAIN_SENTENCES)
def test_plain_sentences_and_code_pass(sentence: str) -> None:
    assert list(in_page(sentence)) == []


def test_a_wording_is_found_across_lines_and_its_plain_word_is_named() -> None:
    assert list(in_page("One\nis under\nway.\n")) == [(2, "under way", REFUSED["under way"])]


def test_help_of_options_and_commands_is_looked_at_and_nothing_else_of_the_source() -> None:
    source = '''
@click.command("run")
@click.option("--out", help="It lies "
    "in a folder.")
def command() -> None:
    """Go on with a run: what is under way."""

def other() -> None:
    """What is under way."""
'''
    assert sorted(wording for _, wording, _ in in_help(source)) == ["Go on with", "lies in", "under way"]


def test_texts_of_scenarios_are_looked_at() -> None:
    text = 'id = "x"\n[[phase]]\ntitle = "A figure stands beside it"\nscript = "under way"\n'
    assert [(line, wording) for line, wording, _ in in_scenario(text)] == [(3, "stands beside")]


def test_strings_of_python_are_looked_at_but_not_docstrings_sql_and_what_is_filled_in() -> None:
    source = '''
def refuse(told: str) -> None:
    """What a file holds."""
    raise LoadstoneError(
        f"the file {told} holds "
        "no rows", "Mend it.")

LOCKS = f"select {told} from a where b holds c"
'''
    found = [(line, wording) for line, wording, _ in in_source(of_python(source))]
    assert found == [(5, "holds"), (6, "Mend")]


def test_strings_of_rust_are_looked_at_but_not_comments_reasons_and_tests() -> None:
    source = """
/// What it "holds in it" as a text.
#[expect(clippy::x, reason = "a double holds it all")]
#[error("the row {holds} lies \\
    elsewhere")]
fn f() { refuse("it is wanted"); map.expect("this lies in it") }
#[cfg(test)]
mod tests { const A: &str = "it lies in it"; }
"""
    found = [(line, wording) for line, wording, _ in in_source(of_rust(source))]
    assert found == [(4, "lies"), (6, "is wanted")]


def test_prose_and_strings_of_templates_are_looked_at_but_not_their_code() -> None:
    source = (
        '<p class="lies">{# it lies #}{{ told }}\n{{ "It lies here" if a else x.lies }}</p>\n<b>holds</b>'
    )
    found = [(line, wording) for line, wording, _ in in_source(of_template(source))]
    assert found == [(2, "lies"), (3, "holds")]


@pytest.mark.slow  # `make quick` runs the program itself
def test_our_own_pages_help_texts_and_scenarios_pass() -> None:
    assert list(findings(ROOT)) == []


def test_old_words_in_names_are_refused() -> None:
    python = "class LoadCompany:\n    def company(self) -> None: ...\n    def handle(self) -> None: ...\n"
    assert [line for line, *_ in in_names("load", python)] == [1, 2]
    rust = "pub(crate) struct HTTPDoorman;\n    pub fn hold() {}\n"
    assert list(in_names("load", rust)) == [(1, "HTTPDoorman", "auth proxy")]
    assert [name for _, name, _ in in_names("hinges", "")] == ["hinges"]
    assert not list(in_names("tests", "def test_wishes_are_kept() -> None: ...\n"))
