"""A server that became slower for good: trials far from a limit at loads where earlier ones were not.

Votes at the boundary differ by chance, and other programs disturb single trials. Neither leaves less than
half of the required share in time in every trial from some time on, at loads that were near them before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.slo.documents import Changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.slo.documents import Trial
    from loadstone.slo.limits import Limit

FEWEST_BEFORE = 2
"""Trials near the limits that a later one has to contradict, each."""
FEWEST_SINCE = 4
"""Trials far from them. Three would end 1 search in 150 if the capacity varies by 10 % between trials."""
_FAR = 0.5
"""Of the required share; below it in time is far from a limit."""


def change_of(
    trials: Sequence[Trial], limits: Sequence[Limit], *, any_length: bool = False
) -> Changed | None:
    """Return what shows that the server became slower; None: nothing does.

    Whole trials contradict whole ones only, unless `any_length`: a load that a server keeps up with for ten
    seconds may be too much for thirty.
    """
    known = [one for one in trials if one.counted and one.rate is not None]
    far = [_is_far(one, limits) for one in known]
    for at in (place for place, is_far in enumerate(far) if is_far):
        near = [one for one, is_far in zip(known[:at], far, strict=False) if not is_far]
        since = [*zip(known[at:], far[at:], strict=True)]
        found = _contradicted(near, since, any_length=any_length)
        if found is not None:
            return found
    return None


def _is_far(trial: Trial, limits: Sequence[Limit]) -> bool:
    return any(
        done < _FAR * one.share * trial.should for one, done in zip(limits, trial.in_time, strict=True)
    )


def _contradicted(
    near: Sequence[Trial], since: Sequence[tuple[Trial, bool]], *, any_length: bool
) -> Changed | None:
    """Return the trials before and since, if all at such loads since then are far from the limits."""
    highest = max((_rate(one) for one, is_far in since if not is_far), default=0.0)
    earlier: dict[int, Trial] = {}
    apart = []
    for trial in (one for one, is_far in since if is_far and _rate(one) > highest):
        against = [one for one in near if _contradicts(trial, one, any_length=any_length)]
        if len(against) >= FEWEST_BEFORE:
            apart.append(trial)
            earlier |= {one.number: one for one in against}
    if len(apart) < FEWEST_SINCE:
        return None
    before = [earlier[number] for number in sorted(earlier)]
    return Changed(
        before=[one.number for one in before], before_at=before[-1].started_at,
        since=[one.number for one in apart], since_at=apart[0].started_at,
    )  # fmt: skip


def _contradicts(trial: Trial, before: Trial, *, any_length: bool) -> bool:
    comparable = any_length or before.kind == "whole" or trial.kind == "short"
    return comparable and _rate(before) >= _rate(trial)


def _rate(trial: Trial) -> float:
    return trial.rate or 0.0
