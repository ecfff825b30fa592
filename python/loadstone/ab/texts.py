"""What an experiment says on the terminal: before it starts, after each block, at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.ab.statistics import smallest_effect
from loadstone.compare import texts as shown
from loadstone.report import formats
from loadstone.results.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.ab.experiment import Experiment
    from loadstone.compare.documents import Row
    from loadstone.experiment.arms import Arm

_SPREADS = (0.01, 0.05)
_MOST_LINES = 6


def target_text(arm: Arm) -> str:
    """Return an arm's target without secrets."""
    from loadstone.target import parse_target  # noqa: PLC0415 - the engines take a while to load

    return redact(parse_target(arm.target).without_password())


def before(experiment: Experiment) -> Iterator[str]:
    """Yield what is going to happen, how long it may take, and what it could find."""
    for arm in experiment.arms:
        same = " (set up like A, and must not differ from it)" if len(arm.name) > 1 else ""
        yield f"{arm.name}: {arm.label}{same}"
    a, b = experiment.arms[:2]
    if (a.target, a.parameters) == (b.target, b.parameters):
        yield "A and B are set up alike: this shows what this machine finds where nothing differs"
    looks = experiment.limits.looks
    block_s = experiment.trial_s * len(experiment.arms)
    limit = experiment.limits.seconds
    most_s = block_s * looks[-1] if limit is None else min(block_s * looks[-1], limit)
    blocks = _from_to(str(looks[0]), str(looks[-1]))
    time = _from_to(formats.duration(round(block_s * looks[0])), formats.duration(round(most_s)))
    yield (
        f"{blocks} blocks of {len(experiment.arms)} trials of about "
        f"{formats.duration(experiment.trial_s)}: {time}, and loading the data before"
    )
    noise = experiment.noise
    for spread in (noise,) if noise is not None else _SPREADS:
        known = "the history says that blocks scatter" if noise is not None else "if blocks scatter"
        found = ", ".join(
            f"from {formats.percent(float(smallest_effect(spread, n)))} in {n} blocks"
            for n in dict.fromkeys((looks[0], looks[-1]))
        )
        yield f"{known} by {formats.percent(spread)}, differences are found {found}"


def _from_to(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def after_block(experiment: Experiment) -> Iterator[str]:
    """Yield where the experiment stands."""
    done, looks = len(experiment.blocks), experiment.limits.looks
    order = " ".join(experiment.document.orders[-1])
    ahead = next((look for look in looks if look > done), None)
    rest_s = (looks[-1] - done) * experiment.trial_s * len(experiment.arms)
    if experiment.limits.seconds is not None:
        rest_s = min(rest_s, max(experiment.limits.seconds - experiment.elapsed_s, 0))
    after = f"next look after block {ahead}, at most {formats.duration(round(rest_s))} more" if ahead else ""
    if experiment.findings.done or ahead is None:
        after = "this was the last"
    yield f"block {done} of at most {looks[-1]} ({order}): {after}"
    rows = [row for row in experiment.findings.rows if row.primary]
    for row in rows[:_MOST_LINES]:
        yield f"  {_state_of(row)}"
    if len(rows) > _MOST_LINES:
        yield f"  … and {len(rows) - _MOST_LINES} more phases"


def _state_of(row: Row) -> str:
    name = f"{shown.phase_name(row)}: {row.metric}"
    if row.ratio is None:
        return f"{name}: {row.verdict}{f' ({row.reason})' if row.reason else ''}"
    ends = f" ({shown.interval(row.low, row.high)})" if row.low is not None else ""
    effect = "" if row.smallest_effect is None else f", detectable {shown.effect(row)}"
    return f"{name} B/A {shown.ratio(row.ratio)}{ends}{effect}: {shown.verdict(row)}"


def time_is_up(experiment: Experiment) -> str:
    """Say that the time allowed ends before another block would."""
    limit = formats.duration(experiment.limits.seconds)
    return f"{len(experiment.blocks)} blocks are done, and another one would not end within {limit}"


def verdict_line(experiment: Experiment) -> str:
    """Return the whole in one line."""
    comparison = experiment.document.comparison
    if comparison is None:
        reason = experiment.document.reason or "the time ended before the first block"
        return f"undecided: no block was complete ({reason})"
    return shown.summary(comparison)
