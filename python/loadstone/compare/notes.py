"""What a reader must know of a comparison beside its figures, and the command that would decide it."""

from __future__ import annotations

import shlex
from statistics import median
from typing import TYPE_CHECKING, Any

from loadstone.compare.decisions import ENOUGH_REPEATS
from loadstone.report import formats
from loadstone.results.redact import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.compare.documents import Comparison
    from loadstone.compare.sides import Pair, RunSide

_LEAST_ADVISED = 6
_MOST_ADVISED = 30
"""More repeats help less than longer phases, or a quieter machine."""


def notes_of(pair: Pair, comparison: Comparison) -> Iterator[str]:
    """Yield each note as a sentence."""
    if _is_one_run(pair):
        yield (
            f"{pair.a.name} and {pair.b.name} are copies of one run, {pair.a.summary.run.id}: nothing is "
            "compared but a run with itself."
        )
    sides = (pair.a, pair.b) if pair.a.summary is not pair.b.summary else (pair.a,)
    for side in sides:
        yield from _of_run(side)
    if not comparison.comparable:
        yield "The plans or the data differ, or a folder is damaged: ratios only, no verdicts."
    if not pair.paired:
        yield (
            f"{pair.a.name} and {pair.b.name} are separate runs: whatever else changed between them counts "
            "as a difference. One run with both targets compares them in turns."
        )
    elif _fixed_order(pair) and not _is_one_run(pair):
        yield (
            f"{pair.a.name} always ran before {pair.b.name}, so an effect of the order looks like a "
            "difference. This version alternates the order."
        )
    yield from durability(pair)
    yield from _noisy(comparison)
    few = min(comparison.a.repeats, comparison.b.repeats)
    if 0 < few < ENOUGH_REPEATS:
        yield (
            f"{few} repeat{'' if few == 1 else 's'} a side: verdicts are indicative at most, and do not "
            "count as a regression. Three or more decide."
        )


def _is_one_run(pair: Pair) -> bool:
    """Return whether both sides are the same target of the same run, in two folders or in one."""
    a, b = pair.a, pair.b
    runs = [(side.summary.run.id, side.summary.run.started_at, side.target.id) for side in (a, b)]
    return runs[0] == runs[1] and a.summary.phases == b.summary.phases


def _of_run(side: RunSide) -> Iterator[str]:
    run = side.summary.run
    if run.state != "complete":
        why = f": {run.reason}" if run.reason else ""
        yield f"The run of {side.name} is {run.state}{why}. Only complete phases are compared."
    errors = [warning for warning in side.summary.warnings if warning.level == "error"]
    if errors:
        more = f" ({len(errors) - 1} more in its report)" if len(errors) > 1 else ""
        yield f"{side.name}: {errors[0].message.rstrip('.')}{more}."


def durability(pair: Pair) -> Iterator[str]:
    """Say which side gives up durability that the other one keeps: that alone may make it faster."""
    unsafe = [
        {entry.setting: entry for entry in side.target.durability or [] if entry.durable is False}
        for side in (pair.a, pair.b)
    ]
    for side, ours, others in zip((pair.a, pair.b), unsafe, reversed(unsafe), strict=True):
        for name in [name for name in ours if name not in others]:
            why = f": {ours[name].why}" if ours[name].why else ""
            yield f"Only {side.name} runs with {name} = {ours[name].value}{why}. It may be faster by that."


def _noisy(comparison: Comparison) -> Iterator[str]:
    """Say what helps where repeats alone would hardly decide anything."""
    hopeless = [
        row
        for row in comparison.rows
        if row.primary and row.verdict == "undecided" and (row.needed is None or row.needed > _MOST_ADVISED)
    ]
    noise = [row.noise for row in hopeless if row.noise is not None]
    if noise:
        spread = formats.percent(median(noise))
        yield (
            f"Repeats of the same side differ by {spread} (in {len(hopeless)} undecided phases): "
            "longer phases (a larger --size) or a quieter machine decide more than further repeats."
        )


def _fixed_order(pair: Pair) -> bool:
    """Whether one target ran first in each of several repeats."""
    starts: dict[tuple[object, ...], dict[str, float]] = {}
    for phase in pair.a.summary.phases:
        if phase.start_s is not None and phase.drive:
            key = (phase.scenario, phase.id, str(phase.variant), phase.repeat, phase.round)
            starts.setdefault(key, {})[phase.target] = float(phase.start_s)
    ids = (pair.a.target.id, pair.b.target.id)
    first = [moments[ids[0]] < moments[ids[1]] for moments in starts.values() if {*ids} <= {*moments}]
    repeats = {key[3] for key in starts}
    return len(repeats) > 1 and len(set(first)) == 1


def advice_of(pair: Pair, comparison: Comparison) -> str | None:
    """Return the command that would decide what is open; None where nothing is, or no number would do."""
    open_rows = [row for row in comparison.rows if row.primary and row.verdict in ("undecided", "indicative")]
    if not open_rows or not comparison.comparable:
        return None
    needed = [row.needed or _MOST_ADVISED for row in open_rows if row.verdict == "undecided"]
    repeats = min(max(needed, default=_LEAST_ADVISED), _MOST_ADVISED)
    repeats += repeats % 2  # as often first as second
    return _command(pair, max(repeats, _LEAST_ADVISED))


def _command(pair: Pair, repeats: int) -> str:
    """Return the command of an experiment with two private servers, else of one run with both targets.

    Of one target it is that by which to run each side again.
    """
    summary = pair.a.summary
    asked = _asked(pair.a).get("scenarios")
    names = asked if isinstance(asked, list) else [scenario.id or "?" for scenario in summary.scenarios]
    given = list(dict.fromkeys(_given(side) for side in (pair.a, pair.b)))
    size = ["--size", str(summary.plan.size)] if summary.plan.size else []
    more = [*map(str, names), *size, *_parameters(pair.a)]
    if len(names) == 1 and len(given) > 1 and all(map(_is_private, given)):
        return shlex.join(["loadstone", "ab", *more, "--a", given[0], "--b", given[1]])
    targets = [target for name in given for target in ("--target", name)]
    return shlex.join(["loadstone", "run", *more, *targets, "--repeat", str(repeats)])


def _is_private(target: str) -> bool:
    from loadstone.private_server import is_short_name  # noqa: PLC0415 - few comparisons need it

    return is_short_name(target.partition("?")[0])


def _parameters(side: RunSide) -> list[str]:
    """Return the options that set the parameters of the run, as far as run.json keeps them."""
    given = _asked(side).get("overrides")
    shown = given if isinstance(given, dict) else {}
    known = (f"{name}={value}" for name, value in shown.items() if HIDDEN not in str(value))
    return [word for one in known for word in ("--set", one)]


def _asked(side: RunSide) -> dict[str, Any]:
    asked = side.summary.run.asked
    return asked if isinstance(asked, dict) else {}


def _given(side: RunSide) -> str:
    """Return how the run's user named the target, as far as run.json keeps it; else its id."""
    asked = _asked(side)
    texts = asked.get("targets")
    ids = [target.id for target in side.summary.targets]
    if isinstance(texts, list) and len(texts) == len(ids):
        text = str(texts[ids.index(side.target.id)])
        settings = asked.get("settings")
        if isinstance(settings, dict) and settings and HIDDEN not in text:
            joined = "&".join(f"setting.{name}={value}" for name, value in settings.items())
            return f"{text}{'&' if '?' in text else '?'}{joined}"
        return text
    return side.target.id
