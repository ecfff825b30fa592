"""The rule that every statement of ours says in which schema it works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from check_qualified import findings, in_page, in_python, in_sql  # noqa: E402

DDL = [
    "create table t (a int)",
    "create unlogged table if not exists t (a int)",
    "create unique index i on t (a)",
    "create index on t (a)",
    "create or replace function f() returns void",
    "CREATE TABLE t (a int)",
    "drop table if exists t cascade",
    "drop view t",
    "alter table t add primary key (a)",
    "truncate t",
    "insert into t values (1)",
    "delete from t where a = 1",
    "update t set a = 1",
    "copy t (a) from stdin",
    "vacuum analyze t",
    "analyze t",
    "comment on table t is 'x'",
    "optimize table t final",
    "execute 'drop table ' || name",
]


@pytest.mark.parametrize("statement", DDL)
def test_a_statement_without_a_schema_is_found(statement: str) -> None:
    assert [line for line, _ in in_sql(f"-- x\n{statement};\n")] == [2]
    assert list(in_python(f"x = {statement!r}\n"))
    assert list(in_page(f"text\n```sql\n{statement};\n```\n")) == [(3, said) for _, said in in_sql(statement)]


@pytest.mark.parametrize("statement", DDL[:-1])
def test_one_that_says_its_schema_is_not(statement: str) -> None:
    named = statement.replace(" t", " loadstone.t", 1) if " t" in statement else statement
    named = named.replace("function f", "function loadstone.f").replace("loadstone.table", "table")
    for said in ("table", "unlogged table", "on", "if exists", "if not exists", "view", "into", "from"):
        named = named.replace(f"{said} t", f"{said} loadstone.t")
    assert list(in_sql(named.replace("TABLE t", "TABLE loadstone.t"))) == []


def test_in_python_the_name_must_come_from_where_names_are_made() -> None:
    fine = (
        "def f(self, table: Qualified, options):\n"
        "    name, x = self.qualified(options.name), 1\n"
        "    some = [self.qualified(n) for n in x]\n"
        "    yield f'create table {table} (a)'\n"
        "    yield f'drop table {name}'\n"
        "    yield f'insert into {self.qualified(options.name)} values (1)'\n"
        "    yield from (f'analyze {each}' for each in some)\n"
    )
    assert list(in_python(fine)) == []
    assert len(list(in_python(fine.replace("self.qualified", "quoted").replace(": Qualified", "")))) == 4
    assert list(in_python('X = "drop table {qualified} cascade"\n"""A text: drop table t."""\n')) == []
    assert list(in_python("# unqualified: the engine has no schemas\nX = 'drop table t'\n")) == []


@pytest.mark.slow  # `make quick` runs the program itself
def test_nothing_of_ours_works_where_the_search_path_leads() -> None:
    assert list(findings(ROOT)) == []
