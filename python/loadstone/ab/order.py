"""In which order the arms of a block run: balanced, and shuffled by a seed that is recorded."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


def orders(arms: Sequence[str], blocks: int, seed: int) -> list[tuple[str, ...]]:
    """Return the order of each block.

    Orders come in pairs, one the reverse of the other: after every two blocks each arm ran as often before
    each other one as after it. All pairs are used before one comes again.
    """
    chance = np.random.default_rng(seed)
    pairs = [(order, order[::-1]) for order in permutations(arms) if order < order[::-1]]
    found: list[tuple[str, ...]] = []
    while len(found) < blocks:
        for at in chance.permutation(len(pairs)):
            found += [pairs[at][which] for which in chance.permutation(2)]
    return found[:blocks]
