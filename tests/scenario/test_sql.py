import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError
from loadstone.scenario.sql import split_statements

plain = st.text(alphabet="ab;$'\"\\-/* \n(é", max_size=12)
pieces = st.one_of(
    st.sampled_from(["select", "begin", "end", "a$b$", "$1", "1", "+", "é", "::", "case"]),
    plain.map(lambda text: "'" + text.replace("'", "''") + "'"),
    plain.map(lambda text: '"' + text.replace('"', '""') + '"'),
    plain.map(lambda text: "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    plain.map(lambda text: "$tag$" + text.replace("$tag$", "") + " $tag$"),
    plain.map(lambda text: "$$" + text.replace("$", "") + "$$"),
    plain.map(lambda text: "/* a /* " + text.replace("*", "").replace("/", "") + " */ ; */ x"),
    plain.map(lambda text: "-- " + text.replace("\n", "") + "\nx"),
    plain.map(lambda text: "(" + text.translate({ord(c): None for c in "$'\"\\-/*("}) + ")"),
)
# A word first: what comes before the first token of a statement (comments, blanks) is not part of it.
statements = st.lists(pieces, max_size=6).map(lambda parts: " ".join(["select", *parts]).strip())


@given(st.lists(statements, max_size=6), st.sampled_from([";", " ; ", ";\n-- c;\n", ";; /* ; */"]))
def test_statements_joined_by_semicolons_come_apart_again(parts: list[str], glue: str) -> None:
    assert split_statements(glue.join(parts)) == tuple(parts)


@given(st.text(max_size=60))
def test_no_text_is_lost(text: str) -> None:
    try:
        found = split_statements(text)
    except LoadstoneError:
        return
    assert all(statement and statement == statement.strip() for statement in found)
    position = 0
    for statement in found:
        position = text.index(statement, position) + len(statement)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("-- nothing\n;;/* here */", ()),
        ("select 1", ("select 1",)),
        ("-- one;\rselect 1", ("select 1",)),
        ("\u00a0; select 'é' ;", ("select 'é'",)),
        (
            "do $$ begin for i in 1..3 loop x; end loop; end; $$; select 2",
            ("do $$ begin for i in 1..3 loop x; end loop; end; $$", "select 2"),
        ),
        (
            "create function f() as $f$ select '$$;'; $f$; s",
            ("create function f() as $f$ select '$$;'; $f$", "s"),
        ),
        (
            "create procedure p() begin atomic select case when a then b end; select 2; end; select 3",
            (
                "create procedure p() begin atomic select case when a then b end; select 2; end",
                "select 3",
            ),
        ),
        (
            "create rule r as on insert to t do also (select 1; select 2); s",
            ("create rule r as on insert to t do also (select 1; select 2)", "s"),
        ),
        (
            "create or replace function f() begin atomic a; end; b",
            ("create or replace function f() begin atomic a; end", "b"),
        ),
        ("begin; select 1; end; commit", ("begin", "select 1", "end", "commit")),
        (r"select 'a\'; select 2", (r"select 'a\'", "select 2")),
        ("select E'a'\n 'b\\';c'; d", ("select E'a'\n 'b\\';c'", "d")),
        ("select a$b$c; select 1 as x$y$z; s", ("select a$b$c", "select 1 as x$y$z", "s")),
    ],
)
def test_split(text: str, expected: tuple[str, ...]) -> None:
    assert split_statements(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\nselect 'a;", "line 2: unterminated quoted string"),
        ("select E'a\\'", "line 1: unterminated quoted string"),
        ('select "a', "unterminated quoted name"),
        ("select\n\n$x$ a; $$", "line 3: unterminated dollar-quoted string"),
        ("/* /* */", "comment"),
        ("\\copy t from x", "command of psql"),
    ],
)
def test_what_never_ends_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words) as caught:
        split_statements(text, "a.sql")
    assert caught.value.message.startswith("a.sql, line ")
    assert caught.value.hint
