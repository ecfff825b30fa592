"""What a crash test says: before it starts, after each cycle, its verdict and its table."""

from __future__ import annotations

from statistics import median_high
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from loadstone.crash.findings import came_back
from loadstone.crash.verdict import bound, did_not_come_up, is_whole, lost_something
from loadstone.report import formats
from loadstone.report.fitted import Fitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from loadstone.crash.documents import Crash, Cycle

HEADS = ("Crash", "Moment", "Acknowledged", "Lost", "Phantom", "Unknown", "Present", "Log-in, s", "Commit, s",
         "95 % rate, s", "WAL, MB", "Replay, MB/s")  # fmt: skip
_CYCLE_S = 8.0
MOMENTS = {"anywhere": "anywhere", "checkpoint": "checkpoint begins", "segment": "segment switch",
           "late": "late in the cycle"}  # fmt: skip
NOTHING_OF_POWER = (
    "This level shows nothing about a loss of power: what killed processes had written stays in the page "
    "cache, synced or not."
)


def before(document: Crash) -> Iterator[str]:
    """Yield what is going to happen, and how long it may take."""
    yield (
        f"{document.target}, {document.scenario}, {document.phase}: {document.clients} clients, "
        f"{crashes_of(document.wanted)} ({document.level})"
    )
    most = document.wanted * (document.window_s + _CYCLE_S)
    yield f"up to about {formats.duration(round(most))}, and the time to load the data"
    if document.level == "power":
        yield "first the load without crashes, and a crash with fsync=off, which has to lose commits"


def after_cycle(cycle: Cycle) -> str:
    """Say what a cycle found."""
    found = cycle.found
    if found is None:
        return f"crash {cycle.number}, {MOMENTS[cycle.moment.kind]}: not verified"
    came = formats.digits(cycle.recovery.connection_s)
    words = [
        f"{found.acknowledged:,} acknowledged", f"{found.lost + found.lost_allowed:,} lost",
        f"{found.phantom:,} phantom", f"{found.unknown:,} unknown ({found.unknown_present:,} present)",
        f"log-in after {came} s",
    ]  # fmt: skip
    flaws = "" if is_whole(cycle) else f": {'; '.join(wrongs(cycle))}"
    return f"crash {cycle.number}, {MOMENTS[cycle.moment.kind]}: {', '.join(words)}{flaws}"


def after_control(cycle: Cycle) -> str:
    """Say what the control cycle, which had to lose commits, has shown."""
    if cycle.found is None or cycle.down_after is not None:
        return "control crash with fsync=off: the server did not come up, so that losses can be seen here"
    if not lost_something(cycle):
        return "control crash with fsync=off: nothing was lost, so that no loss can be seen here"
    lost = cycle.found.lost + cycle.found.lost_allowed
    return f"control crash with fsync=off: {lost:,} acknowledged commits were lost, as they had to be"


def wrongs(cycle: Cycle) -> Iterator[str]:
    """Yield what is wrong after a crash."""
    found = cycle.found
    if found is not None:
        counts = {
            "acknowledged commits are lost": found.lost, "rows have another checksum": found.corrupt,
            "rows are there twice": found.twice, "rows are there that nobody committed": found.phantom,
            "commits are lost though later ones of their clients are there": found.holes,
        }  # fmt: skip
        yield from (f"{count:,} {words}" for words, count in counts.items() if count)
    yield from (f"{flaw.check}: {flaw.detail}" for flaw in cycle.flaws)
    if cycle.restarted is False:
        yield "a second restart changed the data"


def answer(document: Crash) -> str:
    """Return the verdict as sentences."""
    done = [cycle.found for cycle in document.cycles if cycle.found is not None]
    totals = {name: sum(getattr(one, name) for one in done) for name in _TOTALS}
    counted = (
        f"{crashes_of(len(done))} ({document.level}), {totals['acknowledged']:,} acknowledged, "
        f"{totals['lost'] + totals['lost_allowed']:,} lost, {totals['phantom']:,} phantom, "
        f"{totals['unknown']:,} unknown ({totals['unknown_present']:,} present)."
    )
    return " ".join([counted, *_sentences(document, len(done), totals)])


_TOTALS = ("acknowledged", "lost", "lost_allowed", "phantom", "unknown", "unknown_present")


def _sentences(document: Crash, crashes: int, totals: dict[str, int]) -> Iterator[str]:
    if document.verdict == "lost":
        yield from _not_safe(document)
    elif document.verdict == "did not come up":
        yield f"{not_up(document)}."
    elif document.verdict == "cannot show a loss":
        yield "This set-up cannot show a loss: " + (
            "a row that was deleted on purpose was not found missing." if document.checker is False
            else "the control cycle with fsync=off lost nothing."
        )  # fmt: skip
    elif crashes:
        if document.verdict == "undecided":
            yield f"Undecided: {document.reason or 'not all crashes were made'}."
        what = "more than is allowed" if _is_async(document) else "something"
        yield (
            f"At 95 % confidence a crash of this kind loses {what} in less than "
            f"{formats.percent(bound(crashes))} of cases."
        )
    else:
        yield f"Undecided: {document.reason or 'no crash was made'}."
    yield from _of_async(document, totals)
    yield from came_back(document)
    yield from of_restarts(document)
    if document.level == "process":
        yield NOTHING_OF_POWER
    else:
        yield from of_power(document)


def _not_safe(document: Crash) -> Iterator[str]:
    broken = [str(cycle.number) for cycle in document.cycles if not is_whole(cycle)]
    yield f"Commits are not safe: see crash {', '.join(broken)}."
    if did_not_come_up(document):
        yield f"{not_up(document)}."


def not_up(document: Crash) -> str:
    """Say after which crash the server did not come up."""
    last = document.cycles[-1] if document.cycles else None
    at = " at the second restart" if last is not None and last.down_after == "second restart" else ""
    return f"The server did not come up again{at} after crash {len(document.cycles)}"


def _is_async(document: Crash) -> bool:
    return any(cycle.allowed_s for cycle in document.cycles)


def _of_async(document: Crash, totals: dict[str, int]) -> Iterator[str]:
    """Say what `synchronous_commit = off` has lost."""
    allowed = max((cycle.allowed_s for cycle in document.cycles), default=0.0)
    if not allowed:
        return
    windows = [one.found.loss_window_s for one in document.cycles if one.found and one.found.loss_window_s]
    oldest = f", the oldest {formats.digits(max(windows))} s before its crash" if windows else ""
    yield (
        f"synchronous_commit = off may lose the last {formats.digits(allowed)} s (3 × wal_writer_delay): "
        f"{totals['lost_allowed']:,} commits were lost so{oldest}."
    )


def of_restarts(document: Crash) -> Iterator[str]:
    """Say what the second restarts, in order, have left of the rows, and of how many that is known."""
    compared = [cycle.content for cycle in document.cycles if cycle.content and cycle.content.after]
    if not compared or any(cycle.restarted is False for cycle in document.cycles):
        return
    last = compared[-1]
    share = formats.size(last.hashed_bytes)
    if last.hashed_bytes < last.bytes:
        share += f" of {formats.size(last.bytes)}, the same blocks each time"
    tables = f"{last.tables:,} table{'' if last.tables == 1 else 's'}"
    after = "the crash" if len(compared) == 1 else f"each of {len(compared):,} crashes"
    yield f"A second restart after {after} left the rows of {tables} ({share}) as they were, by their hashes."


def of_power(document: Crash) -> Iterator[str]:
    """Say what the control cycle showed, and what the file system costs."""
    if document.control is not None and document.verdict != "cannot show a loss":
        yield f"{after_control(document.control).capitalize()}."
    own = rate_with_disk(document)
    if own and document.rate_plain:
        yield (
            f"On the file system that forgets, the load made {formats.rate(own)} commits/s, on the disk "
            f"itself {formats.rate(document.rate_plain)}/s: its times of recovery are not those of the disk."
        )


def rate_with_disk(document: Crash) -> float | None:
    """Return the median of the rates before the crashes, in commits per second."""
    rates = [one.recovery.rate_before for one in document.cycles if one.recovery.rate_before]
    return median_high(rates) if rates else None


def notes(document: Crash) -> Iterator[str]:
    """Yield what a reader must know beside the answer."""
    if document.amcheck is not None:
        yield f"Files were not checked by amcheck: {document.amcheck}."
    for cycle in document.cycles:
        yield from (f"Crash {cycle.number}: {wrong}." for wrong in wrongs(cycle))
        if cycle.moment.note:
            yield f"Crash {cycle.number}: {cycle.moment.note}."
        if cycle.recovery.clock_step_s is not None:
            step_s = f"{cycle.recovery.clock_step_s:+.3g}"
            yield (
                f"Crash {cycle.number}: times of the replay are left out, as the clock was set by {step_s} s."
            )
        if cycle.note:
            yield f"Crash {cycle.number}: {cycle.note}."
    if document.data is not None:
        yield f"The data of the server that did not come up are in {document.data}."


def line(cycle: Cycle) -> list[str]:
    """Return the cells of a cycle under `HEADS`."""
    found, seen = cycle.found, cycle.recovery
    counts = [formats.NONE] * 5
    if found is not None:
        lost = found.lost + found.lost_allowed
        numbers = (found.acknowledged, lost, found.phantom, found.unknown, found.unknown_present)
        counts = [f"{one:,}" for one in numbers]
    mega = None if seen.wal_bytes is None else seen.wal_bytes / 1e6
    speed = mega / seen.replay_s if mega and seen.replay_s else None
    times = (seen.connection_s, seen.commit_s, seen.rate_s, mega, speed)
    return [str(cycle.number), MOMENTS[cycle.moment.kind], *counts, *map(formats.digits, times)]


def screen(document: Crash) -> RenderableType:
    """Return table and verdict for the terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for head in HEADS:
        table.add_column(head, justify="left" if head == "Moment" else "right", no_wrap=True)
    for cycle in document.cycles:
        table.add_row(*line(cycle))
    lines = [Text(f"! {note}", style="yellow") for note in notes(document)]
    less = ("Replay, MB/s", "95 % rate, s", "Present", "Moment")
    return Group(Fitted(table, less=less), *lines, Text(answer(document), style="bold"))


def markdown(document: Crash) -> str:
    """Return verdict and table for a pull request."""
    lines = [f"### Loadstone: {answer(document)}", "", *(f"- {note}" for note in notes(document)), ""]
    lines += [f"| {' | '.join(HEADS)} |", f"|{' --: |' * len(HEADS)}"]
    lines += [f"| {' | '.join(line(cycle))} |" for cycle in document.cycles]
    return "\n".join([*lines, ""])


def crashes_of(number: int) -> str:
    """Return `1 crash`, `20 crashes`."""
    return f"{number:,} crash{'' if number == 1 else 'es'}"
