"""Warnings in words: one function per situation, beside the threshold from which it is one.

A function takes what it judges and returns a warning, or None. Its name is the warning's kind
(`nothing_done`: NothingDone), and the list that it is registered in says where it applies. They are asked in
the order in which they are written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from loadstone.results.documents.summary import Warning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadstone.results.documents.summary import Level

Subject = TypeVar("Subject")


class Warnings(Generic[Subject]):
    """The functions that judge one kind of thing."""

    def __init__(self) -> None:
        """Begin without any."""
        self._functions: list[Callable[[Subject], Warning | None]] = []

    def __call__(self, function: Callable[[Subject], Warning | None]) -> Callable[[Subject], Warning | None]:
        """Register a function: a decorator."""
        self._functions.append(function)
        return function

    def of(self, subject: Subject, target: str | None = None, phase: str | None = None) -> Iterator[Warning]:
        """Yield what there is to say of a subject; `phase` is a phase's folder."""
        for function in self._functions:
            found = function(subject)
            if found is not None:
                where = {"target": found.target or target, "phase": found.phase or phase}
                yield msgspec.structs.replace(found, kind=_kind(function), **where)


def warning(message: str, hint: str, level: Level = "warning") -> Warning:
    """Return a warning: what is the case with its figures, and what to do about it."""
    return Warning(kind="", level=level, message=message, hint=hint, target=None, phase=None)


def _kind(function: Callable[..., object]) -> str:
    return "".join(word.capitalize() for word in getattr(function, "__name__", "").split("_"))
