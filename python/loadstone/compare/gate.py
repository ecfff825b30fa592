"""What a comparison means for a program that waits for it: known regressions, and the exit code."""

from __future__ import annotations

import tomllib
from datetime import date  # noqa: TC003 - msgspec reads the annotations at run time
from typing import TYPE_CHECKING

import msgspec

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.results.document_reader import read_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from loadstone.compare.documents import Document, Row

FAILURES = ("worse", "undecided")
"""What `--fail-on` takes."""
_OPEN = ("undecided", "indicative", "missing", "not comparable", "invalid")
_HINT = "See docs/compare-runs.md for the form of an accept list."


class Accepted(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One known regression; what it does not name matches everything."""

    until: date
    reason: str
    scenario: str | None = None
    phase: str | None = None
    variant: dict[str, str | int | float | bool] = msgspec.field(default_factory=dict)
    target: str | None = None
    at_least: float | None = None
    """The least ratio B/A that is accepted (rates), such as 0.9."""
    at_most: float | None = None
    """The greatest ratio B/A that is accepted (times, bytes)."""

    def matches(self, row: Row, target: str) -> bool:
        """Whether it is about this row, and allows so much."""
        ratio = row.ratio or 0.0
        return (
            self.scenario in (None, row.scenario)
            and self.phase in (None, row.phase)
            and self.target in (None, target)
            and all(row.variant.get(name) == value for name, value in self.variant.items())
            and (self.at_least is None or ratio >= self.at_least)
            and (self.at_most is None or ratio <= self.at_most)
        )


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    accept: list[Accepted]


def read_accepted(path: Path) -> list[Accepted]:
    """Read an accept list (TOML, a table `[[accept]]` each). Raises LoadstoneError with what is wrong."""
    try:
        text = read_bytes(path).decode()
        return msgspec.convert(tomllib.loads(text), _File).accept
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeError) as error:
        raise LoadstoneError(f"{path}: {error}", _HINT) from error


def accept(document: Document, known: Sequence[Accepted], today: date) -> list[str]:
    """Mark the regressions that are known; return what to say of entries that ended or match nothing."""
    used: set[int] = set()
    for comparison in document.comparisons:
        for row in comparison.rows:
            for number, entry in enumerate(known):
                if row.verdict == "worse" and row.primary and entry.matches(row, comparison.b.target):
                    used.add(number)
                    if entry.until >= today:
                        row.accepted = f"{entry.reason} (until {entry.until})"
    return list(_unused(known, used, today))


def _unused(known: Sequence[Accepted], used: Collection[int], today: date) -> Iterator[str]:
    for number, entry in enumerate(known):
        if number not in used:
            yield f"accept list: '{entry.reason}' matches no regression: remove it"
        elif entry.until < today:
            yield f"accept list: '{entry.reason}' ended on {entry.until}: it counts again"


def exit_code(document: Document, fail_on: Collection[str]) -> ExitCode:
    """Return 4 for a regression that is not accepted, 5 where something is not decided, as asked; else 0.

    Sides that cannot be compared (`--anyway`) have no verdicts: whatever is asked, none of them is not worse.
    """
    primary = [row for one in document.comparisons for row in one.rows if row.primary]
    if "worse" in fail_on and any(row.verdict == "worse" and row.accepted is None for row in primary):
        return ExitCode.REGRESSION
    if fail_on and not all(one.comparable for one in document.comparisons):
        return ExitCode.UNDECIDED
    if "undecided" in fail_on and any(row.verdict in _OPEN for row in primary):
        return ExitCode.UNDECIDED
    return ExitCode.OK
