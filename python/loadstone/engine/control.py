"""What a control connection can do, whichever driver carries it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

CONTROL_CONNECTIONS = 2
"""Beside the clients: one that plans and checks, one that watches."""

Row = dict[str, Any]
"""One row: column name -> value."""


class Result(Protocol):
    """What a statement gave."""

    def fetchone(self) -> Row | None:
        """Return the next row, None when there is no more."""

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""

    def __iter__(self) -> Iterator[Row]: ...


class WholeResult:
    """A Result whose rows are all here already: control statements give few."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> Row | None:
        """Return the next row, None when there is no more."""
        return next(self._rows, None)

    def fetchall(self) -> list[Row]:
        """Return all rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return self._rows


class GetControl(Protocol):
    """Gives a control connection that works; raises LoadstoneError when the server is gone for good."""

    def __call__(self, *, lost: bool = False) -> Control:
        """Return it; `lost`: a client's connection was lost, so the server may be about to end all."""


class Control(Protocol):
    """A control connection: plans, checks and watches, never timed."""

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""

    def execute(self, query: str, params: Mapping[str, Any] | None = None, /) -> Result:
        """Run one statement; raises one of the engine's `errors`."""

    def close(self) -> None:
        """End it; may be called again."""
