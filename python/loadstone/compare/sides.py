"""The sides of a comparison: targets of run folders, and which is compared with which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING

from loadstone.compare.documents import Side
from loadstone.errors import LoadstoneError
from loadstone.summary.stored import read_summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents.summary import Summary, TargetFigures

MARK = "#"
"""Between a folder and the id of one of its targets."""


@dataclass(frozen=True, slots=True)
class RunSide:
    """One target of a run, with the whole run's summary."""

    name: str
    folder: Path
    summary: Summary
    target: TargetFigures
    label: str

    def document(self) -> Side:
        """Return what the output says of it."""
        run = self.summary.run
        own = [phase.repeat for phase in self.summary.phases if phase.target == self.target.id]
        return Side(
            name=self.name,
            label=self.label,
            folder=str(self.folder),
            target=self.target.id,
            run=run.id,
            started_at=run.started_at,
            state=run.state or "running",
            repeats=max(own, default=0),
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides to compare; `paired` if they took turns in one run."""

    a: RunSide
    b: RunSide
    paired: bool


def pairs_of(texts: Sequence[str]) -> list[Pair]:
    """Read run folders (`DIR`, or `DIR#TARGET`), and pair the first with each of the others.

    One folder: its first target with each other one. Several: the targets with the same id, or the only ones.
    Raises LoadstoneError where there is nothing to compare.
    """
    runs = [_read(text) for text in texts]
    if len(runs) == 1:
        return _inside(*runs[0])
    return _between(runs)


def _read(text: str) -> tuple[Path, Summary, list[TargetFigures]]:
    place, mark, wanted = text.rpartition(MARK)
    path, target = (Path(place), wanted) if mark and not Path(text).exists() else (Path(text), None)
    summary = read_summary(path)
    found = [one for one in summary.targets if target in (None, one.id)]
    if not found:
        known = ", ".join(one.id for one in summary.targets) or "none"
        what = f"no target '{target}'" if target else "no targets: the run ended before its first phase"
        raise LoadstoneError(f"{path} has {what}", f"Targets of this run: {known}.")
    return path, summary, found


def _inside(path: Path, summary: Summary, targets: Sequence[TargetFigures]) -> list[Pair]:
    if len(targets) == 1:
        raise LoadstoneError(
            f"{path} has one target: there is nothing to compare it with", "Name a second run folder."
        )
    sides = [
        RunSide(name, path, summary, target, target.short_label)
        for name, target in zip(_names(len(targets)), targets, strict=True)
    ]
    return [Pair(sides[0], other, paired=True) for other in sides[1:]]


def _between(runs: Sequence[tuple[Path, Summary, list[TargetFigures]]]) -> list[Pair]:
    names = _names(len(runs))
    path, summary, firsts = runs[0]
    found = []
    for name, (other, other_summary, targets) in zip(names[1:], runs[1:], strict=True):
        alone = len(firsts) == len(targets) == 1
        matches = [(a, b) for a in firsts for b in targets if alone or a.id == b.id]
        if not matches:
            raise LoadstoneError(
                f"{path} and {other} have no target in common",
                f"Choose them as DIR{MARK}TARGET. {_choices(path, firsts)} {_choices(other, targets)}",
            )
        same = path.resolve() == other.resolve()
        for a, b in matches:
            first = RunSide(names[0], path, summary, a, _label(path, a))
            second = RunSide(name, other, other_summary, b, _label(other, b))
            found.append(Pair(first, second, paired=same))
    return found


def _choices(path: Path, targets: Sequence[TargetFigures]) -> str:
    return f"{path}: {', '.join(target.id for target in targets)}."


def _label(path: Path, target: TargetFigures) -> str:
    return f"{target.short_label}, {path.name or path}"


def _names(count: int) -> list[str]:
    """Return A, B, …, Z, and numbers after them."""
    return [ascii_uppercase[at] if at < len(ascii_uppercase) else str(at + 1) for at in range(count)]
