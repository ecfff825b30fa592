"""Which phases load a template, and which are measured on its copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.errors import LoadstoneError
from loadstone.experiment.parts import TEMPLATE, Parts
from loadstone.run import Request, plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from loadstone.plan.model import Plan, PlannedPhase


def whole(scenario: str, **overrides: str) -> Plan:
    request = Request([find_scenario(scenario)], ["pg18"], size="tiny", overrides=overrides)
    return plan_of(request, parse_targets(request.targets))


def phases(plan: Plan) -> list[PlannedPhase]:
    return list(plan.targets[0].phases)


def ids(plan: Plan) -> list[str]:
    return [phase.id for phase in phases(plan)]


def test_what_comes_before_the_first_script_loads_the_template() -> None:
    plan = whole("iot-feed", index="brin,btree")
    parts = Parts()
    assert ids(parts.loading(plan)) == ["prepare", TEMPLATE]
    first = next(phase for phase in phases(plan) if phase.kind == "script")
    prepared = phases(parts.loading(plan))[-1]
    assert prepared.setup == first.setup != ()
    measured = phases(parts.measuring(plan))
    assert measured[0].setup == (), "the copy has it already"
    assert measured[0].variant == {"index": "brin"}
    assert measured[1].setup != (), "later phases set up what they need"
    assert measured[-1].kind != "sql", "nobody needs the clean-up of a copy"


def test_a_chosen_phase_is_measured_alone() -> None:
    plan = whole("session-oltp")
    parts = Parts(("log-in",))
    assert ids(parts.loading(plan)) == ["fill", "log-out", TEMPLATE]
    assert ids(parts.measuring(plan)) == ["warm-cache", "log-in"]


def test_phases_that_fill_caches_run_in_each_trial() -> None:
    plan = whole("session-oltp")
    assert ids(Parts().loading(plan)) == ["fill", TEMPLATE]
    assert ids(Parts().measuring(plan)) == [
        "warm-cache",
        "log-out",
        "log-in",
        "oltp-function",
        "oltp-mix",
    ]


def test_loads_are_measured_where_there_is_nothing_else_or_they_are_chosen() -> None:
    assert {phase.kind for phase in phases(Parts().measuring(whole("index-import")))} >= {"load"}
    tsbs = whole("tsbs-iot")
    driven = phases(Parts().measuring(tsbs))[0]
    assert driven.kind in ("queries", "script")
    load = next(phase for phase in phases(tsbs) if phase.kind == "load")
    assert phases(Parts((load.id,)).measuring(tsbs))[0].id == load.id


@pytest.mark.parametrize(
    "scenario", ["iot-feed", "session-oltp", "pgbench-grid", "tsbs-devops", "storage-types"]
)
def test_keys_stay_unique(scenario: str) -> None:
    plan = whole(scenario)
    for part in (Parts().loading(plan), Parts().measuring(plan)):
        keys = [phase.key for phase in phases(part)]
        assert len(keys) == len(set(keys)) > 0


@pytest.mark.parametrize(("name", "words"), [("log-inn", "does not exist"), ("fill", "measures nothing")])
def test_a_phase_that_cannot_be_measured_is_refused(name: str, words: str) -> None:
    with pytest.raises(LoadstoneError, match=words) as refused:
        Parts((name,)).check(whole("session-oltp"))
    assert "log-in" in refused.value.hint
