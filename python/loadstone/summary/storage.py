"""What a table takes on disk, by kind of byte, and what was written to get it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.phase import StoredTable, WrittenBytes
from loadstone.results.documents.summary import (
    BytesOfRow,
    KindBytes,
    LookFigures,
    StorageFigures,
    StoredFigures,
    StoredTableFigures,
    WrittenFigures,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.results.documents import Drive, Phase
    from loadstone.results.documents.phase import Look

KINDS = ("heap", "free", "toast", "index", "map")
"""Rows, free space between them, long values, indexes, and maps of free and visible pages."""
SAID_IN_A_NOTE = "the whole file's"
"""Run folders from before tables had `shared_file` say so in a note."""


def summarise_storage(phase: Phase, drive: Drive | None) -> StorageFigures | None:
    """Return each look at the tables with its sums and ratios; None where nobody looked.

    `ratio` is what the filesystem gave (or, where that is not known, what the server's files hold) over the
    logical bytes of the rows; `packed` is what the filesystem gave over what the files hold, under 1 where
    it compresses.
    """
    found = phase.storage or (drive and drive.load and drive.load.storage)
    if not found:
        return None
    notes = list(found.notes or [])
    shared = any(SAID_IN_A_NOTE in note for note in notes)
    looks = [_look(look, shared=shared) for look in found.looks or []]
    written = found.written or WrittenBytes()
    return StorageFigures(
        looks=looks,
        written=WrittenFigures(
            wal_bytes=written.wal_bytes,
            device_bytes=written.device_bytes,
            server_bytes=written.server_bytes,
            amplification=written.amplification,
            of=written.of,
            wal_per_logical=_over(written.wal_bytes, looks[0].sum.logical_bytes if looks else None),
        ),
        notes=notes,
    )


def _look(look: Look, *, shared: bool) -> LookFigures:
    tables = [_table(table, shared=shared) for table in look.tables or []]
    return LookFigures(when=look.when, tables=tables, sum=_whole(tables))


def _table(table: StoredTable, *, shared: bool) -> StoredTableFigures:
    """Return what is the table's own: free space of a shared file is what other tables left behind.

    Where the table has indexes of unknown size there, it takes all of the file that is used.
    """
    if not (shared if table.shared_file is None else table.shared_file):
        return _named(table, _figures(table, None, None))
    file, free = table.allocated_bytes, table.free_bytes
    used = None if file is None or table.index_bytes is not None else file - (free or 0)
    own = msgspec.structs.replace(table, allocated_bytes=used, free_bytes=None)
    return _named(table, _figures(own, file, free))


def _named(table: StoredTable, found: StoredFigures) -> StoredTableFigures:
    return StoredTableFigures(
        name=table.name,
        indexes=table.indexes,
        shared_file=table.shared_file,
        **msgspec.structs.asdict(found),
    )


def _whole(tables: Sequence[StoredTableFigures]) -> StoredFigures:
    """Return the sums over all tables."""
    sums = StoredTable(
        "",
        rows=sum(table.rows or 0 for table in tables),
        logical_bytes=sum(table.logical_bytes or 0 for table in tables),
        heap_bytes=sum(table.heap_bytes or 0 for table in tables),
        toast_bytes=sum(table.toast_bytes or 0 for table in tables),
        index_bytes=sum(table.index_bytes or 0 for table in tables),
        map_bytes=sum(table.map_bytes or 0 for table in tables),
        free_bytes=_sum(table.free_bytes for table in tables),
        allocated_bytes=_sum(table.allocated_bytes for table in tables),
    )
    file = _sum(table.file_bytes for table in tables)
    return _figures(sums, file, _sum(table.file_free_bytes for table in tables))


def _figures(table: StoredTable, file: float | None, file_free: float | None) -> StoredFigures:
    """Return the bytes by kind, which add up to `total_bytes`, and each over rows and logical bytes."""
    heap, toast = table.heap_bytes or 0, table.toast_bytes or 0
    index, maps = table.index_bytes or 0, table.map_bytes or 0
    free = min(table.free_bytes or 0, heap)
    kinds = KindBytes(heap=heap - free, free=free, toast=toast, index=index, map=maps)
    total = heap + toast + index + maps
    allocated, logical, rows = table.allocated_bytes, table.logical_bytes, table.rows
    return StoredFigures(
        rows=rows,
        logical_bytes=logical,
        heap_bytes=table.heap_bytes,
        toast_bytes=table.toast_bytes,
        index_bytes=table.index_bytes,
        map_bytes=table.map_bytes,
        free_bytes=table.free_bytes,
        allocated_bytes=allocated,
        file_bytes=file,
        file_free_bytes=file_free,
        kinds=kinds,
        total_bytes=total,
        ratio=_over(total if allocated is None else allocated, logical),
        packed=_over(allocated, total),
        per_row=BytesOfRow(
            logical=_over(logical, rows),
            total=_over(total, rows),
            allocated=_over(allocated, rows),
            heap=_over(kinds.heap, rows),
            free=_over(kinds.free, rows),
            toast=_over(kinds.toast, rows),
            index=_over(kinds.index, rows),
            map=_over(kinds.map, rows),
        ),
    )


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum over all tables; None when one of them is not known."""
    found = list(values)
    return None if None in found or not found else sum(value or 0 for value in found)


def _over(value: float | None, unit: float | None) -> float | None:
    return value / unit if value is not None and unit else None
