"""Plain connection strings mean what libpq makes of them, and nothing else is taken for plain."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.engine.postgres import conninfo
from loadstone.engine.postgres.plain_conninfo import plain_parameters
from loadstone.errors import LoadstoneError

KEYS = ("host", "port", "dbname", "user", "password", "sslmode", "application_name", "connect_timeout")
RARE = ("service", "hostaddr", "options", "sslkey", "nonsense", "ssl")
VARIABLES = ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGAPPNAME", "PGOPTIONS", "PGHOSTADDR")
PIECE = st.text(st.sampled_from("ab1.%/@:?&=,'\\ é[]+-_~#%20%2f"), max_size=8)
WORD = st.text(st.sampled_from("ab12.-_/"), min_size=1, max_size=8)
PAIRS = st.lists(st.tuples(st.sampled_from(KEYS + RARE), st.one_of(WORD, PIECE)), max_size=4)
SPACED = st.sampled_from(["=", " = ", "= "])


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)


@st.composite
def texts(draw: st.DrawFn) -> str:
    pairs = draw(PAIRS)
    if draw(st.booleans()):
        equals = draw(SPACED)
        quote = draw(st.sampled_from(["", "'"]))
        return " ".join(f"{key}{equals}{quote}{value}{quote}" for key, value in pairs)
    place = "".join(draw(PIECE) for _ in range(draw(st.integers(0, 2))))
    query = "&".join(f"{key}={value}" for key, value in pairs)
    return f"postgres://{place}" + (f"?{query}" if query else "")


def libpqs(text: str) -> dict[str, str] | None:
    try:
        return conninfo._by_libpq(text)
    except LoadstoneError:
        return None


def agrees(text: str) -> bool:
    """Compare with libpq; False where the text is not plain."""
    plain = plain_parameters(text, {})
    if plain is None:
        return False
    theirs = libpqs(text)
    assert theirs is not None
    told = {key: value for key, value in theirs.items() if key in (*KEYS, "passfile")}
    assert {key: value for key, value in plain.items() if value} == {k: v for k, v in told.items() if v}
    return True


@given(texts())
def test_what_is_plain_means_what_libpq_says(text: str) -> None:
    agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host=/var/run port=5433 user=me dbname=there",
        "host=h password='with blank' sslmode=require",
        "postgres://",
        "postgres://me@h:77/there",
        "postgresql://me:s%40crt@h/d?sslmode=verify-full&connect_timeout=3",
        "postgres:///d?host=%2Fvar%2Frun&user=u",
    ],
)
def test_common_texts_are_plain(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "5999")
    monkeypatch.setenv("PGUSER", "somebody")
    assert agrees(text)


@pytest.mark.parametrize(
    "text",
    [
        "service=mine",
        "host=h hostaddr=127.0.0.1",
        "postgres://h/d?ssl=true",
        "postgres://[::1]/d",
        "postgres://me:p@ss@h/d",
        "postgres://h/d?application_name=%C3%A9",
        "postgres://h/%00",
        "host=h host=g",
        "host= port=1",
        "user='it''s'",
    ],
)
def test_others_are_left_to_libpq(text: str) -> None:
    assert plain_parameters(text, {}) is None


def test_a_rare_variable_is_left_to_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain_parameters("", {}) is not None
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=1MB")
    assert plain_parameters("", {}) is None


def test_options_go_after_the_environment_and_before_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", "a")
    monkeypatch.setenv("PGPORT", "1")
    found = plain_parameters("port=3", {"user": "b", "port": "2", "host": ""})
    assert found is not None
    assert (found["user"], found["port"], found.get("host")) == ("b", "3", None)
