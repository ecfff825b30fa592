"""What blocks of trials say: verdicts of phases, other metrics, and set-ups that cannot compare."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from loadstone.ab.analysis import Findings, Rules, analyse, order_notes
from loadstone.ab.documents import Trial
from loadstone.ab.order import orders
from loadstone.ab.trial import Measured
from loadstone.compare.metrics import Metric, PhaseValues, identity
from loadstone.compare.texts import remark

RULES = Rules((6, 8, 10), 0.03)
ARMS = ("A", "B", "A'")
Figures = dict[str, float]


def measured(number: int, block: int, arm: str, figures: Figures, control: tuple[float, float]) -> Measured:
    """A trial of as many phases as there are rates; a name with a blank is another metric of a phase."""
    phases: dict[str, PhaseValues] = {}
    for name, value in figures.items():
        phase, _, metric = name.partition(" ")
        entry = phases.setdefault(identity("s", phase, {}), PhaseValues("s", phase, phase.title(), {}))
        entry.primary = "rate"
        kind = Metric(metric or "rate", "tps" if not metric else "ms", "lower" if metric else "higher")
        entry.add(kind, (1, 0), value)
    trial = Trial(
        number=number, block=block, arm=arm, folder=f"trials/{number}", started_at="", seconds=1,  # type: ignore[arg-type]
        cpu_us=control[0], fsync_us=control[1], checkpoints=0, values={},
    )  # fmt: skip
    return Measured(trial, phases)


def blocks_of(
    effects: dict[str, Figures], blocks: int = 10, *, arms: tuple[str, ...] = ARMS, fixed: bool = False,
    spread: float = 0.005, controls: dict[str, float] | None = None, slot: float = 0.0,
) -> list[dict[str, Measured]]:  # fmt: skip
    """Blocks whose figures scatter; `effects` are factors by arm and figure, `controls` of the control."""
    rng = np.random.default_rng(5)
    names = sorted({name for one in effects.values() for name in one})
    number = itertools.count(1)
    found = []
    for block, order in enumerate([arms] * blocks if fixed else orders(arms, blocks, 2), 1):
        trials = {}
        for place, arm in enumerate(order):
            factors = effects.get(arm, {})
            figures = {
                name: 1000 * factors.get(name, 1.0) * float(np.exp(rng.normal(0, spread) + place * slot))
                for name in names
            }
            moved = (controls or {}).get(arm, 1.0)
            control = tuple(moved * 100 * float(np.exp(rng.normal(0, 0.01))) for _ in range(2))
            trials[arm] = measured(next(number), block, arm, figures, (control[0], control[1]))
        found.append(trials)
    return found


def verdicts(found: Findings) -> dict[str | None, str]:
    return {row.phase: row.verdict for row in found.rows if row.primary}


def test_a_slower_phase_is_worse_and_the_other_one_the_same() -> None:
    found = analyse(blocks_of({"B": {"insert": 0.9, "select": 1.0}}), RULES, final=False)
    assert verdicts(found) == {"insert": "worse", "select": "same"}
    assert found.done
    row = next(row for row in found.rows if row.phase == "insert")
    assert row.ratio == pytest.approx(0.9, rel=0.01)
    assert (row.basis, row.repeats_a) == ("blocks", 10)
    check = next(check for check in found.checks if check.phase == "Insert")
    assert check.decided_at == 6
    assert check.sign_flip_p == pytest.approx(2 / 2**10)
    assert check.aa_ratio == pytest.approx(1, rel=0.01)
    assert remark(row) == "decided at block 6; sign-flip p 0.0020"


def test_between_looks_nothing_is_decided() -> None:
    found = analyse(blocks_of({"B": {"insert": 0.9}}, 5), RULES, final=False)
    assert verdicts(found) == {"insert": "undecided"}
    assert not found.done
    assert verdicts(analyse(blocks_of({"B": {"insert": 0.9}}, 5), RULES, final=True)) == {"insert": "worse"}


def test_noise_leaves_it_undecided_and_says_what_would_help() -> None:
    found = analyse(blocks_of({"B": {"insert": 1.0}}, spread=0.2), RULES, final=False)
    (row,) = found.rows
    assert row.verdict == "undecided"
    assert row.needed is not None
    assert row.needed > 100
    assert f"needs about {row.needed} blocks" in remark(row)


def test_other_metrics_have_q_values_and_do_not_decide() -> None:
    found = analyse(
        blocks_of({"B": {"insert": 1.0, "insert p50": 1.2, "insert p99": 1.0}}), RULES, final=False
    )
    others = {row.metric: row for row in found.rows if not row.primary}
    assert others["p50"].verdict == "worse"
    assert others["p99"].verdict in ("same", "small")
    assert others["p50"].adjusted is not None
    assert verdicts(found) == {"insert": "same"}


def test_a_twin_that_differs_makes_its_phase_invalid_and_no_other() -> None:
    effects = {"B": {"insert": 0.9, "select": 0.9}, "A'": {"insert": 0.95, "select": 1.0}}
    found = analyse(blocks_of(effects), RULES, final=False)
    assert verdicts(found) == {"insert": "invalid", "select": "worse"}
    assert "cannot compare" in str(next(row.reason for row in found.rows if row.phase == "insert"))


def test_a_control_that_moves_makes_invalid_what_it_may_explain() -> None:
    effects = {"B": {"insert": 0.9, "select": 1.0, "update": 0.5}}
    found = analyse(blocks_of(effects, controls={"B": 1.1}), RULES, final=False)
    assert verdicts(found) == {"insert": "invalid", "select": "invalid", "update": "worse"}
    assert [one.moved for one in found.controls] == [True, True]
    low, high = found.controls[0].low, found.controls[0].high
    assert low is not None
    assert high is not None
    assert low < 1.1 < high
    why = str(next(row.reason for row in found.rows if row.phase == "select"))
    assert "the machine itself differed between A and B (control: CPU 1.10" in why
    assert found.done
    faster = analyse(blocks_of(effects, controls={"B": 1 / 1.1}), RULES, final=False)
    assert verdicts(faster) == {"insert": "worse", "select": "invalid", "update": "worse"}
    steady = analyse(blocks_of(effects, controls=dict.fromkeys(ARMS, 2.0)), RULES, final=False)
    assert not any(one.moved for one in steady.controls)


def test_a_latency_at_a_fixed_rate_may_change_by_more_than_the_machine() -> None:
    blocks = blocks_of({"B": {"read": 1.0, "read p99": 2.0}}, controls={"B": 1.1})
    for block in blocks:
        for trial in block.values():
            trial.phases[identity("s", "read", {})].primary = "p99"
    assert verdicts(analyse(blocks, RULES, final=False)) == {"read": "invalid"}


def test_a_fixed_order_is_reported_and_balanced_ones_say_what_the_slot_does() -> None:
    effects = {"B": {"insert": 1.0}}
    fixed = analyse(blocks_of(effects, fixed=True, slot=0.03, arms=("A", "B")), RULES, final=False)
    assert verdicts(fixed) == {"insert": "invalid"}
    assert "same order" in str(fixed.rows[0].reason)
    balanced = analyse(blocks_of(effects, slot=0.03, arms=("A", "B")), RULES, final=True)
    assert balanced.rows[0].ratio == pytest.approx(1, abs=0.01)
    (note,) = order_notes(balanced)
    assert "runs later in a block" in note
    assert order_notes(analyse(blocks_of(effects), RULES, final=True)) == []


def test_a_phase_that_was_not_measured_in_every_block_is_not_decided() -> None:
    blocks = blocks_of({"B": {"insert": 0.9, "select": 0.9}})
    key = identity("s", "insert", {})
    del blocks[3]["B"].phases[key].series["rate"]
    found = analyse(blocks, RULES, final=False)
    assert verdicts(found) == {"insert": "undecided", "select": "worse"}
    assert "measured in 9 of 10 blocks" in str(
        next(row.reason for row in found.rows if row.phase == "insert")
    )
    only_a = blocks_of({"B": {"insert": 0.9, "select": 0.9}})
    for block in only_a:
        del block["B"].phases[key].series["rate"]
    assert verdicts(analyse(only_a, RULES, final=False))["insert"] == "missing"


def test_nothing_and_one_block() -> None:
    assert analyse([], RULES, final=True).rows == []
    found = analyse(blocks_of({"B": {"insert": 0.9}}, 1), RULES, final=True)
    assert verdicts(found) == {"insert": "undecided"}
    assert found.rows[0].ratio is not None
