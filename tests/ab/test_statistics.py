"""What `loadstone ab` promises, by simulated streams of trials: false alarms, power, and what is invalid."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from loadstone.ab import statistics
from loadstone.ab.order import orders
from loadstone.ab.statistics import LOOKS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

STREAMS = 20_000
FEWER = 4_000
"""Where controls are judged as well."""
MATTERS = 0.03
ALARMS = ("worse", "better", "small")


@dataclass(frozen=True)
class Machine:
    """How trials scatter: ln(rate) of trials one after the other."""

    spread: float = 0.02
    memory: float = 0.0
    """Of AR(1): the correlation of neighbouring trials."""
    stalls: float = 0.0
    """Share of trials that lose 20 %."""
    slot: float = 0.0
    """What each later place in a block adds."""
    drift: float = 0.0
    """What the machine loses from the first trial to the last."""

    def noise(self, trials: int, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        found = rng.normal(0, self.spread, (STREAMS, trials))
        for at in range(1, trials) if self.memory else ():
            own = math.sqrt(1 - self.memory**2) * found[:, at]
            found[:, at] = self.memory * found[:, at - 1] + own
        found += np.log(0.8) * (rng.random((STREAMS, trials)) < self.stalls)
        return found - self.drift * np.arange(trials) / trials


def streams(machine: Machine, effect: float = 0.0, *, fixed: bool = False, seed: int = 3) -> np.ndarray:
    """Return ln of A, B and A' of each block: (arms, streams, blocks)."""
    arms, blocks = ("A", "B", "A'"), LOOKS[-1]
    noise = machine.noise(len(arms) * blocks, seed)
    in_turn = [arms] * blocks if fixed else orders(arms, blocks, seed)
    found = np.empty((3, STREAMS, blocks))
    for block, names in enumerate(in_turn):
        for place, name in enumerate(names):
            figures = noise[:, block * len(arms) + place] + place * machine.slot
            found[arms.index(name), :, block] = figures + (effect if name == "B" else 0.0)
    return found


@dataclass(frozen=True)
class Ends:
    verdict: np.ndarray
    blocks: np.ndarray


def performed(found: np.ndarray, matters: float = MATTERS) -> Ends:
    """Do as an experiment does: look, stop where all is decided or the set-up is invalid."""
    differences, twins = ((found[at] - found[0])[:, None] for at in (1, 2))
    decided = statistics.sequential(differences, LOOKS, matters, [True], final=False)
    blocks = np.where(decided.at[:, 0] > 0, decided.at[:, 0], LOOKS[-1])
    verdict = decided.verdict[:, 0]
    for look in reversed(LOOKS):
        between, at_end = (statistics.moved(twins[..., :look], final=final)[:, 0] for final in (False, True))
        invalid = np.where(look < blocks, between, (look == blocks) & at_end)
        verdict, blocks = np.where(invalid, "invalid", verdict), np.where(invalid, look, blocks)
    return Ends(verdict, blocks)


def share(hits: ArrayLike) -> float:
    return float(np.asarray(hits, dtype=float).mean())


MACHINES = {
    "quiet": Machine(0.005),
    "usual": Machine(),
    "noisy": Machine(0.10),
    "memory": Machine(memory=0.7),
    "stalls": Machine(stalls=0.1),
    "slot": Machine(slot=0.02),
    "drift": Machine(drift=0.3),
    "all": Machine(memory=0.5, stalls=0.05, slot=0.02, drift=0.2),
}


def controlled(
    found: np.ndarray, controls: np.ndarray, looks: tuple[int, ...] = LOOKS, matters: float = MATTERS
) -> np.ndarray:
    """Do as an experiment of one phase with controls does: (streams, blocks), (streams, controls, blocks)."""
    verdict, open_ = np.full(len(found), "", dtype="<U9"), np.full(len(found), fill_value=True)
    for look in looks:
        last, some, clocks = look == looks[-1], found[:, None, :look], controls[..., :look]
        decided = statistics.sequential(some, looks, matters, [True], final=False)
        reached = np.asarray((decided.at > 0).all(axis=-1) | last)
        ends = [statistics.moved(clocks, final=final) for final in (False, True)]
        machine = statistics.explained(clocks, np.where(reached[:, None], ends[1], ends[0]))
        stays = statistics.withstands(some, decided.verdict, machine, matters, [True], final=last)[:, 0]
        ended = open_ & (reached | ~stays)
        verdict = np.where(ended, np.where(stays, decided.verdict[:, 0], "invalid"), verdict)
        open_ &= ~ended
    return verdict


def clocks(spread: float, moved: float = 1.0, *, blocks: int = LOOKS[-1], tails: bool = False) -> np.ndarray:
    """Return ln(B/A) of a quiet control and of one that scatters, the second one moved."""
    rng, size = np.random.default_rng(6), (FEWER, 2, blocks)
    noise = rng.standard_t(2, size) if tails else rng.normal(0, 1, size)
    return np.asarray(noise * np.array([[0.01], [spread]]) + np.array([[0.0], [math.log(moved)]]))


def plain(spread: float, ratio: float, blocks: int = LOOKS[-1]) -> np.ndarray:
    return np.random.default_rng(7).normal(math.log(ratio), spread, (FEWER, blocks))


@pytest.mark.parametrize("tails", [False, True])
def test_a_noisy_control_seldom_makes_a_steady_machine_invalid(*, tails: bool) -> None:
    """The disk scatters by half from block to block, and is the same for both sides."""
    disk = clocks(0.5, tails=tails)
    invalid = [share(controlled(plain(0.02, ratio), disk) == "invalid") for ratio in (1.0, 0.9, 0.5)]
    assert invalid[0] <= 0.015
    assert invalid[1] <= 0.005
    assert invalid[2] <= 0.003
    few = controlled(plain(0.03, 0.173, 3), clocks(0.5, blocks=3, tails=tails), (2, 3), 0.5)
    assert share(few == "invalid") <= 0.001


def test_a_large_difference_stays_where_the_disk_did_differ() -> None:
    """Of 0.173, a disk that is slower by half explains 0.67."""
    ended = controlled(plain(0.03, 0.173, 3), clocks(0.05, 1.5, blocks=3), (2, 3), 0.5)
    assert share(ended == "worse") > 0.995
    assert share(controlled(plain(0.02, 0.7), clocks(0.03, 1.1)) == "worse") > 0.999


@pytest.mark.parametrize("moved", [1.1, 1.3, 0.8])
def test_a_difference_that_the_machine_explains_is_invalid(moved: float) -> None:
    ended = controlled(plain(0.02, 1 / moved), clocks(0.03, moved))
    assert share(ended == "invalid") >= 0.95
    assert share(np.isin(ended, ALARMS)) <= 0.05


def test_a_machine_that_may_hide_a_difference_is_invalid() -> None:
    """B is a tenth better, and its disk a tenth slower; and where a disk changes nothing, nobody knows."""
    ended = controlled(plain(0.02, 1.0), clocks(0.03, 1.1))
    assert share(ended == "invalid") >= 0.98
    assert share(controlled(plain(0.02, 1.0), clocks(0.03, 1.005)) == "same") >= 0.95


@pytest.mark.parametrize("name", MACHINES)
def test_equal_sides_are_seldom_called_different(name: str) -> None:
    ended = performed(streams(MACHINES[name]))
    assert share(np.isin(ended.verdict, ALARMS)) <= 0.05
    assert share(ended.verdict == "invalid") <= 0.02


def test_without_a_change_a_quiet_machine_soon_says_the_same() -> None:
    ended = performed(streams(Machine(0.01)))
    assert share(ended.verdict == "same") > 0.9
    assert ended.blocks.mean() < 16


@pytest.mark.parametrize("name", ["usual", "noisy", "memory", "drift"])
def test_the_smallest_effect_that_is_printed_is_found(name: str) -> None:
    machine = MACHINES[name]
    equal = streams(machine)
    spread = float(np.sqrt(np.mean((equal[1] - equal[0]).var(axis=-1, ddof=1))))
    effect = float(statistics.smallest_effect(spread, LOOKS[-1]))
    # What does not matter may be called the same before: here everything matters.
    ended = performed(streams(machine, -math.log1p(effect), seed=4), matters=effect / 4)
    assert share(ended.verdict == "worse") >= 0.75
    assert share(ended.verdict == "better") < 0.001


def test_an_effect_of_one_spread_is_found_and_early() -> None:
    machine = Machine(0.06)
    ended = performed(streams(machine, -0.06 * math.sqrt(2)))
    assert share(ended.verdict == "worse") >= 0.95
    assert ended.blocks.mean() < 26


def test_a_real_difference_that_matters_is_seldom_called_the_same() -> None:
    ended = performed(streams(Machine(), -math.log1p(MATTERS)))
    assert share(ended.verdict == "same") <= 0.06


def test_a_fixed_order_with_an_effect_of_the_slot_is_invalid() -> None:
    """Orders of an experiment are balanced; were they not, A' would say so, and the order itself does."""
    found = streams(Machine(0.01, slot=0.02), fixed=True)
    ended = performed(found)
    assert share(ended.verdict == "invalid") > 0.95
    assert share(np.isin(ended.verdict, ALARMS)) < 0.05
    assert statistics.is_one_sided(np.ones(30, dtype=bool))
    assert not statistics.is_one_sided(np.arange(30) % 2 == 0)


def test_an_effect_of_the_slot_is_measured() -> None:
    found = streams(Machine(0.01, slot=0.02))
    first = np.array([names.index("A") < names.index("B") for names in orders(("A", "B", "A'"), 30, 3)])
    effects = [statistics.slot_effect(one, first) for one in (found[1] - found[0])[:200]]
    sizes = [effect[0] for effect in effects if effect]
    assert len(sizes) == 200
    # With three places, A and B are one or two places apart.
    assert np.mean(sizes) == pytest.approx(0.02 * 4 / 3, rel=0.1)
    quiet = streams(Machine(0.01))
    p_values = [statistics.slot_effect(one, first) for one in (quiet[1] - quiet[0])[:1000]]
    assert share(np.array([found[1] < 0.01 for found in p_values if found])) < 0.03


def test_among_many_phases_false_alarms_are_as_rare() -> None:
    noise = np.random.default_rng(9).normal(0, 0.03, (2000, 6, 30))
    found = statistics.sequential(noise, LOOKS, MATTERS, [True] * 6, final=False)
    assert share(np.isin(found.verdict, ALARMS).any(axis=-1)) <= 0.05


def test_a_verdict_stays_as_it_was_reached() -> None:
    early = np.concatenate([np.full(6, -0.3), np.full(24, 0.3)]) + np.linspace(0, 1e-3, 30)
    found = statistics.sequential(early[None], LOOKS, MATTERS, [True], final=True)
    assert (found.verdict[0], found.at[0]) == ("worse", 6)
    lower = statistics.sequential(early[None], LOOKS, MATTERS, [False], final=True)
    assert lower.verdict[0] == "better"


@pytest.mark.parametrize("blocks", [0, 1, 2])
def test_too_few_blocks_decide_nothing(blocks: int) -> None:
    found = statistics.sequential(np.full((1, blocks), -0.5), LOOKS, MATTERS, [True], final=True)
    assert (found.verdict[0], found.at[0]) == ("undecided", 0)


def test_the_smallest_effect_is_that_of_the_design() -> None:
    shown = [round(100 * float(statistics.smallest_effect(0.01, n)), 2) for n in (6, 10, 20)]
    assert shown == [1.44, 1.0, 0.66]
    assert statistics.blocks_for(0.0101, 0.01) == 10
    assert statistics.blocks_for(1e-6, 0.1) is None


@given(st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=10))
def test_sign_flips_against_all_of_them(values: list[float]) -> None:
    differences = np.array(values)
    sums = [abs(sum(s * v for s, v in zip(signs, values, strict=True)))
            for signs in itertools.product((-1, 1), repeat=len(values))]  # fmt: skip
    least, most = ((np.array(sums) >= abs(differences.sum()) + margin).mean() for margin in (1e-9, -1e-9))
    found = statistics.sign_flip_p(differences)
    assert found is not None
    assert least <= found <= most


def test_sign_flips_of_thirty_blocks_take_no_time() -> None:
    assert statistics.sign_flip_p(np.full(30, 0.1)) == 2 / 2**30
    assert statistics.sign_flip_p(np.zeros(30)) == 1
    assert statistics.sign_flip_p(np.zeros(100)) is None


def test_hodges_lehmann_against_its_definition() -> None:
    values = np.random.default_rng(1).standard_cauchy(9)
    pairs = [(one + other) / 2 for one, other in itertools.combinations_with_replacement(values, 2)]
    assert float(statistics.hodges_lehmann(values)) == pytest.approx(float(np.median(pairs)))


@given(st.integers(0, 2**63 - 1), st.sampled_from([("A", "B"), ("A", "B", "A'")]))
def test_orders_are_balanced_at_every_look(seed: int, arms: tuple[str, ...]) -> None:
    found = orders(arms, 30, seed)
    assert found == orders(arms, 30, seed)
    for look in LOOKS:
        for one, other in itertools.combinations(arms, 2):
            before = sum(names.index(one) < names.index(other) for names in found[:look])
            assert before == look / 2
    places = [names.index("A") for names in found]
    assert {places.count(place) for place in range(len(arms))} == {30 / len(arms)}


def test_orders_depend_on_the_seed() -> None:
    assert len({tuple(orders(("A", "B", "A'"), 30, seed)) for seed in range(20)}) > 15


def test_interim_levels_are_those_of_the_design() -> None:
    """At 6 blocks p must be below 0.001; at the last look below 0.047."""
    t = stats.t.isf(0.0012 / 2, 5)
    values = np.array([-1.0, 1, -1, 1, -1, 1])
    values = values / values.std(ddof=1) + t / math.sqrt(6)
    assert statistics.sequential(values[None], LOOKS, MATTERS, [True], final=False).verdict[0] == "undecided"
    assert statistics.sequential(values[None], LOOKS, MATTERS, [True], final=True).verdict[0] == "better"
