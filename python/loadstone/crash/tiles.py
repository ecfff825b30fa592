"""The verdict of a crash test in a few words, and short answers to the questions that decide its worth."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING, Literal

from loadstone.crash import texts
from loadstone.crash.verdict import is_whole, lost_something
from loadstone.report import formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.crash.documents import Crash

Level = Literal["good", "warning", "bad", ""]


@dataclass(frozen=True, slots=True)
class Tile:
    """A question with its answer; `level` is the colour."""

    question: str
    answer: str
    detail: str
    level: Level


def headline(document: Crash) -> str:
    """Return the verdict as a short sentence without its full stop."""
    crashes = texts.crashes_of(len(_verified(document)))
    words = {
        "kept": f"No acknowledged commit was lost in {crashes}",
        "lost": _what_is_wrong(document),
        "cannot show a loss": "This set-up cannot show a loss",
        "did not come up": texts.not_up(document),
        "undecided": f"Undecided after {crashes}",
    }
    if document.verdict == "kept" and _total(document, "lost_allowed"):
        return f"Only what synchronous_commit = off may lose was lost in {crashes}"
    return words[document.verdict]


def _what_is_wrong(document: Crash) -> str:
    lost = _total(document, "lost")
    if lost:
        return f"Commits are not safe: {lost:,} acknowledged {_commits(lost)} lost"
    broken = sum(not is_whole(cycle) for cycle in document.cycles)
    return f"Commits are not safe: the data were wrong after {texts.crashes_of(broken)}"


def _commits(number: int) -> str:
    return "commit was" if number == 1 else "commits were"


def tiles(document: Crash) -> Iterator[Tile]:
    """Yield the questions that this test can answer."""
    yield _survived(document)
    yield _other_rows(document)
    restarted = _restarted(document)
    if restarted:
        yield restarted
    yield _can_show(document)
    recovered = _recovered(document)
    if recovered:
        yield recovered
    cost = _cost_of_disk(document)
    if cost:
        yield cost


def _survived(document: Crash) -> Tile:
    question = "Did acknowledged commits survive?"
    acknowledged, lost, allowed = (
        _total(document, name) for name in ("acknowledged", "lost", "lost_allowed")
    )
    if not _verified(document):
        return Tile(question, "Not known", "no crash was verified", "warning")
    detail = f"{acknowledged:,} acknowledged, {lost + allowed:,} lost"
    if lost:
        return Tile(question, f"{lost:,} did not", detail, "bad")
    if allowed:
        return Tile(question, "As synchronous_commit = off allows", detail, "warning")
    return Tile(question, "All of them", detail, "good")


def _other_rows(document: Crash) -> Tile:
    """Ask whether anything else is wrong with the data."""
    names = ("phantom", "corrupt", "twice", "holes")
    wrong = sum(_total(document, name) for name in names)
    flaws = sum(len(cycle.flaws) + (cycle.restarted is False) for cycle in document.cycles)
    unknown, present = _total(document, "unknown"), _total(document, "unknown_present")
    detail = (
        f"{_total(document, 'phantom'):,} phantom; {unknown:,} unknown, of which {present:,} are present: "
        "their answers were never read"
    )
    question = "Is everything else as it should be?"
    if not _verified(document):
        return Tile(question, "Not known", "no crash was verified", "warning")
    if wrong or flaws:
        return Tile(question, "No: see below", detail, "bad")
    return Tile(question, "Yes", detail, "good")


def _restarted(document: Crash) -> Tile | None:
    """Ask whether stopping and starting in order changed anything; None where no rows were compared."""
    question = "Did a second restart change anything?"
    changed = [str(cycle.number) for cycle in document.cycles if cycle.restarted is False]
    if changed:
        return Tile(question, "Yes", f"after crash {', '.join(changed)}: see below", "bad")
    words = " ".join(texts.of_restarts(document))
    if not words:
        return None
    seconds = median_low(cycle.content.hash_s for cycle in document.cycles if cycle.content)
    return Tile(question, "No", f"{words} The comparison took {formats.digits(seconds)} s each time", "good")


def _can_show(document: Crash) -> Tile:
    """Ask whether a loss would have been seen."""
    question = "Would a loss have been seen?"
    found = {True: "A row deleted on purpose was found missing", False: "A row deleted on purpose was missed",
             None: "It was not tried with a row deleted on purpose"}[document.checker]  # fmt: skip
    control = document.control
    detail = found if control is None else f"{found}; {texts.after_control(control)}"
    if document.checker is False or (control is not None and not lost_something(control)):
        return Tile(question, "No", detail, "bad")
    if document.level == "process":
        return Tile(question, "Not one of power", f"{detail}. {texts.NOTHING_OF_POWER}", "warning")
    is_known = document.checker is True and control is not None
    return Tile(question, "Yes" if is_known else "Not known", detail, "good" if is_known else "warning")


def _recovered(document: Crash) -> Tile | None:
    seconds = [cycle.recovery.connection_s for cycle in document.cycles]
    known = [one for one in seconds if one is not None]
    if not known:
        return None
    rates = [cycle.recovery.rate_s for cycle in document.cycles if cycle.recovery.rate_s is not None]
    until = f"; 95 % of the rate after {formats.digits(median_low(rates))} s" if rates else ""
    answer = f"{formats.digits(median_low(known))} s until the log-in"
    detail = f"median of {texts.crashes_of(len(known))}, {formats.digits(max(known))} s at most{until}"
    return Tile("How long until the server is back?", answer, detail, "")


def _cost_of_disk(document: Crash) -> Tile | None:
    own = texts.rate_with_disk(document)
    if not own or not document.rate_plain:
        return None
    detail = (
        f"{formats.rate(own)} commits/s on the disk that forgets, {formats.rate(document.rate_plain)}/s on "
        "the disk itself: times of recovery are not those of the disk"
    )
    answer = f"{formats.percent(own / document.rate_plain)} of the rate is left"
    return Tile("How slow is the disk that forgets?", answer, detail, "")


def _verified(document: Crash) -> list[int]:
    return [cycle.number for cycle in document.cycles if cycle.found is not None]


def _total(document: Crash, name: str) -> int:
    return sum(getattr(cycle.found, name) for cycle in document.cycles if cycle.found is not None)
