"""A plan says what would be made, and makes none of it: it does not grow with the rows."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from loadstone.plan.plan import plan_to_json
from loadstone.run import Request, plan_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.slow  # programs are started

MIB = 1 << 20
FEW = {"index-import": {"rows": "200000"}, "tsbs-devops": {"native": "true", "fewer_devices": "20"}}
BILLION = {
    "index-import": {"rows": "1000000000", "rows_5": "0"},
    # 100 to 100,000 devices for up to ten days, a row every second: about a billion rows in each phase
    "tsbs-devops": {"native": "true", "shorter": "1", "interval": "8"},
}


def planned(name: str, overrides: Mapping[str, str]) -> tuple[str, int, int]:
    """Return the plan, how many objects it holds, and how many bytes more were in use while it was made."""
    request = Request([find_scenario(name)], ["pg"], "small", overrides)
    targets = parse_targets(request.targets)
    plan_of(request, targets)  # what is imported or made once is no part of a plan
    gc.collect()
    before = len(gc.get_objects())
    tracemalloc.start()
    try:
        plan = plan_of(request, targets)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    gc.collect()
    return plan_to_json(plan), len(gc.get_objects()) - before, peak


@pytest.mark.parametrize("name", ["index-import", "tsbs-devops"])
def test_a_billion_rows_need_no_more_memory_to_plan_than_a_few(name: str) -> None:
    few, objects_few, peak_few = planned(name, FEW[name])
    billion, objects, peak = planned(name, BILLION[name])
    assert len(billion) - len(few) < 0.02 * len(few)
    assert objects <= objects_few + 100
    assert peak <= peak_few + MIB
