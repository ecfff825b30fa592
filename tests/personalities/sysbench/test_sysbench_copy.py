"""Rows of bulk inserts that are sent by COPY: the table is the one that the script's inserts make."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.sysbench import place, run

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database

PEER = shutil.which("sysbench")
CONTENT = "select coalesce(md5(string_agg(t::text, '|' order by t::text collate \"C\")), '-') from {} t"
SCRIPT = """
function prepare()
   con = sysbench.sql.driver():connect()
   {before}
   con:bulk_insert_init("INSERT INTO {target} VALUES")
   for i = 1, {rows} do
      con:bulk_insert_next(string.format({row}, i, ("x"):rep(i % 90)))
   end
   con:bulk_insert_done()
   {after}
end
"""
ROW = "\"(%d, '%s')\""
PLAIN = "create table t (a int, b text)"


def prepare(database: Database, *arguments: str) -> tuple[int, str, int]:
    """Run `prepare`; return its status, what it printed, and how many rows it says were sent by COPY."""
    code, out, err = run(*place(database), "--verbosity=4", *arguments, "prepare")
    copied = re.search(r"^sysbench: (\d+) rows were sent by COPY", err, re.MULTILINE)
    return code, out, int(copied[1]) if copied else 0


def script(
    folder: Path, target: str = "t", row: str = ROW, rows: int = 300, before: str = "", after: str = ""
) -> str:
    path = folder / "own.lua"
    path.write_text(SCRIPT.format(target=target, row=row, rows=rows, before=before, after=after))
    return str(path)


def both_ways(database: Database, setup: str, path: str) -> tuple[int, tuple[int, str, str]]:
    """Prepare with COPY and without; return the rows copied, and what is the same."""
    ends = []
    copied = 0
    for way in ("off", "on"):
        database.execute(f"drop schema public cascade; create schema public; {setup}")
        code, out, copied = prepare(database, f"--bulk-copy={way}", path)
        ends.append((code, out, database.value(CONTENT.format("t"))))
    assert ends[0] == ends[1]
    return copied, ends[0]


def test_a_workload_prepares_the_same_tables(database: Database) -> None:
    tables = ("--tables=2", "--table-size=3000", "--rand-seed=5", "oltp_read_write")
    contents = []
    for way, expected in (("off", 0), ("on", 6000)):
        database.execute("drop table if exists sbtest1, sbtest2")
        code, _, copied = prepare(database, f"--bulk-copy={way}", "--threads=2", *tables)
        assert (code, copied) == (0, expected)
        contents.append([database.value(CONTENT.format(table)) for table in ("sbtest1", "sbtest2")])
    assert contents[0] == contents[1]
    assert contents[0][0] != contents[0][1]


@pytest.mark.skipif(PEER is None, reason="sysbench is not installed")
def test_a_script_leaves_the_table_that_sysbench_leaves(database: Database, tmp_path: Path) -> None:
    path = script(tmp_path, "t (a, b)", "\"(%d, '%s'), (NULL, 'it''s\\t\\n''')\"", rows=9000)
    setup = "create table t (id serial primary key, b varchar(100) default '' not null, a int)"
    database.execute(setup)
    assert PEER is not None
    subprocess.run([PEER, *place(database), path, "prepare"], check=True, capture_output=True)
    theirs = database.value(CONTENT.format("t"))
    copied, (code, _, ours) = both_ways(database, setup, path)
    assert (code, copied) == (0, 18_000)
    assert ours == theirs
    assert database.value("select array[count(*), max(id), count(a)] from t") == [18_000, 18_000, 9000]


SAME_BY_INSERT = {
    "generated": (
        "create table t (a int, g int generated always as (a + 1) stored, b text)",
        "t (a, b)",
        ROW,
    ),
    "a generated column is given": (
        "create table t (a int, g text generated always as ('x') stored, b text)",
        "t",
        ROW,
    ),
    "identity": ("create table t (a int generated always as identity, b text)", "t", ROW),
    "a number for a truth value": ("create table t (a bool, b text)", "t", ROW),
    "a number for a document": ("create table t (a json, b text)", "t", ROW),
    "a time": ("create table t (a int, b text, c timestamp default '2020-01-01')", "t (a, b)", ROW),
    "a rule": (
        (
            "create table u (a int); create table t (a int, b text); "
            "create rule r as on insert to t do also insert into u values (1)"
        ),
        "t",
        ROW,
    ),
    "a trigger": (
        (
            "create or replace function f() returns trigger language plpgsql as "
            "'begin new.b = current_query() is null; return new; end'; create table t (a int, b text); "
            "create trigger g before insert on t for each row execute function f()"
        ),
        "t",
        ROW,
    ),
    "a view": ("create table u (a int, b text); create view t as select * from u", "t", ROW),
    "fewer values than columns": ("create table t (a int, b text, c int default 7)", "t", ROW),
    "a function": (PLAIN, "t", "\"(%d, '%s' || 'y')\""),
    "a backslash": (PLAIN, "t", "\"(%d, '%s\\\\n')\""),
    "a broken row": (PLAIN, "t", "\"(%d, '%s'\""),
    "a fraction": (PLAIN, "t", "\"(%d.50, '%s')\""),
}


@pytest.mark.parametrize("case", SAME_BY_INSERT)
def test_what_copy_would_do_otherwise_goes_as_insert(database: Database, tmp_path: Path, case: str) -> None:
    setup, target, row = SAME_BY_INSERT[case]
    copied, _ = both_ways(database, setup, script(tmp_path, target, row))
    assert copied == 0


@pytest.mark.parametrize(
    ("setup", "row", "words"),
    [
        ("create table t (a int unique, b text)", "\"(1, '%s')\"", "duplicate key value"),
        ("create table t (a int check (a < 200), b text)", ROW, "check constraint"),
        ("create table t (a int, b varchar(50))", ROW, "value too long"),
        ("create table t (a int, b text not null)", '"(%d, NULL)"', "null value"),
        ("create table t (a smallint, b text)", "\"(%d000, '%s')\"", "smallint out of range"),
    ],
)
def test_an_error_is_that_of_the_insert(
    database: Database, tmp_path: Path, setup: str, row: str, words: str
) -> None:
    copied, (code, out, content) = both_ways(database, setup, script(tmp_path, row=row))
    assert copied == 0
    assert (code, content) == (1, "-")
    assert words in out


def test_rows_of_a_transaction_are_taken_back_with_it(database: Database, tmp_path: Path) -> None:
    path = script(tmp_path, before='con:query("BEGIN")', after='con:query("ROLLBACK")')
    copied, (code, _, content) = both_ways(database, PLAIN, path)
    assert (copied, code, content) == (0, 0, "-")


def test_a_table_that_is_changed_between_batches_is_looked_at_again(
    database: Database, tmp_path: Path
) -> None:
    again = """
    con:query("ALTER TABLE t ALTER a TYPE bool USING a > 1")
    con:bulk_insert_init("INSERT INTO t VALUES")
    for i = 1, 300 do con:bulk_insert_next("(1, '" .. ("y"):rep(50) .. "')") end
    con:bulk_insert_done()
    """
    copied, (code, out, _) = both_ways(database, PLAIN, script(tmp_path, after=again))
    assert (copied, code) == (300, 1)
    assert "is of type boolean" in out


def test_a_run_sends_what_the_script_says(database: Database, tmp_path: Path) -> None:
    database.execute(PLAIN)
    path = tmp_path / "run.lua"
    init = SCRIPT.replace("prepare", "thread_init").format(target="t", row=ROW, rows=300, before="", after="")
    path.write_text(f"{init}function event() end")
    code, _, err = run(*place(database), str(path), "--events=1", "run")
    assert (code, "COPY" in err) == (0, False)
    assert database.value("select count(*) from t") == 300


@pytest.mark.skipif(PEER is None, reason="sysbench is not installed")
@pytest.mark.parametrize("way", ["on", "off"])
def test_batches_before_a_refused_one_are_kept(database: Database, tmp_path: Path, way: str) -> None:
    path = script(tmp_path, rows=30_000)
    setup = "create table t (a int check (a <> 15000), b text)"
    kept = []
    for program in ("theirs", "ours"):
        database.execute(f"drop table if exists t; {setup}")
        if program == "theirs":
            assert PEER is not None
            ran = subprocess.run([PEER, *place(database), path, "prepare"], check=False, capture_output=True)
            code = ran.returncode
        else:
            code, out, _ = prepare(database, f"--bulk-copy={way}", path)
            assert "check constraint" in out
        assert code == 1
        kept.append(database.value(CONTENT.format("t")))
    assert kept[0] == kept[1] != "-"
