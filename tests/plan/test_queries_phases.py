"""Phases that ask plain SQL: written in a scenario, planned, refused before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.workloads import plain_queries

from loadstone.errors import LoadstoneError
from loadstone.model import Draw, PlainQueries, PlainQuery, Published
from loadstone.plan.plan import (
    PlanTarget,
    estimated_seconds,
    make_plan,
    plan_from_json,
    plan_to_json,
)
from loadstone.scenario.scenario import load_scenario
from loadstone.scenario.sql import filled, placeholders

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan, PlannedPhase

SCENARIO = """
id = "mine"
title = "Mine"
version = "1"
why = "To see."
parameters.round = { type = "integer", default = 1, help = "Turn" }
parameters.clients = { type = "integer", default = 8, minimum = 1, help = "Clients" }
parameters.cold = { type = "boolean", default = true, help = "Empty the caches" }
parameters.runs = { type = "integer", default = 3, help = "Warm runs" }
parameters.least = { type = "integer", default = 5, help = "Least" }

[[phase]]
id = "queries"
kind = "queries"
title = "Queries"
sweep = { round = [1, 2] }
queries.table = "t"
queries.cold = "{{ cold }}"
queries.warm_runs = "{{ runs }}"
queries.timeout_s = 7
queries.statements = [ { name = "Sql1", sql = "select count(*) from t" }, { name = "Sql2", sql = "two.sql" } ]
published = [
  { metric = "warm_ms", query = "Sql2", system = "MapD", value = 52, unit = "ms" },
  { metric = "cold_ms", query = "Sql1", value = 1, unit = "ms", note = "n", when = { round = 2 } },
]

[[phase]]
id = "many"
kind = "queries"
title = "Many"
[phase.queries]
clients = "{{ clients }}"
duration_s = 30
distinct = 50
draws = [ { name = "d", least = "{{ least }}", most = 9 } ]
statements = [ { name = "drawn", sql = "select sum(a) from t where a < :d and b <> ':d' -- :d" } ]

[[phase]]
id = "import"
kind = "load"
title = "Import"
data = { set = "import", rows = 1000 }
table = { name = "test" }
workers = 2
queries = { clients = 3, statements = [ { name = "Sql1", sql = "select count(*) from test" } ] }
"""


def plan_of(folder: Path, text: str = SCENARIO, *capabilities: str, **overrides: str) -> Plan:
    (folder / "scenario.toml").write_text(text)
    (folder / "two.sql").write_text("-- two\nselect a, count(*) from t\ngroup by a;\n")
    found = frozenset(capabilities or ("load", "query"))
    targets = [PlanTarget("duckdb", "duckdb", "duckdb:", found, wire=False)]
    plan = make_plan([load_scenario(folder)], targets, "small", overrides)
    assert plan_from_json(plan_to_json(plan)) == plan
    return plan


def planned(folder: Path, text: str = SCENARIO, **overrides: str) -> dict[str, PlannedPhase]:
    return {phase.key: phase for phase in plan_of(folder, text, **overrides).targets[0].phases}


def test_queries_are_planned_in_each_round_for_any_engine_that_answers(tmp_path: Path) -> None:
    phases = planned(tmp_path)
    first, second = phases["001-queries-round-1"], phases["002-queries-round-2"]
    assert plain_queries(first) == PlainQueries(
        queries=(
            PlainQuery("Sql1", "select count(*) from t"),
            PlainQuery("Sql2", "select a, count(*) from t\ngroup by a"),
        ),
        table="t",
        cold=True,
        warm_runs=3,
        timeout_s=7,
    )
    assert first.skip is None
    assert first.published == (Published("warm_ms", 52, "ms", system="MapD", query="Sql2"),)
    assert second.published[1] == Published("cold_ms", 1, "ms", "n", query="Sql1")
    assert first.workload.clients == 1


def test_a_load_of_queries_counts_its_clients_and_its_time(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    phases = {phase.id: phase for phase in plan.targets[0].phases}
    many = plain_queries(phases["many"])
    assert (many.clients, many.duration_s, many.distinct) == (8, 30, 50)
    assert many.draws == (Draw("d", 5, 9),)
    assert phases["many"].workload.clients == 8
    assert phases["import"].workload.clients == 5
    # Two rounds of two queries, once cold and three times warm, at a second each.
    assert 30 + 2 * 2 * 4 <= estimated_seconds(plan) < 30 + 2 * 2 * 4 + 1


def test_a_target_that_answers_no_queries_skips_them_in_words(tmp_path: Path) -> None:
    (phase, *_) = plan_of(tmp_path, SCENARIO, "load").targets[0].phases
    assert phase.skip == "duckdb does not support query"


WRONG = [
    (
        "queries.table",
        "data = { use_case = 'iot', start = '2016-01-01T00:00:00Z', span_s = 1 }\nqueries.table",
        "no such",
    ),
    ("queries.table", "timeout_s = 5\nqueries.table", "phase[0].timeout_s"),
    ("queries.table", "queries.kinds = ['x']\nqueries.table", "phase[0].queries.table: there is no such key"),
    ("queries = { clients = 3", "queries = { kinds = ['x'] }\ncurves = [] #", "with 'statements'"),
    (
        'query = "Sql2"',
        'query = "Sql3"',
        "phase[0].published[0].query: the phase has no query 'Sql3'",
    ),
    (
        "3, statements = [",
        '3, statements = [ { name = "Sql1", sql = "select 1" },',
        "phase[2].queries.statements[1].name",
    ),
    ('sql = "two.sql"', 'sql = "three.sql"', "there is no file three.sql"),
    ('sql = "two.sql"', 'sql = "select 1; select 2"', "2 statements"),
    ('sql = "two.sql"', 'sql = "select :d"', "':d' in Sql2 has no draw"),
    (
        "queries.timeout_s = 7",
        "queries.clients = 7",
        "phase[0].queries.clients: without duration_s, queries run one by one",
    ),
    ("queries.timeout_s = 7", "queries.distinct = 7", "phase[0].queries.distinct"),
    ("queries.timeout_s = 7", "queries.timeout_s = 0", "phase[0].queries.timeout_s: 0 is not possible"),
    ("duration_s = 30", "duration_s = 30\ncold = false", "phase[1].queries.cold: with duration_s"),
    ("most = 9", "most = 4", "phase[1].queries.draws[0].most: there is no number between 5 and 4"),
    (
        "most = 9 }",
        'most = 9 }, { name = "e", least = 1, most = 2 }',
        "no query uses the draw 'e'",
    ),
    ("most = 9 }", 'most = 9 }, { name = "d", least = 1, most = 2 }', "phase[1].queries.draws[1].name"),
    ('draws = [ { name = "d", least = "{{ least }}", most = 9 } ]', "", "distinct: nothing is drawn"),
    ("a < :d", "a < d", "no query uses the draw 'd'"),
    (
        "clients = 3, statements",
        "clients = 3, cold = true, statements",
        "phase[2].queries.cold: queries during a load",
    ),
    ("clients = 3, statements", "duration_s = 3, statements", "phase[2].queries.duration_s"),
    ('kind = "load"', 'kind = "size"', "phase[2].queries: a phase of kind size has no such key"),
]


@pytest.mark.parametrize(("old", "new", "said"), WRONG, ids=[said[:40] for _, _, said in WRONG])
def test_what_does_not_go_together_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in SCENARIO
    with pytest.raises(LoadstoneError) as caught:
        plan_of(tmp_path, SCENARIO.replace(old, new, 1))
    assert said in caught.value.message
    assert caught.value.hint


RENAMED = [
    ("queries.warm_runs", "ask.warm_runs", "phase[0].ask", "It is called `queries` now."),
    ("queries.statements", "queries.questions", "phase[0].queries.questions", "called `statements` now."),
    ('query = "Sql2"', 'question = "Sql2"', "phase[0].published[0].question", "It is called `query` now."),
    ('kind = "queries"', 'kind = "query"', "phase[0].kind", 'The kind "query" is called "queries" now.'),
    ('kind = "queries"', 'kind = "drive"', "phase[0].kind", 'The kind "drive" is called "script" now.'),
]


@pytest.mark.parametrize(("now", "then", "place", "hint"), RENAMED)
def test_a_name_of_version_0_1_0_gets_an_error_with_todays(
    tmp_path: Path, now: str, then: str, place: str, hint: str
) -> None:
    assert now in SCENARIO
    with pytest.raises(LoadstoneError) as caught:
        plan_of(tmp_path, SCENARIO.replace(now, then, 1))
    assert place in str(caught.value)
    assert hint in str(caught.value)


def test_values_that_the_user_gives_are_looked_at_too(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="neither cold nor warm"):
        plan_of(tmp_path, cold="false", runs="0")
    with pytest.raises(LoadstoneError, match="there is no number between 10 and 9"):
        plan_of(tmp_path, least="10")


def test_placeholders_are_names_outside_of_quotes_comments_and_casts() -> None:
    text = """select ':a', ":b", $$:c$$, x::int, :d, (:e), '12:30:00' /* :f */ -- :g
    , :h"""
    assert [name for _, _, name in placeholders(text)] == ["d", "e", "h"]
    assert filled("a<:n and :n>-1 and x::n", {"n": 7}) == "a<7 and 7>-1 and x::n"
    assert filled("a[1:2] + a[:n:5]", {"n": 3}) == "a[1:2] + a[3:5]"
    assert filled("x = -:n", {"n": -3}) == "x = -(-3)"


@given(
    st.lists(st.sampled_from(["select", " ", ":a", "::", "':a'", ":b", "x", "-- :a\n", "\n", "5", "/*:b*/"]))
)
def test_filling_in_touches_nothing_else(parts: list[str]) -> None:
    text = "".join(parts)
    found = list(placeholders(text))
    assert all(text[start:end] == f":{name}" for start, end, name in found)
    same = {name: f":{name}" for _, _, name in found}
    assert filled(text, same) == text
