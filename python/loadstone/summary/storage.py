"""What a table takes on disk, by kind of byte, and what was written to get it there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.summary.reading import Json

KINDS = ("heap", "free", "toast", "index", "map")
"""Rows, free space between them, long values, indexes, and maps of free and visible pages."""


FIGURES = (
    "rows",
    "logical_bytes",
    "heap_bytes",
    "toast_bytes",
    "index_bytes",
    "map_bytes",
    "free_bytes",
    "allocated_bytes",
)
"""What an engine tells of a table; null where it does not."""
OF_FILE = ("file_bytes", "file_free_bytes")
"""Of the whole file in which a table lies with others; null where tables have files of their own."""
SAID_IN_A_NOTE = "the whole file's"
"""Run folders from before tables had `shared_file` say so in a note."""
WRITTEN = ("wal_bytes", "device_bytes", "server_bytes", "amplification", "of")


def summarise_storage(phase: Json, drive: Json | None) -> Json | None:
    """Return each look at the tables with its sums and ratios; None where nobody looked.

    `ratio` is what the filesystem gave (or, where that is not known, what the server's files hold) over the
    logical bytes of the rows; `packed` is what the filesystem gave over what the files hold, under 1 where
    it compresses.
    """
    found = phase.get("storage") or ((drive or {}).get("load") or {}).get("storage")
    if not found:
        return None
    notes = list(found.get("notes") or [])
    shared = any(SAID_IN_A_NOTE in note for note in notes)
    looks = [_look(look, shared=shared) for look in found.get("looks") or []]
    written = dict.fromkeys(WRITTEN) | (found.get("written") or {})
    logical = looks[0]["sum"]["logical_bytes"] if looks else None
    return {
        "looks": looks,
        "written": {**written, "wal_per_logical": _over(written.get("wal_bytes"), logical)},
        "notes": notes,
    }


def _look(look: Json, *, shared: bool) -> Json:
    told = [_own(table, shared=shared) for table in look.get("tables") or []]
    tables = [{**dict.fromkeys(FIGURES), **table, **_figures(table)} for table in told]
    whole = {name: sum(table[name] or 0 for table in tables) for name in FIGURES[:-2]}
    whole |= {name: _sum(tables, name) for name in ("free_bytes", "allocated_bytes", *OF_FILE)}
    return {"when": look.get("when"), "tables": tables, "sum": {**whole, **_figures(whole)}}


def _own(table: Json, *, shared: bool) -> Json:
    """Return what is the table's own: free space of a shared file is what other tables left behind.

    Where the table has indexes of unknown size there, it takes all of the file that is used.
    """
    if not table.get("shared_file", shared):
        return {**table, **dict.fromkeys(OF_FILE)}
    file, free = table.get("allocated_bytes"), table.get("free_bytes")
    used = None if file is None or table.get("index_bytes") is not None else file - (free or 0)
    return {**table, "allocated_bytes": used, "free_bytes": None, "file_bytes": file, "file_free_bytes": free}


def _figures(table: Json) -> Json:
    """Return the bytes by kind, which add up to `total_bytes`, and each over rows and logical bytes."""
    free = table.get("free_bytes")
    parts = {kind: table.get(f"{kind}_bytes") or 0 for kind in ("toast", "index", "map")}
    heap = table.get("heap_bytes") or 0
    parts |= {"free": min(free or 0, heap), "heap": heap - min(free or 0, heap)}
    total = sum(parts.values())
    allocated, logical, rows = (table.get(name) for name in ("allocated_bytes", "logical_bytes", "rows"))
    held = total if allocated is None else allocated
    return {
        "kinds": {kind: parts[kind] for kind in KINDS},
        "total_bytes": total,
        "ratio": _over(held, logical),
        "packed": _over(allocated, total),
        "per_row": {
            "logical": _over(logical, rows),
            "total": _over(total, rows),
            "allocated": _over(allocated, rows),
            **{kind: _over(parts[kind], rows) for kind in KINDS},
        },
    }


def _sum(tables: Sequence[Json], name: str) -> int | None:
    """Return the sum over all tables; None when one of them is not known."""
    values = [table.get(name) for table in tables]
    return None if None in values or not values else sum(value or 0 for value in values)


def _over(value: float | None, unit: float | None) -> float | None:
    return value / unit if value is not None and unit else None
