"""A scenario's files in another dialect of SQL: which targets run them, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import LoadstoneError, ShellRefusedError
from loadstone.plan.model import ScriptWorkload
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.run.preflight import refuse_shell
from loadstone.scenario.scenario import find_scenario, load_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan

TEXT = """
id = "two"
title = "Two"
version = "1"
why = "A test."

[requires]
capabilities = ["plpgsql|mysql"]

[parameters.rows]
type = "integer"
default = 7
help = "rows"

[[phase]]
id = "a"
kind = "script"
title = "a"
setup = ["make.sql", "select 1"]
scripts = ["run.pgbench"]
clients = 1
duration_s = 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mysql").mkdir()
    (tmp_path / "scenario.toml").write_text(TEXT)
    (tmp_path / "make.sql").write_text("create table t as select generate_series(1, {{ rows }})")
    (tmp_path / "run.pgbench").write_text("END;\n")
    (tmp_path / "mysql" / "make.sql").write_text("create table t as select seq from seq_1_to_{{ rows }}")
    return tmp_path


def planned(folder: Path, *targets: PlanTarget) -> Plan:
    return make_plan([load_scenario(folder)], targets, "small")


def target(name: str, *capabilities: str, dialect: str = "") -> PlanTarget:
    return PlanTarget(name, name, f"{name}://", frozenset(capabilities), dialect=dialect)


def test_a_target_runs_the_files_of_its_dialect(folder: Path) -> None:
    plan = planned(folder, target("pg", "plpgsql"), target("maria", "mysql", dialect="mysql"))
    (first,), (second,) = (found.phases for found in plan.targets)
    assert first.setup == ("create table t as select generate_series(1, 7)", "select 1")
    assert second.setup == ("create table t as select seq from seq_1_to_7", "select 1")
    assert first.key == second.key
    assert isinstance(second.workload, ScriptWorkload)
    assert second.workload.drive.scripts[0].text == "END;\n"  # there is no other


def test_one_of_two_capabilities_is_enough(folder: Path) -> None:
    plan = planned(folder, target("pg", "plpgsql"), target("maria", "mysql"), target("duck", "sql"))
    assert [found.phases[0].skip for found in plan.targets] == [
        None, None, "duck does not support plpgsql on this server",
    ]  # fmt: skip


def test_a_file_that_replaces_none_is_refused(folder: Path) -> None:
    (folder / "mysql" / "maek.sql").write_text("select 1")
    with pytest.raises(LoadstoneError, match="replaces no file of the scenario") as caught:
        load_scenario(folder)
    assert "make.sql, run.pgbench" in caught.value.hint


def test_an_unknown_parameter_is_found_in_a_dialects_file_too(folder: Path) -> None:
    (folder / "mysql" / "make.sql").write_text("select {{ rosw }}")
    with pytest.raises(LoadstoneError, match="rosw"):
        load_scenario(folder)


def test_a_shell_command_of_the_second_target_is_refused_as_well(folder: Path) -> None:
    (folder / "mysql" / "run.pgbench").write_text("\\shell rm -r /\n")
    plan = planned(folder, target("pg", "plpgsql"), target("maria", "mysql", dialect="mysql"))
    with pytest.raises(ShellRefusedError, match="rm -r /"):
        refuse_shell(plan)


def test_each_skipped_phase_names_what_that_phase_needs() -> None:
    maria = target("maria", "sql", "load", "load:copy_text", "query", "mysql", dialect="mysql")
    plan = make_plan([find_scenario("count-loop")], [maria, target("duck", "sql", "load", "query")], "tiny")
    skipped = [
        {phase.variant.get("parallel"): phase.skip for phase in found.phases if phase.id == "count"}
        for found in plan.targets
    ]
    assert skipped == [
        {0: None, 2: "maria does not support parallel query on this server"},
        {
            0: "duck does not support plpgsql on this server",
            2: "duck does not support plpgsql and parallel query on this server",
        },
    ]
