"""What cannot be run at all is refused: before anything is opened, where that is known then."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import pytest

from loadstone.cli.terminal import Quiet
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.run import Request, execute, plan_of
from loadstone.run.few_clients import refuse_too_few
from loadstone.run.preflight import refuse_idle
from loadstone.run.targets import Opener
from loadstone.scenario.scenario import find_scenario, load_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan
    from loadstone.scenario.scenario import Scenario

FLIGHTS = find_scenario("flights")
FILES_ONLY = "duckdb does not support import of CSV, text or binary files"


def test_files_that_no_target_takes_are_refused_before_a_target_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Opener, "open", lambda *_: pytest.fail("a target was opened"))
    request = Request([FLIGHTS], ["duckdb:"], "tiny", {"files": "mine.csv"}, out=tmp_path / "out")
    with pytest.raises(LoadstoneError) as caught:
        execute(request, Quiet())
    assert caught.value.message == f"nothing of this can run: {FILES_ONLY}"
    assert "use Parquet" in caught.value.hint
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert list(tmp_path.iterdir()) == []


def test_the_plan_says_which_targets_take_no_such_files() -> None:
    request = Request([FLIGHTS], ["duckdb:"], "tiny", {"files": "mine.csv"})
    assert {phase.skip for phase in plan_of(request, parse_targets(["duckdb:"])).targets[0].phases} == {
        FILES_ONLY
    }
    request = Request([FLIGHTS], ["duckdb:"], "tiny", {"files": "/none.parquet", "format": "parquet"})
    with pytest.raises(LoadstoneError, match=r"none\.parquet"):
        plan_of(request, parse_targets(["duckdb:"]))


def test_files_are_looked_at_for_the_target_that_takes_them() -> None:
    request = Request([FLIGHTS], ["duckdb:", "pg"], "tiny", {"files": "/none.csv"})
    with pytest.raises(LoadstoneError, match=r"none\.csv"):
        plan_of(request, parse_targets(request.targets))


@pytest.mark.parametrize(("offered", "refused"), [({"sql"}, True), ({"sql", "query"}, False)])
def test_targets_that_offer_nothing_that_is_needed_are_refused(offered: set[str], *, refused: bool) -> None:
    targets = [
        PlanTarget("a", "postgres", "u", frozenset({"sql"})),
        PlanTarget("b", "postgres", "v", frozenset(offered)),
    ]
    plan = make_plan([FLIGHTS], targets, "tiny")
    if not refused:
        refuse_idle(plan)
        return
    with pytest.raises(
        LoadstoneError, match="nothing of this can run: postgres does not support load"
    ) as caught:
        refuse_idle(plan)
    assert "loadstone engines" in caught.value.hint


CHANGES = """
id = "own"
title = "own"
version = "1"
why = "A test."

[[phase]]
id = "change"
kind = "sql"
title = "change"
setup = ["{statement}"]
"""


def changing(folder: Path, statement: str) -> Request:
    (folder / "scenario.toml").write_text(CHANGES.format(statement=statement))
    return Request([load_scenario(folder)], [f"duckdb:{folder}/mine.duckdb"], "tiny", out=folder / "out")


@pytest.mark.parametrize(
    "statement",
    [
        "drop table if exists t cascade",
        "DROP VIEW v",
        "/* a */ insert or replace into t select 1",
        "update t set i = 1",
        "truncate t",
        "alter table if exists t rename to u",
    ],
)
def test_a_statement_that_may_change_a_table_of_the_users_is_refused(tmp_path: Path, statement: str) -> None:
    """DuckDB looks for a name in `main` as well, whatever the search path is."""
    with duckdb.connect(f"{tmp_path}/mine.duckdb") as own:
        own.execute("create table t (i int)")
        own.execute("create view v as select 1")
        own.execute("insert into t values (42)")
    request = changing(tmp_path, statement)
    with pytest.raises(LoadstoneError, match="names no schema") as caught:
        execute(request, Quiet())
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert "Write loadstone." in caught.value.hint
    with duckdb.connect(f"{tmp_path}/mine.duckdb") as own:
        assert own.execute("select i from t, v").fetchall() == [(42,)]
    assert plan_of(request, parse_targets(["duckdb:"])).targets[0].phases[0].skip is None


@pytest.mark.parametrize(
    "statement",
    [
        "drop table if exists loadstone.t",
        'create table t (i int)", "insert into T select 1", "drop table t',
        "copy (select 1) to 'x'",
        "delete from loadstone . t",
    ],
)
def test_a_statement_that_names_its_schema_is_planned(tmp_path: Path, statement: str) -> None:
    request = changing(tmp_path, statement)
    assert plan_of(request, parse_targets(request.targets)).targets[0].phases[0].skip is None


@pytest.mark.parametrize(
    ("name", "hosts", "message", "hint"),
    [
        ("index-import", 3, "phase 'import': 1 client cannot", "--set workers=3,"),
        ("count-loop", 5, "phase 'fill': 2 clients cannot", "--set load_workers=5,"),
        ("session-oltp", 5, "phase 'log-out': 2 clients cannot", "--set clients=5,"),
        # The values of a sweep that suffice; and a number that no parameter changes.
        ("pgbench-grid", 3, "phase 'grid': 1 client cannot", "--set clients=4,8,"),
        ("pgbench-grid", 9, "phase 'protocols': 8 clients cannot", "Use at least 9 clients in this phase"),
    ],
)
def test_fewer_clients_than_load_hosts_name_the_parameter_and_the_value_that_fits(
    tmp_path: Path, name: str, hosts: int, message: str, hint: str
) -> None:
    scenarios = [find_scenario(name)]
    request = Request(scenarios, ["pg"], "tiny", out=tmp_path / "out", hosts=f"local:{hosts}")
    with pytest.raises(LoadstoneError) as caught:
        execute(request, Quiet())
    assert caught.value.message.startswith(f"{name}: {message}")
    assert caught.value.message.endswith(f"be split over {hosts} load hosts")
    assert hint in caught.value.hint
    assert list(tmp_path.iterdir()) == []
    if mended := re.search(r"--set (\w+)=([\d,]*\d)", caught.value.hint):
        overrides = {mended[1]: mended[2]}
        plan = plan_of(Request(scenarios, ["pg"], "tiny", overrides), parse_targets(["pg"]))
        assert message.partition(":")[0] not in _refused(plan, scenarios, hosts)


def _refused(plan: Plan, scenarios: list[Scenario], hosts: int) -> str:
    try:
        refuse_too_few(plan, scenarios, hosts)
    except LoadstoneError as error:
        return error.message
    return ""


def test_with_several_scenarios_the_parameter_is_named_with_its_scenario() -> None:
    scenarios = [find_scenario("index-import"), find_scenario("session-oltp")]
    request = Request(scenarios, ["pg"], "tiny", {"workers": "3"})
    message = "cannot be split over 3 load hosts"
    with pytest.raises(LoadstoneError, match=message) as caught:
        refuse_too_few(plan_of(request, parse_targets(["pg"])), scenarios, 3)
    assert "--set session-oltp.clients=3," in caught.value.hint
