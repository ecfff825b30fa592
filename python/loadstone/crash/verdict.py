"""What the cycles show together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import ExitCode

if TYPE_CHECKING:
    from loadstone.crash.documents import CommitCounts, Crash, Cycle, Verdict

CONFIDENCE = 0.95


def is_whole(cycle: Cycle) -> bool:
    """Return whether a cycle has lost nothing that it had to keep."""
    return _keeps(cycle.found) and not cycle.flaws and cycle.restarted is not False


def _keeps(found: CommitCounts | None) -> bool:
    if found is None:
        return True
    return not (found.lost or found.corrupt or found.twice or found.phantom or found.holes)


def lost_something(cycle: Cycle) -> bool:
    """Return whether a cycle has lost anything, also what it was allowed to, or its data."""
    if cycle.found is None or cycle.down_after is not None:
        return True
    return not is_whole(cycle) or bool(cycle.found.lost_allowed)


def verdict_of(document: Crash) -> Verdict:
    """Return the verdict of what there is."""
    if not all(is_whole(cycle) for cycle in document.cycles):
        return "lost"
    if did_not_come_up(document):
        return "did not come up"
    if document.checker is False or _control_fails(document):
        return "cannot show a loss"
    done = [cycle for cycle in document.cycles if cycle.found is not None]
    if document.checker is None and document.state != "complete":
        return "undecided"  # it ended before its last row was deleted on purpose
    return "kept" if len(done) == document.wanted else "undecided"


def did_not_come_up(document: Crash) -> bool:
    """Return whether the server could not be started after a crash, or at a second restart."""
    return document.data is not None or any(cycle.down_after for cycle in document.cycles)


def _control_fails(document: Crash) -> bool:
    """Whether the cycle that had to lose commits has lost none."""
    return document.control is not None and not lost_something(document.control)


def exit_of(document: Crash, otherwise: ExitCode) -> ExitCode:
    """Return the exit status of a verdict; `otherwise` is that of how the experiment ended."""
    if document.verdict == "lost":
        return ExitCode.WRONG_ANSWER
    if otherwise is not ExitCode.OK:
        return otherwise
    if document.verdict == "did not come up":
        return ExitCode.WRONG_ANSWER
    return ExitCode.OK if document.verdict == "kept" else ExitCode.UNDECIDED


def bound(crashes: int) -> float:
    """Return the largest share of crashes that could lose something and yet none of these did.

    Clopper and Pearson's bound at 95 % for no event; three over the number of crashes is close to it.
    """
    return float(1.0 - (1.0 - CONFIDENCE) ** (1.0 / crashes))
