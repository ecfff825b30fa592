"""Scripts of a grammar, valid and broken: the installed pgbench and we give the same verdict and words."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from loadstone.personalities import pgbench

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database

PEER = shutil.which("pgbench")
NAMES = st.sampled_from(["x", "y", "_1"])
NUMBERS = st.sampled_from(["0", "7", "-3", "2.5", ".5e1", "true", "null", ":x", ":y"])
EXPRESSIONS = st.recursive(
    NUMBERS,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "<=", "AND", "#"]), inner),
        st.builds("int({})".format, inner),
        st.builds("case when {} then {} else {} end".format, inner, inner, inner),
        st.builds("({}) is not null".format, inner),
        st.builds("least({}, {})".format, inner, inner),
    ),
    max_leaves=5,
)
SQL = st.sampled_from(
    [
        "select 1;\n",
        "select ';', $$;$$, $q$ $$ $q$;\n",
        "select /* ; /* ' */ */ 1; -- ;\n",
        "select 1 as a \\gset\n",
        "select 1 as a\\; select 2 as b \\aset p_\n",
        "select 1\n",
    ]
)
SETS = st.builds("\\set {} {}\n".format, NAMES, EXPRESSIONS)
BLOCKS = st.builds("\\if {}\n{}\\else\n{}\\endif\n".format, EXPRESSIONS, SETS, SQL)
MISTAKES = st.sampled_from(
    [
        *("\\nosuch\n", "\\set\n", "\\set x\n", "\\set x 1 +\n", "\\set x (1\n", "\\set x 1 2\n"),
        *("\\set x nosuch(1)\n", "\\set x abs()\n", "\\set x least()\n", "\\set x case end\n"),
        *("\\set x 9223372036854775808\n", "\\sleep\n", "\\sleep x\n", "\\sleep 1 h\n", "\\sleep 1 s s\n"),
        *("\\if\n\\endif\n", "\\if 1\n", "\\endif\n", "\\else\n", "\\if 1\n\\else\n\\elif 1\n\\endif\n"),
        *("\\gset a b\n", "\\shell\n", "\\setshell x\n", "\\endif now\n"),
        *("\\set x 1/0\n", "\\set 1 1\n", "select 'a;\n", "select /* 1;\n", "select $$ 1;\n", 'select "a;'),
        *("select 1/0;\n", "\\startpipeline\n", "select 1 as a where false \\gset\n", "\\set x :nosuch\n"),
    ]
)
SCRIPTS = st.builds(
    "\\set x 1\n\\set y 2\n{}{}{}{}".format,
    st.lists(st.one_of(SQL, SETS, BLOCKS), max_size=3).map("".join),
    st.one_of(st.just(""), MISTAKES, MISTAKES),
    st.one_of(SQL, SETS, BLOCKS),
    st.sampled_from(["", "select 2", "-- the end"]),
)
PHASES = (Phase.explicit, Phase.generate)
"""What is found is not made smaller: each example is two runs."""
numbers = count()


def peer(script: str, url: str) -> tuple[int, str]:
    ended = subprocess.run(
        [str(PEER), "-n", "-t", "1", "-f", script, url], capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stderr


def ours(script: str, url: str) -> tuple[int, str]:
    err: list[str] = []
    code = pgbench.main(["-n", "-t", "1", "-f", script, url], lambda _: None, err.append)
    return code, "".join(err)


def said(err: str) -> str:
    """The first line, without the path of the program; of an error in a script, its place or its kind.

    We say more: the line of `\\if` and its like, and what is wrong with a number.
    """
    line = re.sub(r"^\S*pgbench: ", "pgbench: ", err.partition("\n")[0])
    if "condition error" in line:
        return "condition error"
    return re.sub(r"(\.sql:\d+: ).*", r"\1", line)


@pytest.mark.skipif(PEER is None, reason="pgbench is not installed: its verdict cannot be compared with ours")
@settings(
    max_examples=40,
    derandomize=True,
    phases=PHASES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=SCRIPTS)
def test_a_script_gets_pgbenchs_verdict_in_its_words(database: Database, tmp_path: Path, text: str) -> None:
    script = tmp_path / f"{next(numbers)}.sql"
    script.write_text(text)
    theirs, mine = peer(str(script), database.socket_url), ours(str(script), database.socket_url)
    assert mine[0] == theirs[0], (text, theirs, mine)
    assert said(mine[1]).startswith(said(theirs[1])), text
    assert bool(mine[1]) == bool(theirs[1])
