"""What `loadstone ab` says before it starts and after a block."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from loadstone.ab.experiment import Limits
from loadstone.ab.texts import before
from loadstone.compare.documents import Row
from loadstone.compare.texts import effect
from loadstone.experiment.arms import arm

if TYPE_CHECKING:
    from loadstone.ab.experiment import Experiment


def said(looks: tuple[int, ...], b_settings: dict[str, str]) -> list[str]:
    arms = [arm("A", "pg18", {}, {}), arm("B", "pg18", b_settings, {})]
    found: Any = SimpleNamespace(arms=arms, limits=Limits(looks, None), trial_s=10.0, noise=0.01)
    return list(before(cast("Experiment", found)))


def test_sides_that_are_set_up_alike_are_named() -> None:
    assert any("A and B are set up alike" in line for line in said((6, 30), {}))
    assert not any("set up alike" in line for line in said((6, 30), {"work_mem": "8MB"}))


def test_how_long_it_takes_and_what_it_finds() -> None:
    lines = said((6, 30), {"work_mem": "8MB"})
    assert "6 to 30 blocks of 2 trials of about 10.0 s: 2 min to 10 min, and loading" in lines[-2]
    assert lines[-1].endswith("differences are found from 1.4 % in 6 blocks, from 0.53 % in 30 blocks")
    lines = said((2,), {"work_mem": "8MB"})
    assert lines[-2].startswith("2 blocks of 2 trials of about 10.0 s: 40.0 s, and loading")
    assert lines[-1].endswith("differences are found from 10 % in 2 blocks")


def test_a_large_effect_is_a_factor() -> None:
    row = Row(scenario=None, phase=None, title="", variant={}, metric="rate", unit="", better="higher",
              primary=True)  # fmt: skip
    assert effect(row) == "–"
    row.smallest_effect = 0.031
    assert effect(row) == "± 3.1 %"
    row.smallest_effect = 25.9
    assert effect(row) == "26.9×"
