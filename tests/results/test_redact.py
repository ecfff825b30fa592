"""No password survives, whatever it is made of."""

from urllib.parse import quote

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from loadstone.results import json_files
from loadstone.results.redact import redact, redact_command, remember

SECRET = "Tr0ub4dor"
PIECES = st.sampled_from(
    ["a", "1", '"', "\\", "é", "\u2028", "%54", "password", "pw=", "://u:", "@", SECRET, SECRET[:4], "x'"]
)
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.lists(PIECES, max_size=5).map("".join),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)

ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
UNBROKEN = ANY.filter(lambda text: text.split() == [text])


@given(ANY)
def test_url_with_an_encoded_password(password: str) -> None:
    url = f"before postgres://me:{quote(password, safe='')}@host:5432/db?sslmode=require after"
    assert redact(url) == "before postgres://me:***@host:5432/db?sslmode=require after"


@given(UNBROKEN)
@example("p@ss://x:y@z/?#'\"")
def test_url_with_a_raw_password(password: str) -> None:
    assert redact(f"at postgres://me:{password}@host/db now") == "at postgres://me:***@host/db now"


@given(ANY)
@example("with space @ and\nnewline")
def test_url_argument_with_any_password(password: str) -> None:
    given = ["loadstone", "run", "--target", f"postgres://me:{password}@host/db"]
    assert redact_command(given) == ["loadstone", "run", "--target", "postgres://me:***@host/db"]


@given(ANY)
def test_url_query(password: str) -> None:
    url = f"postgres://host/db?user=me&password={quote(password, safe='')}&sslmode=require"
    assert redact(url) == "postgres://host/db?user=me&password=***&sslmode=require"


@given(ANY)
@example("it's \\ here")
@example('"')
@example('"a"b')
def test_libpq_string_as_the_library_writes_it(password: str) -> None:
    text = make_conninfo(host="h", password=password, dbname="d")
    assert sorted(redact(text).split()) == ["dbname=d", "host=h", "password=***"]


OPTIONS = [
    "--password",
    "--pgsql-password",
    "--mysql-password",
    "--pass",
    "-password",
    "--loader.db-specific.pass",
]


@given(ANY, st.sampled_from(OPTIONS))
def test_command_line_options(password: str, option: str) -> None:
    assert redact_command(["x", option, password, "tail"]) == ["x", option, "***", "tail"]
    assert redact_command(["x", f"{option}={password}", "tail"]) == ["x", f"{option}=***", "tail"]


@given(ANY)
def test_environment_assignments(password: str) -> None:
    assert redact_command([f"PGPASSWORD={password}", "psql"]) == ["PGPASSWORD=***", "psql"]


@given(ANY)
@example("'in quotes'")
def test_sql(password: str) -> None:
    literal = password.replace("'", "''")
    assume("\\" not in literal)  # standard_conforming_strings decides what it means
    hidden = redact(f"ALTER ROLE me PASSWORD '{literal}' LOGIN")
    # Three quotes on both sides are read as one pair, which goes as well.
    assert hidden in {"ALTER ROLE me PASSWORD '***' LOGIN", "ALTER ROLE me PASSWORD *** LOGIN"}


def test_sql_keeps_its_quotes() -> None:
    assert redact("ALTER ROLE me PASSWORD 'it''s' LOGIN") == "ALTER ROLE me PASSWORD '***' LOGIN"


def test_json() -> None:
    assert redact('{"password": "a \\" b", "port": 5}') == '{"password": "***", "port": 5}'


@pytest.mark.parametrize(
    "text",
    [
        "postgres://me@host:5432/db?application_name=x",
        "postgres://host:5432/db",
        "mysql://host/db",
        "host=h user=me passfile=/home/me/.pgpass",
        "password authentication failed for user me",
        "created at 10:15:00 by a@b",
        "--clients=8",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text
    assert redact_command([text]) == [text]


@given(document=DOCUMENTS, indent=st.booleans())
def test_a_document_without_secrets_need_not_be_read(document: object, *, indent: bool) -> None:
    """What is seen in the text of a document decides as each of its strings would."""
    remember(SECRET)
    text = json_files.to_json(document, indent=1 if indent else None)
    quickly = json_files.redact_json(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_files, "has_hints", lambda _: True)
        assert json_files.redact_json(text) == quickly
