"""Whether the rows of all tables are the same before and after a restart, by their hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, LiteralString

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import psycopg

MOST_BYTES = 256 << 20
"""Of tables that are hashed whole; of more, as many blocks: about 80 MB/s on one core, so about 3 s."""
LIMIT_S = 60
"""For the hash of all tables; compressed values take longer than their bytes tell."""
_SEED = 7
"""The same blocks each time."""
_WHOLE = 100.0
_HASHES_SINCE = 110000
# Extensions may write to their own tables at any time.
_TABLES: LiteralString = """
select format('%I.%I', n.nspname, c.relname), pg_table_size(c.oid)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and c.relpersistence <> 't' and n.nspname <> 'information_schema'
        and n.nspname !~ '^pg_' and not exists (select from pg_depend d
            where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by 2, 1
"""


@dataclass(frozen=True, slots=True)
class Extract:
    """What is hashed of the tables of a database."""

    shares: Mapping[str, float]
    """Per cent of the blocks of each table, by its name as SQL has it."""
    bytes: int
    """Of all tables."""
    hashed_bytes: int

    @classmethod
    def of(cls, control: psycopg.Connection, most_bytes: int = MOST_BYTES) -> Extract:
        """Choose whole tables, and of the largest as many blocks as fit. Raises psycopg's errors."""
        sizes = [(str(name), int(size)) for name, size in control.execute(_TABLES)]
        parts = _parts([size for _, size in sizes], most_bytes)
        shares = {
            name: _WHOLE * part / size if part < size else _WHOLE
            for (name, size), part in zip(sizes, parts, strict=True)
        }
        return cls(shares, sum(size for _, size in sizes), sum(parts))

    def hashes(self, control: psycopg.Connection, limit_s: float = LIMIT_S) -> dict[str, TableHash]:
        """Return the hash of each table that is there now.

        Raises psycopg's errors, QueryCanceled among them where it takes longer than `limit_s`.
        """
        there = {str(name) for name, _ in control.execute(_TABLES)}
        end = monotonic() + limit_s
        found = {}
        for name in sorted(there):
            left_ms = max(round((end - monotonic()) * 1e3), 1)
            control.execute(f"set statement_timeout = {left_ms}".encode())
            found[name] = self._hash(control, name)
        return found

    def _hash(self, control: psycopg.Connection, table: str) -> TableHash:
        share = self.shares.get(table, _WHOLE)
        blocks = "" if share >= _WHOLE else f"tablesample system ({share}) repeatable ({_SEED})"
        # A table may have a column of any name, but hardly of this one.
        text = "loadstone_row::text"
        hashed = (
            f"hashtextextended({text}, 0)" if control.info.server_version >= _HASHES_SINCE
            else f"('x' || left(md5({text}), 16))::bit(64)::bigint"
        )  # fmt: skip
        sql = f"select count(*), coalesce(sum({hashed}), 0) from only {table} loadstone_row {blocks}"  # noqa: S608
        row = control.execute(sql.encode()).fetchone()
        return TableHash(*map(int, row)) if row else TableHash(0, 0)


@dataclass(frozen=True, slots=True)
class TableHash:
    """The rows of a table, in any order."""

    rows: int
    sum: int
    """Of a hash of 64 bits of each row as text: a row that changes, comes or goes changes it."""

    def __str__(self) -> str:
        """Return them in words."""
        return f"{self.rows:,} rows, hash {self.sum & (1 << 64) - 1:016x}"


def digest(hashes: Mapping[str, TableHash]) -> str:
    """Return one hash of all tables."""
    lines = (f"{name} {one.rows} {one.sum}\n" for name, one in sorted(hashes.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]


def differences(before: Mapping[str, TableHash], after: Mapping[str, TableHash]) -> Iterator[str]:
    """Yield the tables whose rows are not the same, in words."""
    for name in sorted(before.keys() | after.keys()):
        one, other = before.get(name), after.get(name)
        if one != other:
            yield f"{name}: {one or 'not there'}; then {other or 'not there'}"


def _parts(sizes: Sequence[int], most: int) -> list[int]:
    """Share out bytes over tables, smallest first: what one does not need is left to the larger ones."""
    parts: list[int] = []
    for number, size in enumerate(sizes):
        part = min(size, (most - sum(parts)) // (len(sizes) - number))
        parts.append(part)
    return parts
