"""A known secret is found however it is spelled."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.spelled import spellings

from loadstone.results import redact
from loadstone.results.spellings import pattern_of

ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=8)


@given(ANY)
@example('it\'s \\ "here" & <there>%40@\nü😀')
def test_every_spelling_is_hidden(secret: str) -> None:
    redact.forget()
    redact.remember(secret)
    for name, text in spellings(secret).items():
        shown = redact.redact_known(f"<{text}>")
        if redact.redact_known(secret) != secret:
            assert text not in shown, name


LETTERS = st.text(st.sampled_from("aAs3ü%\\&;#x61+' "), max_size=12)


@given(st.text(st.sampled_from("aAs3ü' "), min_size=1, max_size=3), LETTERS)
@example("a", "&#97;")
@example("a", "x%61")
@example("as", "\\u0061s")
def test_plain_texts_are_searched_as_all_others(secret: str, text: str) -> None:
    known = redact._Known()
    known.add(secret)
    assert known.hide(text) == re.sub(pattern_of(secret), redact.HIDDEN, text)


@given(st.text(st.sampled_from("pPaAsS\u017fwWdDkKtoen:/%2fF_iy "), max_size=30))
@example("pa\u017fs")
@example("to\u212aen")
@example("%2F")
def test_hints_are_found_as_their_pattern_finds_them(text: str) -> None:
    assert redact.has_hints(text) == (redact._HINTS.search(text) is not None)


def test_a_longer_secret_is_hidden_whole() -> None:
    redact.remember("sesame-open")
    redact.remember("sesame-open-now!")
    assert redact.redact_known("say sesame-open-now! or sesame-open") == "say *** or ***"


@pytest.mark.parametrize("word", ["a", "pg1", "postgres", "test", "none", "2024", "1234567", "iot", "feed"])
def test_figures_and_our_own_words_stay(word: str) -> None:
    redact.remember(word)
    assert redact.redact_known(f"the {word} is {word}s") == f"the {word} is {word}s"
    assert redact.redact(f"postgres://{word}:{word}@host/{word}") == f"postgres://{word}:***@host/{word}"


def test_a_password_that_is_a_name_in_use_hides_no_name() -> None:
    redact.remember("bench7", names=())
    redact.remember("bench7", names=("bench7", "db"))
    assert redact.redact('role "bench7" of db') == 'role "bench7" of db'


def test_a_short_secret_is_a_word_of_its_own() -> None:
    redact.remember("hunter2")
    assert redact.redact("hunter2, hunter22, xhunter2, %3Dhunter2") == "***, hunter22, xhunter2, %3D***"


def test_a_document_keeps_its_names_and_figures() -> None:
    redact.remember("hunter2!")
    document = {
        "hunter2!": 1,
        "message": 'FATAL: "hunter2!" is wrong',
        "db_password": 4711,
        "parameters": {"db_password": ["x", "y"], "password": None, "rows": 12},
        "settings": [{"name": "pg.password", "value": "z"}, {"name": "port", "value": "5432"}],
    }
    assert redact.redact_document(document) == {
        "hunter2!": 1,
        "message": 'FATAL: "***" is wrong',
        "db_password": "***",
        "parameters": {"db_password": ["***", "***"], "password": None, "rows": 12},
        "settings": [{"name": "pg.password", "value": "***"}, {"name": "port", "value": "5432"}],
    }


SECRET = "Xy-canary.7"  # what texts below hide
TEXTS = [
    f"alter role me password '{SECRET}'",
    f"ALTER ROLE me WITH ENCRYPTED PASSWORD E'{SECRET}' valid until 'infinity'",
    f"alter role me password $${SECRET}$$;",
    f"alter role me password $pw${SECRET}$pw$;",
    f"alter role me password /* new */ '{SECRET}' -- done",
    f"do $$ begin execute 'alter role me password ''{SECRET}'''; end $$",
    f"create user me identified by '{SECRET}'",
    f"create user me identified with sha256_password by '{SECRET}'",
    f"alter user me identified by '{SECRET}' replace 'Old-canary'",
    f"set password for me = password('{SECRET}')",
    f"create user mapping for me server s options (user 'me', password '{SECRET}')",
    f"select * from dblink('host=h password={SECRET} dbname=d', 'select 1') as t(i int)",
    f"select dblink_connect('c', 'postgres://me:{SECRET}@host/db')",
    f"select dblink_connect('c', 'host=h password=''{SECRET}'' dbname=d')",
    f"create subscription s connection 'host=h password={SECRET}' publication p",
    f"create secret (type s3, key_id 'k', secret '{SECRET}')",
    f"\\shell PGPASSWORD={SECRET} psql -c 'select 1'",
    f"\\shell mysql --password={SECRET} db",
    f"postgres://host/db?user=me&p%61ssword={SECRET}&sslmode=require",
    f"postgres://host/db?%70%61%73%73word={SECRET}",
    f"GET / HTTP/1.1 Authorization: Basic {SECRET}",
    f'{{"user": "me", "password": "{SECRET}"}}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_known_by_its_place_and_then_everywhere(text: str) -> None:
    shown = redact.redact(text)
    assert SECRET not in shown
    assert "Old-canary" not in shown
    assert redact.redact(shown) == shown
    redact.learn(text)
    assert redact.redact(f"no such role: {SECRET}?") == "no such role: ***?"


def test_columns_of_sql_are_no_secrets() -> None:
    redact.learn("select * from accounts a join old o on a.password = o.former_word and a.pw = :wanted")
    assert redact.redact("o.former_word, :wanted") == "o.former_word, :wanted"


@pytest.mark.parametrize(
    "argument",
    [
        f"--set=db_password={SECRET}",
        f"db_password={SECRET}",
        f"me:{SECRET}@host",
        f"pg://me:{SECRET}@h/d",
        f"host=h password={SECRET}",
        f"postgres://h/d?p%61ssword={SECRET}&x=a b",
    ],
)
def test_a_command_line_is_hidden_and_learnt(argument: str) -> None:
    assert SECRET not in " ".join(redact.redact_command(["run", argument]))
    redact.learn_command(["run", argument])
    assert SECRET not in redact.redact(f"{SECRET} is refused")


def test_variables_of_the_environment() -> None:
    redact.remember_environment(
        {"PGPASSWORD": SECRET, "PWD": "/home/somebody", "SSH_ASKPASS": "/usr/bin/ask"}
    )
    assert redact.redact(f"{SECRET} /home/somebody /usr/bin/ask") == "*** /home/somebody /usr/bin/ask"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_document_stays_a_document(value: object) -> None:
    shown = redact.redact_document(value)
    assert json.loads(json.dumps(shown)) == shown
    assert redact.redact_document(shown) == shown


HOSTILE = (
    "a://a:",
    "password=",
    "password '",
    "password /*",
    "password $a$",
    "a.b-c.",
    "?a=&b=",
    "a@b:c://d:",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_no_time_that_grows_with_the_square_of_their_length(piece: str) -> None:
    text = piece * (200_000 // len(piece)) + " password"
    redact.learn(text)
    assert redact.redact(text)
