"""Rows of control connections: an answer that cannot be read, or is another than was requested, is an error.

A server of another kind may be behind the address, or something in between may change the bytes. What comes
then must end as all errors of the server do.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self

import psycopg
from psycopg.rows import dict_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class AnswerRow(dict[str, Any]):
    """One row: column name -> value."""

    def __missing__(self, name: str) -> NoReturn:
        """Say that the answer is another than was requested."""
        raise psycopg.DataError(f"the server's answer has no column '{name}'")


def answer_row(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """Make rows for psycopg."""
    make = dict_row(cursor)
    return lambda values: AnswerRow(make(values))


class AnswerCursor(psycopg.Cursor[dict[str, Any]]):
    """Raises psycopg.DataError for values that their type does not have, and for types that nobody knows."""

    def execute(self, *args: Any, **given: Any) -> Self:
        """Run a statement."""
        with self._readable():
            return super().execute(*args, **given)

    def fetchone(self) -> dict[str, Any] | None:
        """Return the next row."""
        self._refuse_unknown_types()
        with self._readable():
            return super().fetchone()

    def fetchall(self) -> list[dict[str, Any]]:
        """Return the rows that are left."""
        self._refuse_unknown_types()
        with self._readable():
            return super().fetchall()

    def __next__(self) -> dict[str, Any]:
        self._refuse_unknown_types()
        with self._readable():
            return super().__next__()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, ArithmeticError) as error:
            raise psycopg.DataError(f"the server's answer cannot be read: {error}") from error

    def _refuse_unknown_types(self) -> None:
        """Refuse what psycopg would give as text, whatever it was."""
        result = self.pgresult
        for column in range(result.nfields if result else 0):
            number = result.ftype(column) if result else 0
            if self.adapters.types.get(number) is None:
                raise psycopg.DataError(f"the server's answer has a column of unknown type {number}")
