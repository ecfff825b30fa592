"""What a table takes on disk, byte by byte: by kind as the server says, and as the file system allocates it.

The server's kinds add up: heap, TOAST (with its index and maps), indexes and maps together are what
`pg_total_relation_size` says of the table with its partitions.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import psycopg

from loadstone.engine.postgres import statements
from loadstone.sqltext import qualified, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.engine.control import Control, Row

BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the file system's own blocks are (stat(2))."""

_SEGMENT = re.compile(r"(\d+|t\d+_\d+)(_fsm|_vm|_init)?(\.\d+)?")
"""A file of a relation: its number, its fork, which gigabyte of it."""


class IndexStorage(TypedDict):
    """One entry of STORAGE's `indexes`; of a partitioned index, all its partitions together."""

    name: str
    bytes: int | None
    allocated_bytes: int | None


class TableStorage(TypedDict):
    """One entry of STORAGE's `tables`. Rows and logical bytes are the loader's to know."""

    name: str
    rows: int | None
    logical_bytes: int | None
    heap_bytes: int
    toast_bytes: int
    index_bytes: int | None
    map_bytes: int
    """Free space map and visibility map."""
    free_bytes: int | None
    """Room for new rows within heap and TOAST, as far as the server knows of it."""
    allocated_bytes: int | None
    """What the file system holds for all files of all of this."""
    indexes: list[IndexStorage]
    shared_file: NotRequired[bool]
    """Free and allocated bytes are those of one file in which other tables lie as well."""


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Where a database's files really are: not always where its server says that its data directory is."""

    folder: Path | None
    """What holds tables and WAL, as seen from this machine; None where that is not known."""
    why: str = ""
    """Why it is not known."""
    prefix: str = ""
    """What the server writes before the path of each file in there."""
    direct: bool = False
    """Whether the server reads and writes them past the operating system's cache (O_DIRECT)."""


@dataclass(slots=True)
class Storage:
    """One look at tables, with the reasons for what is missing."""

    tables: list[TableStorage]
    notes: list[str] = field(default_factory=list)


def table_storage(
    name: str,
    heap: int,
    *,
    toast: int = 0,
    indexes: Sequence[tuple[str, int | None]] = (),
    free: int | None = None,
    allocated: int | None = None,
) -> TableStorage:
    """Return the account of a table of which only these sums are known, in bytes."""
    listed: list[IndexStorage] = [
        {"name": index, "bytes": size, "allocated_bytes": None} for index, size in indexes
    ]
    sizes = [size for _, size in indexes if size is not None]
    return {
        "name": name,
        "rows": None,
        "logical_bytes": None,
        "heap_bytes": heap,
        "toast_bytes": toast,
        "index_bytes": sum(sizes) if len(sizes) == len(indexes) else None,
        "map_bytes": 0,
        "free_bytes": free,
        "allocated_bytes": allocated,
        "indexes": listed,
    }


def look(control: Control, schema: str, tables: Sequence[str], files: DataFiles, *, members: str) -> Storage:
    """Look at tables of a server of PostgreSQL's family.

    `members` names relations that belong to a table beside its partitions, as further rows of the statement.
    """
    statement = statements.STORAGE.replace("{members}", members)
    found = Storage([])
    free = _FreeSpace(control, schema, found.notes)
    for name in tables:
        place = qualified(schema, name)
        relations = control.execute(statement, {"table": place}).fetchall()
        sizes = _allocated_of(relations, files, found.notes)
        found.tables.append(_table(name, relations, sizes, free))
    found.notes = list(dict.fromkeys(found.notes))
    return found


class _FreeSpace:
    """Asks the free space map, by the extension that shows it."""

    def __init__(self, control: Control, schema: str, notes: list[str]) -> None:
        self._control = control
        self._function: str | None = None
        try:
            where = self._extension(schema)
        except psycopg.errors.InsufficientPrivilege as error:
            notes.append(f"free space is unknown: pg_freespacemap {_words(error)}")
        else:
            if where is None:
                notes.append("free space is unknown: the server does not have the extension pg_freespacemap")
            else:
                self._function = f"{quoted(where)}.pg_freespace"
        self._notes = notes

    def _extension(self, schema: str) -> str | None:
        """Return the schema of the extension, made in ours if need be; None where it is not installed."""
        row = self._control.execute(statements.FREE_SPACE_MAP).fetchone() or {}
        if row.get("schema") is not None:
            return str(row["schema"])
        if not row.get("available"):
            return None
        self._control.execute(f"create extension if not exists pg_freespacemap schema {quoted(schema)}")
        return schema

    def of(self, relations: Iterable[Row]) -> int | None:
        """Return the free bytes of these relations together."""
        if self._function is None:
            return None
        total = 0
        for row in relations:
            statement = f"select coalesce(sum(avail), 0)::bigint as free from {self._function}({row['oid']})"  # noqa: S608
            try:
                total += int((self._control.execute(statement).fetchone() or {})["free"])
            except psycopg.errors.InsufficientPrivilege as error:
                self._notes.append(f"free space is unknown: pg_freespacemap {_words(error)}")
                return None
        return total


def _words(error: psycopg.Error) -> str:
    return f"is refused: {error.diag.message_primary}"


def _table(
    name: str, relations: Sequence[Row], allocated: Mapping[int, int] | None, free: _FreeSpace
) -> TableStorage:
    heap, toast, index = (
        [row for row in relations if row["part"] == part] for part in ("heap", "toast", "index")
    )
    stored = [row for row in (*heap, *toast) if row["file"] is not None and row["kind"] != "i"]
    return {
        "name": name,
        "rows": None,
        "logical_bytes": None,
        "heap_bytes": sum(row["main"] + row["init"] for row in heap),
        "toast_bytes": _bytes(toast),
        "index_bytes": _bytes(index),
        "map_bytes": sum(row["maps"] for row in heap),
        "free_bytes": free.of(stored),
        "allocated_bytes": _sum(allocated, relations),
        "indexes": _indexes(index, allocated),
    }


def _bytes(rows: Iterable[Row]) -> int:
    return sum(row["main"] + row["maps"] + row["init"] for row in rows)


def _sum(allocated: Mapping[int, int] | None, rows: Iterable[Row]) -> int | None:
    return None if allocated is None else sum(allocated.get(row["oid"], 0) for row in rows)


def _indexes(rows: Sequence[Row], allocated: Mapping[int, int] | None) -> list[IndexStorage]:
    """Sum up the partitions of each index; those of chunks are known by their names."""
    by_oid = {row["oid"]: row for row in rows}
    groups: dict[str, list[Row]] = {}
    for row in rows:
        top = row
        while top["parent"] in by_oid:
            top = by_oid[top["parent"]]
        name = str(top["name"])
        groups.setdefault(name.removeprefix(f"{top['chunk']}_") if top["chunk"] else name, []).append(row)
    return [
        {"name": name, "bytes": _bytes(parts), "allocated_bytes": _sum(allocated, parts)}
        for name, parts in sorted(groups.items())
    ]


def _allocated_of(relations: Sequence[Row], files: DataFiles, notes: list[str]) -> Mapping[int, int] | None:
    """Return the allocated bytes by relation; None, and a note, when they cannot be seen."""
    if files.folder is None:
        notes.append(f"allocated bytes are unknown: {files.why}")
        return None
    held = {
        row["oid"]: files.folder / row["file"].removeprefix(files.prefix)
        for row in relations
        if row["file"] is not None
    }
    folders: dict[Path, dict[str, int]] = {}
    try:
        for path in held.values():
            if path.parent not in folders:
                folders[path.parent] = _folder(path.parent)
    except OSError as error:
        notes.append(f"allocated bytes are unknown: the server's files cannot be read: {error.strerror}")
        return None
    return {oid: folders[path.parent].get(path.name, 0) for oid, path in held.items()}


def _folder(folder: Path) -> dict[str, int]:
    """Return the allocated bytes of every relation in a folder, all segments and forks together."""
    found: dict[str, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _SEGMENT.fullmatch(entry.name)
            if match is None:
                continue
            try:
                blocks = entry.stat().st_blocks
            except FileNotFoundError:
                continue  # a relation was dropped just now
            found[match.group(1)] = found.get(match.group(1), 0) + blocks * BLOCK_BYTES
    return found


def allocated_bytes(*paths: Path | None) -> int:
    """Return what the file system holds for these files; those that are not there count as nothing."""
    total = 0
    for path in paths:
        if path is not None and path.exists():
            total += path.stat().st_blocks * BLOCK_BYTES
    return total


def data_directory_of(control: Control, pid: int | None, reason: str | None) -> DataFiles:
    """Return the data directory of the server that `pid` is the first process of, as we see it."""
    if pid is None:
        return DataFiles(None, reason or "Loadstone does not know where the server runs")
    row: dict[str, Any] = control.execute(statements.BACKEND).fetchone() or {}
    shown = row.get("data_directory")
    if shown is None:
        why = "the server shows its data directory only to members of pg_read_all_settings"
        return DataFiles(None, why)
    folder = Path(shown)
    try:
        owner = (folder / "postmaster.pid").read_text().partition("\n")[0]
    except OSError as error:
        return DataFiles(None, f"the server's files in {folder} cannot be read: {error.strerror}")
    if owner != str(pid):
        return DataFiles(None, f"'{folder}' on this machine is not the server's data directory")
    return DataFiles(folder)
