"""What a search says: before it starts, after each trial, its answer and its curve."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadstone.report import formats
from loadstone.report.fitted import Fitted
from loadstone.slo.grid import ABOVE
from loadstone.workload.calibrate import USABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from loadstone.slo.documents import Changed, Slo, Trial

HEADS = ("Load, 1/s", "Trials", "Kept", "In time", "Done, 1/s", "p50, ms", "p99, ms", "p99.9, ms", "Failed",
         "Server CPU", "Client CPU")  # fmt: skip
PERCENTILES = {"p50": "p50_ms", "p99": "p99_ms", "p99.9": "p999_ms"}
_OVERHEAD_S = 5.0


def before(document: Slo, window_s: float, most: int) -> Iterator[str]:
    """Yield what is going to happen, and how long it may take."""
    errors = "" if document.errors is None else f", at most {formats.percent(document.errors)} failed"
    yield f"{document.target}, {document.scenario}, {document.phase}: {', '.join(document.limits)}{errors}"
    longest = most * (window_s + _OVERHEAD_S)
    yield (
        f"at most {most} trials, the whole ones of {formats.duration(window_s)} or longer: up to about "
        f"{formats.duration(round(longest))}; the answer is exact to a step of 5 %"
    )


def after_trial(trial: Trial, limits: Sequence[str]) -> str:
    """Say what a trial found."""
    if trial.rate is None:
        return f"trial {trial.number}, closed loop: {formats.rate(trial.done_per_s)}/s"
    shares = ", ".join(
        f"{_share(done, trial.should)} within {one.partition('=')[2].strip()}"
        for one, done in zip(limits, trial.in_time, strict=True)
    )
    verdict = f"missed {', '.join(trial.misses)}" if trial.misses else "kept"
    verdict += "" if trial.counted else " while Loadstone itself was late: not counted"
    return f"trial {trial.number}, {trial.kind}, {formats.rate(trial.rate)}/s: {shares}: {verdict}"


def answer(document: Slo) -> str:
    """Return the answer as a sentence."""
    limits = ", ".join(document.limits)
    lower, upper = (
        None if one is None else f"{formats.rate(one)}/s" for one in (document.lower, document.upper)
    )
    if document.found == "found":
        share = (document.lower or 0) / document.capacity if document.capacity else None
        return (
            f"{limits} is kept at {lower} and not at {upper}, which misses {document.binds}; "
            f"{lower} is {formats.percent(share)} of the closed loop"
        )
    if document.found == "all kept":
        return f"{limits} is kept at {lower}, {_top(document)}"
    if document.found == "none kept":
        return f"{limits} is not kept at any load from {upper} on"
    if document.changed is not None:
        return f"{limits}: not decided: {changed(document, document.changed)}"
    known = [f"kept at {lower}"] if lower else []
    known += [f"not kept at {upper}"] if upper else []
    ended = f" ({document.reason})" if document.reason else ""
    return f"{limits}: not decided{ended}{'; ' if known else ''}{', '.join(known)}"


def changed(document: Slo, found: Changed) -> str:
    """Say what was seen at which loads before and since the server became slower, with both times."""
    before, since = ([document.trials[number - 1] for number in one] for one in (found.before, found.since))
    at = min(range(len(document.limits)), key=lambda one: max(_part(trial, one) for trial in since))
    least, most = min(_part(one, at) for one in before), max(_part(one, at) for one in since)
    low, high = min(one.rate or 0 for one in before), max(one.rate or 0 for one in since)
    within = document.limits[at].partition("=")[2].strip()
    return (
        f"the server became slower during the search, or something else uses its machine. Within {within} "
        f"were {_percent(least)} or more at {formats.rate(low)}/s or more until {_time(found.before_at)} "
        f"({_named(found.before)}), and {_percent(most)} or less at {formats.rate(high)}/s or less from "
        f"{_time(found.since_at)} on ({_named(found.since)})"
    )


def _part(trial: Trial, limit: int) -> float:
    return trial.in_time[limit] / max(trial.should, 1)


def _percent(share: float) -> str:
    return f"{formats.digits(100 * share, 4)} %"


def _named(trials: Sequence[int]) -> str:
    return f"trials {', '.join(map(str, trials[:-1]))} and {trials[-1]}"


def _time(iso: str | None) -> str:
    return f"{datetime.fromisoformat(iso):%H:%M:%S} UTC" if iso else formats.NONE


def is_ours(document: Slo) -> bool:
    """Return whether Loadstone is the limit of the loads that can be tried."""
    if document.top is None or document.capacity is None:
        return False
    return document.top < document.capacity * ABOVE * (1 - 1e-9)


def _top(document: Slo) -> str:
    if is_ours(document):
        return (
            f"the highest load that Loadstone drives from here without being the limit "
            f"({100 * USABLE:.0f} % of its ceiling): use more threads or another machine"
        )
    return (
        "twice the rate of the closed loop: no queue that would break the limit builds up in trials of this "
        "length; make them longer, or the limit shorter"
    )


def curve(document: Slo) -> list[list[str]]:
    """Return the cells of each load under `HEADS`, lowest load first; trials of a load are added up."""
    return [_line(rate, trials) for rate, trials in by_load(document).items()]


def known_columns(document: Slo) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of the curve, without the columns in which nothing is known."""
    rows = curve(document)
    shown = [at for at in range(len(HEADS)) if any(row[at] != formats.NONE for row in rows)]
    return [HEADS[at] for at in shown], [[row[at] for at in shown] for row in rows]


def by_load(document: Slo) -> dict[float, list[Trial]]:
    """Return the trials of each load, the lowest first."""
    loads: dict[float, list[Trial]] = {}
    for trial in document.trials:
        if trial.rate is not None and trial.counted:
            loads.setdefault(trial.rate, []).append(trial)
    return dict(sorted(loads.items()))


def _line(rate: float, trials: Sequence[Trial]) -> list[str]:
    should = sum(trial.should for trial in trials)
    in_time = [sum(trial.in_time[at] for trial in trials) for at in range(len(trials[0].in_time))]
    shares = ", ".join(_share(one, should) for one in in_time)
    whole = [trial for trial in trials if trial.kind == "whole"]
    kept = sum(not trial.misses for trial in whole)
    seconds = sum(trial.seconds for trial in trials)
    return [
        formats.rate(rate), str(len(trials)), f"{kept}/{len(whole)}" if whole else formats.NONE, shares,
        formats.rate(sum(trial.done_per_s * trial.seconds for trial in trials) / seconds),
        *(formats.digits(percentile(trials, key)) for key in PERCENTILES.values()),
        f"{sum(trial.failed for trial in trials):,}",
        formats.percent(median([trial.cpu_server for trial in trials])),
        formats.percent(median([trial.cpu_client for trial in trials])),
    ]  # fmt: skip


def percentile(trials: Sequence[Trial], key: str) -> float | None:
    """Return the median of a percentile over the trials of a load: the whole ones, if there are any.

    None where one of them has too few transactions for it: the rest are not the same trials, and a
    higher percentile could come out lower.
    """
    values = [getattr(trial, key) for trial in _deciding(trials)]
    return median(values) if None not in values else None


def _deciding(trials: Sequence[Trial]) -> Sequence[Trial]:
    return [trial for trial in trials if trial.kind == "whole"] or trials


def _share(part: int, whole: int) -> str:
    return f"{formats.digits(100 * part / whole, 4)} %" if whole else formats.NONE


def median(values: Sequence[float | None]) -> float | None:
    """Return the lower median of the values that are known."""
    known = sorted(value for value in values if value is not None)
    return known[(len(known) - 1) // 2] if known else None


def notes(document: Slo) -> Iterator[str]:
    """Yield what a reader must know beside the answer."""
    if is_ours(document) and (document.top or 0) < (document.capacity or 0) and document.found != "all kept":
        yield f"Loads above {formats.rate(document.top)}/s were not tried: Loadstone may be the limit there."
    if document.found == "not decided" and document.state == "complete" and document.changed is None:
        yield (
            "The trials were used up before they decided. Longer trials, more of them or a quieter machine "
            "decide."
        )
    if not document.restored:
        yield "Nothing was restored between trials: what one of them wrote was there in the next."
    yield from _lateness(document)
    if document.irregular:
        loads = ", ".join(f"{formats.rate(load)}/s" for load in document.irregular)
        yield f"Irregular: {loads} did not keep the limits, though a higher load did."
    for trial in document.trials:
        if trial.note:
            yield f"Trial {trial.number}: {trial.note}."


def _lateness(document: Slo) -> Iterator[str]:
    late = [trial for trial in document.trials if trial.client_late]
    counted = sum(trial.counted for trial in late)
    if late:
        yield (
            f"In {len(late)} of {len(document.trials)} trials Loadstone's own threads were late enough to "
            "explain the misses, because other programs or the server used the CPUs "
            f"(made again: {len(late) - counted}, counted: {counted})."
        )


def method(document: Slo) -> str:
    """Say what a trial is."""
    if document.restored:
        return "Each trial is a fresh server on a fresh copy of the loaded data, at a Poisson load."
    return "All trials use one server, at Poisson loads; nothing is restored between them."


def screen(document: Slo) -> RenderableType:
    """Return answer and curve for the terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for cells in curve(document):
        table.add_row(*cells)
    curves = [Fitted(table, less=("Client CPU", "Failed", "p50, ms"))] if table.rows else []
    lines = [Text(f"! {note}", style="yellow") for note in notes(document)]
    return Group(*curves, *lines, Text(answer(document), style="bold"))


def markdown(document: Slo) -> str:
    """Return answer and curve for a pull request."""
    lines = [f"### Loadstone: {answer(document)}", "", *(f"- {note}" for note in notes(document)), ""]
    lines += [f"| {' | '.join(HEADS)} |", f"|{' --: |' * len(HEADS)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in curve(document)]
    return "\n".join([*lines, ""])
