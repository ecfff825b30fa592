"""Answers that came through a Python driver: the first to each query is kept, and later ones compared.

While a load goes on, nothing is digested that need not be: Python lets one thread digest at a time, and a
client that waits for its turn asks nothing. An answer whose rows are those of the first, as they come or once
sorted, has its digest; one that is not the same there, if only by the last digit of a sum, is digested to be
compared. First answers are digested at the end, or at once where there is no more room to keep them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from loadstone.asking.answer import compare, digest

if TYPE_CHECKING:
    from loadstone.asking.answer import Digest

ROOM_BYTES = 128 << 20
"""First answers are kept as they came, and sorted, up to so many bytes together."""


class Repeats:
    """The first answer of each distinct query."""

    def __init__(self, most: int, room_bytes: int = ROOM_BYTES) -> None:
        """Keep the answers of so many distinct queries, so many bytes of them as they came."""
        self._most, self._room_bytes = most, room_bytes
        self._firsts: dict[str, _First] = {}
        self._left_out = 0
        self._lock = threading.Lock()

    def take(self, query: int, sql: str, answer: pa.Table) -> str | None:
        """Keep a query's first answer; of a later one say how it differs, if it does."""
        with self._lock:
            first = self._firsts.get(sql)
            is_new = first is None
            if first is None:
                if len(self._firsts) >= self._most:
                    self._left_out += 1
                    return None
                first = self._firsts[sql] = _First(query, answer, stays=self._has_room(answer))
        if is_new:
            if not first.stays:
                first.let_go()
            return None
        words = first.difference(answer)
        return (
            words
            and f"query {first.query} gave another answer than before: {words} (before: here; now: there)"
        )

    def listed(self) -> dict[str, Any]:
        """Return what drive.json says of answers."""
        firsts = sorted(self._firsts.values(), key=lambda first: first.query)
        answers = [{"query": first.query, "digest": first.digest()} for first in firsts]
        return {"answers": answers, "answers_left_out": self._left_out}

    def _has_room(self, answer: pa.Table) -> bool:
        size = 2 * answer.get_total_buffer_size()
        fits = bool(size <= self._room_bytes)
        self._room_bytes -= size if fits else 0
        return fits


class _First:
    """One query's first answer: a table until it is let go, its digest once that is wanted."""

    def __init__(self, query: int, table: pa.Table, *, stays: bool) -> None:
        self.query, self.stays = query, stays
        self._table: pa.Table | None = table
        self._in_order: pa.Table | None = None
        self._digest: Digest | None = None

    def difference(self, later: pa.Table) -> str | None:
        """Say how a later answer differs; None when it does not."""
        if self.stays and self._has_rows_of(later):
            return None
        return compare(self.digest(), digest(later))

    def digest(self) -> Digest:
        """Return its digest."""
        table = self._table  # read first: `let_go` sets the digest first
        if self._digest is None:
            self._digest = digest(table)
        return self._digest

    def let_go(self) -> None:
        """Keep the digest alone."""
        self.digest()
        self._table = None

    def _has_rows_of(self, later: pa.Table) -> bool:
        """Compare exactly, with the order left out; False also where rows cannot be sorted."""
        table = self._table
        assert table is not None, "it stays"  # noqa: S101
        if table.num_rows != later.num_rows or table.schema != later.schema:
            return False
        if table.equals(later):
            return True
        try:
            if self._in_order is None:
                self._in_order = in_order(table)
            return bool(self._in_order.equals(in_order(later)))
        except pa.ArrowException:
            return False


def in_order(table: pa.Table) -> pa.Table:
    """Return the rows sorted by all columns. Raises ArrowException where a type has no order."""
    places = [f"{place}" for place in range(table.num_columns)]  # a name may be there twice
    keys = [(place, "ascending") for place in places]
    return table.take(pc.sort_indices(table.rename_columns(places), sort_keys=keys))
