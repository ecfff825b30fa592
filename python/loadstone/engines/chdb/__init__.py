"""chDB: ClickHouse as a library, held by a process of its own that ends with the run.

A process of its own, for four reasons. The library takes over the handling of signals, and Loadstone's must
stay ours: Ctrl-C ends a run in order. One process can have one database of it. No call ends a statement that
is running, a process can be ended. And a crash or a lack of memory is then the engine's, its CPU time and
memory are seen apart from ours, and what comes next goes on. The price is a socket between the two, which
statements, rows and answers (as Arrow) pass within the clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engine.library.engine import Place
from loadstone.engine.library.packages import install
from loadstone.engines.chdb.process import ChdbDatabase, refuse_missing
from loadstone.engines.clickhouse.control import click
from loadstone.engines.clickhouse.family import ClickFamily, drop_caches
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.engine.answers import Caches
    from loadstone.engine.control import Control


class ChDB(ClickFamily):
    """chDB, as its Python package brings it."""

    name = "chdb"
    title = "chDB"
    schemes = ("chdb",)
    sets_sessions = True
    status = "verified against chDB 4.4.0 with ClickHouse 26.9, on Linux"
    needs = f"the Python package chdb: {install('chdb')} (180 MB, 850 MB on disk)"

    @property
    def target_forms(self) -> tuple[str, ...]:
        """A private folder, the user's own."""
        return ("chdb:", "chdb:/path/folder")

    def place(self, text: str) -> Place:
        """Understand what follows `chdb:`; a folder need not exist, the one above it must."""
        text = text.removeprefix("//")
        if not text:
            return Place("chdb", "a private folder", "chdb:", needs_folder=True, private=True)
        if text == ":memory:":
            raise LoadstoneError(
                "in-memory chDB is not supported",
                "Name a folder, or use 'chdb:' for a private one.",
            )
        path = Path(text).expanduser()
        if path.exists() and not path.is_dir():
            raise LoadstoneError(f"'{path}' is not a folder", "Name a folder: chdb:/path/folder.")
        if not path.parent.is_dir():
            raise LoadstoneError(
                f"the folder '{path.parent}' does not exist", f"Create it first: mkdir -p {path.parent}"
            )
        return Place(f"chdb-{path.name}", f"folder {path}", f"chdb:{path}", path=path)

    def open(self, place: Place, folder: Path | None, settings: Mapping[str, str]) -> ChdbDatabase:
        """Start the process; a folder that is not there is made."""
        refuse_missing()
        path = folder / "data" if folder is not None else place.path
        if path is None:
            raise TypeError("a place of chDB's has a folder")
        path.mkdir(exist_ok=True)
        return ChdbDatabase(path, settings)

    def flush_caches(self, connection: Control) -> Caches:
        """Empty the engine's caches, and have the system forget its pages of the files."""
        emptied = drop_caches(connection)
        database = click(connection).database
        if isinstance(database, ChdbDatabase):
            database.forget_pages()
        note = (
            f"its caches were emptied ({', '.join(emptied)}), and the system was asked to drop its "
            "files from the page cache"
        )
        return {"emptied": True, "note": note}


ENGINE = ChDB()
