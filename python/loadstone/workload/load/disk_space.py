"""How much room a bulk load needs on the server's disks, and whether there is that much.

The formula, for PostgreSQL's pages of 8192 bytes (its documentation, chapters "Database Physical Storage" and
"Index Access Methods"); widths are means over the first rows:

* Heap: a row takes 24 bytes of header, its values (a text: its octets and 1 byte, 4 from 127 octets on;
  others at their alignment), rounded up to 8, and 4 in the page's directory; a page has 8168 bytes for rows,
  and costs 0.1 % more for the maps. Rows above 2032 bytes go into pieces that fill pages but for 3 %. Long
  values count as if they were not compressed.
* B-tree: an entry takes 8 bytes and its keys, rounded up to 8, and 4; pages are 90 % full when the index is
  built of what is there or keys come in order, 69 % (ln 2) when they come at random. Of several clients only
  one inserts in order at the end of the index; the others split pages in the middle, which stay half full.
  Equal keys count as if each were kept. Hash: entries of 20 bytes in pages that are half full. BRIN: two
  entries a megabyte. Any other: as two B-trees.
* WAL: what the load writes, heap and indexes once, and entries that go into an index that is there once more,
  but at most twice `max_wal_size`: one checkpoint's worth is kept while the next piles up.
* Temporary: sorted entries of the largest index that is built of rows that are there.

Engines that keep columns: the values' own bytes, which compression makes fewer.
"""

from __future__ import annotations

import contextlib
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine.dialect.indexes import index_list
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.engine import Engine
    from loadstone.engine.control import Control
    from loadstone.engine.dialect.indexes import Index
    from loadstone.model import BulkLoad, PlainTable
    from loadstone.target import OpenTarget
    from loadstone.workload.load.content import Content

_PAGE = 8192
_USABLE = 8168
_BUILT = 0.9
_RANDOM = math.log(2)
_SPLIT = 0.5
_FIXED = {"int32": 4, "int64": 8, "float32": 4, "float64": 8, "timestamp": 8, "bool": 1}
_SHORT = 127
_MAPS = 1.001
_TOASTED = 2032
"""Longer rows have their long values in pieces elsewhere (TOAST_TUPLE_THRESHOLD)."""
_PIECES = 1.03
_WAL_USUAL = 1 << 30
"""PostgreSQL's own `max_wal_size`."""
_MAX_WAL_SIZE = """
select setting::bigint * 1048576 as bytes from pg_settings where name = 'max_wal_size' and unit = 'MB'
"""


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes that a load will take at most, by where they lie; rows already loaded not counted."""

    heap_bytes: int
    index_bytes: int
    wal_bytes: int
    temporary_bytes: int

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.heap_bytes + self.index_bytes + self.wal_bytes + self.temporary_bytes

    def __str__(self) -> str:
        """Say it in words."""
        parts = {
            "the table": self.heap_bytes,
            "indexes": self.index_bytes,
            "WAL": self.wal_bytes,
            "sorting": self.temporary_bytes,
        }
        listed = ", ".join(f"{_shown(size)} for {name}" for name, size in parts.items() if size)
        return f"{_shown(self.total_bytes)} ({listed})"


def needed_bytes(
    bulk: BulkLoad, content: Content, engine: Engine, control: Control | None = None, done: int = 0
) -> Need:
    """Estimate what a load takes by this module's formula.

    `control` tells how much WAL the server keeps; `done` rows are in the table already.
    """
    rows = max(0, _rows(bulk, content) - done)
    if not engine.has_heap:
        return Need(round(rows * sum(content.widths)), 0, 0, 0)
    kinds = [column["type"] for column in content.table["columns"]]
    heap = _heap_bytes(rows, list(zip(kinds, content.widths, strict=True)))
    # A table that is there for files may name its columns as it likes.
    known = [column["name"] for column in content.table["columns"]] if content.generated else None
    indexes = index_list(bulk.table.indexes, known, content.table["usual_indexes"])
    later = bulk.table.index_when == "after"
    growing = _SPLIT + (_BUILT - _SPLIT) / bulk.workers
    fills = (_BUILT, _BUILT) if later else (growing, _RANDOM)
    sizes = [_index_bytes(index, content, rows, heap, fills) for index in indexes]
    entries = [rows * _entry_bytes(index.columns, content) for index in indexes]
    if bulk.table.primary_key:
        key = (bulk.table.primary_key,)
        ordered = bulk.table.primary_key == content.table["sequence"]
        entries.append(rows * _entry_bytes(key, content))
        sizes.append(entries[-1] / (growing if ordered else _RANDOM))
    wal = min(heap + sum(sizes) + (0 if later else sum(entries)), 2 * _wal_most(control))
    temporary = max(entries, default=0) if later and indexes else 0
    return Need(round(heap), round(sum(sizes)), round(wal), round(temporary))


def _rows(bulk: BulkLoad, content: Content) -> int:
    if content.generated:
        return content.rows
    found = round(content.file_bytes / (content.table["row_bytes"] or 1))
    return min(found, bulk.rows.rows) if bulk.rows.rows else found


def _heap_bytes(rows: int, columns: Sequence[tuple[str, float]]) -> float:
    at = 0.0
    for kind, width in columns:
        fixed = _FIXED.get(kind)
        if fixed is None:
            at += width + (1 if width < _SHORT else 4)
        else:
            at = math.ceil(at / fixed) * fixed + fixed
    row = math.ceil((24 + at) / 8) * 8 + 4
    a_page = _USABLE // row if row <= _TOASTED else _USABLE / (row * _PIECES)
    return rows / a_page * _PAGE * _MAPS


def _entry_bytes(columns: Sequence[str], content: Content) -> float:
    widths = dict(zip((c["name"] for c in content.table["columns"]), content.widths, strict=True))
    kinds = {c["name"]: c["type"] for c in content.table["columns"]}
    mean = sum(content.widths) / len(content.widths)
    keys = sum(widths.get(name, mean) + (0 if kinds.get(name) in _FIXED else 1) for name in columns)
    return math.ceil((8 + keys) / 8) * 8 + 4


def _index_bytes(index: Index, content: Content, rows: int, heap: float, fills: tuple[float, float]) -> float:
    """Estimate an index; `fills` are the shares of a page in use for keys that grow, and for others."""
    if index.method == "brin":
        return 3 * _PAGE + heap / (1 << 20) * 2 * _entry_bytes(index.columns, content)
    if index.method == "hash":
        return rows * 20 / 0.5
    growing, other = fills
    fill = growing if index.columns[0] == content.table["sequence"] else other
    tree = rows * _entry_bytes(index.columns, content) / fill
    return tree if index.method in ("", "btree") else 2 * tree


def _wal_most(control: Control | None) -> int:
    row = None if control is None else control.execute(_MAX_WAL_SIZE).fetchone()
    return int(row["bytes"]) if row is not None else _WAL_USUAL


def refuse_without_room(
    need: Need,
    opened: OpenTarget,
    options: PlainTable | None = None,
    control: Control | None = None,
    freed: int = 0,
) -> list[str]:
    """Raise LoadstoneError when a disk has less room than is needed there; returns what cannot be known.

    `options` say in which tablespaces table and indexes lie; `freed` bytes are to be dropped there before.
    """
    with contextlib.ExitStack() as stack:
        control = control or stack.enter_context(contextlib.closing(opened.connect("loadstone")))
        places = _places(opened, control, options)
    if isinstance(places, str):
        return [f"whether there is enough space for the rows is unknown: {places}"]
    wanted: dict[int, int] = {}
    for path, size in zip(places, _by_place(need, freed), strict=True):
        device = path.stat().st_dev
        wanted[device] = wanted.get(device, 0) + size
    for path in places:
        free, size = shutil.disk_usage(path).free, wanted[path.stat().st_dev]
        if size > free:
            raise LoadstoneError(
                f"the load needs about {need}: {_shown(size)} of it at {path}, but {_shown(free)} are "
                "free there",
                "Load fewer rows or create fewer indexes, use another folder with --storage or a "
                "tablespace, or start anyway with --ignore-space.",
            )
    return []


def _by_place(need: Need, freed: int) -> tuple[int, int, int]:
    """Return bytes for the table's place, the indexes' and the server's own."""
    rest = max(0, freed - need.heap_bytes)
    return (
        max(0, need.heap_bytes - freed),
        max(0, need.index_bytes - rest),
        need.wal_bytes + need.temporary_bytes,
    )


def _places(
    opened: OpenTarget, control: Control, options: PlainTable | None
) -> tuple[Path, Path, Path] | str:
    """Return where table, indexes and WAL lie, or why that is not known."""
    files = opened.engine.data_files(control, opened.data_directory)
    folder = files.folder
    if folder is None:
        return files.why
    try:
        table, indexes = (
            (_tablespace(control, name) if name else None) or folder
            for name in ((options.tablespace, options.index_tablespace) if options else ("", ""))
        )
        wal = folder / "pg_wal"
        return table, indexes, wal.resolve() if wal.exists() else folder
    except OSError as error:
        return f"the server's files cannot be read: {error.strerror}"


def _tablespace(control: Control, name: str) -> Path | None:
    statement = (
        f"select pg_tablespace_location(oid) as place from pg_tablespace where spcname = {literal(name)}"  # noqa: S608
    )
    row = control.execute(statement).fetchone() or {}
    return Path(row["place"]) if row.get("place") else None


def _shown(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
