"""Checkpoint cycles that fit the windows of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from loadstone.ab.checkpoints import SHORTEST_S, cycle_s, settings_for
from loadstone.experiment.parts import Parts
from loadstone.run import Request, plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from loadstone.plan.model import Plan


def measured(**overrides: str) -> Plan:
    request = Request([find_scenario("session-oltp")], ["pg18"], size="tiny", overrides=overrides)
    return Parts().measuring(plan_of(request, parse_targets(request.targets)))


@given(st.floats(0.1, 100_000))
def test_windows_cover_whole_cycles(window_s: float) -> None:
    cycle = cycle_s(window_s)
    if cycle is None:
        assert window_s < SHORTEST_S
        return
    assert SHORTEST_S <= cycle <= max(window_s, SHORTEST_S)
    cycles = window_s / cycle
    assert abs(cycles - round(cycles)) <= max(1.0, cycles) / cycle + 1e-9, "cycles are whole seconds"
    assert cycles >= 2 - 1e-9 or window_s < 2 * SHORTEST_S + 2


def test_the_users_own_checkpoints_stay() -> None:
    plan = measured(duration="60")
    assert settings_for(plan, {}) == {"checkpoint_timeout": "30s"}
    assert settings_for(plan, {"max_wal_size": ""}) == {}
    assert settings_for(measured(), {}) == {}
