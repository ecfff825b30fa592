"""Sentences about ratios: what was shown, with its interval, or that nothing was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from loadstone.report import formats

if TYPE_CHECKING:
    from loadstone.report.names import Titled
    from loadstone.results.documents.run import PlannedFinding
    from loadstone.results.documents.summary import Group, Summary


KEPT = 0.9
"""Share of a given rate from which on it counts as kept: a short phase ends before its last interval does."""


class Interval(Protocol):
    """A ratio with its interval, where there is one."""

    @property
    def value(self) -> float:
        """The ratio."""

    @property
    def low(self) -> float | None:
        """Lower end."""

    @property
    def high(self) -> float | None:
        """Upper end."""


@dataclass(slots=True)
class Sentence:
    """One sentence of an answer."""

    text: str
    decided: bool = True
    weight: float = 0.0
    """The size of the difference, less than 0 where undecided: the largest stay when there are too many."""
    ratio: Interval | None = None
    """What was not decided, with its interval."""


def is_asked(entry: Titled, scenario: str | None, asked: PlannedFinding) -> bool:
    """Whether a phase, or what was made of it, counts for a scenario's question."""
    return entry.scenario == scenario and (not asked.phases or entry.id in asked.phases)


def kept_its_rate(summary: Summary, group: Group) -> bool:
    """Whether a group had a given rate and kept it: then its rate says nothing of the server."""
    wanted = {(group.target, folder) for folder in group.phases}
    paces = [
        phase.drive.pace for phase in summary.phases if phase.drive and (phase.target, phase.folder) in wanted
    ]
    rates = [pace.rate_per_s for pace in paces if pace and isinstance(pace.rate_per_s, int | float)]
    return bool(rates and group.tps and (group.tps.value or 0) >= KEPT * min(rates))


def placed(*parts: str) -> str:
    """Join what says where a figure is from; what is empty says nothing."""
    return ", ".join(part for part in parts if part)


def of_ratio(subject: str, what: str, base: str, ratio: Interval, more: str = "") -> Sentence:
    """Say how `what` of a subject differs from that of the base: `index = brin: rows/s −13 % …`."""
    change = formats.change(ratio.value)
    if ratio.low is None or ratio.high is None:
        text = (
            f"{subject}: {what} {change} against {base}, but too little was measured for an interval{more}."
        )
        return Sentence(text, decided=False, weight=-1.0)
    between = f"{formats.change(ratio.low)} … {formats.change(ratio.high)}"
    if ratio.low <= 1 <= ratio.high:
        text = f"{subject}: no difference of {what} from {base} was shown ({change}, {between}){more}."
        return Sentence(text, decided=False, weight=-1.0, ratio=ratio)
    weight = abs(math.log(ratio.value)) if ratio.value > 0 else 0.0
    return Sentence(f"{subject}: {what} {change} against {base} ({between}){more}.", weight=weight)
