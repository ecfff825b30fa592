"""`loadstone sysbench` called in this process, and what its tests give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.personalities import sysbench

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database


def run(*arguments: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error."""
    out: list[str] = []
    err: list[str] = []
    code = sysbench.main(arguments, out.append, err.append)
    return code, "".join(out), "".join(err)


def place(database: Database) -> tuple[str, ...]:
    """Return the options that name a database."""
    there = database.server.connection
    server = ("--db-driver=pgsql", f"--pgsql-host={there.host}", f"--pgsql-port={there.port}")
    return (*server, f"--pgsql-user={there.user}", f"--pgsql-db={database.name}")


def script(folder: Path, text: str) -> str:
    """Return the path of a script with this text."""
    path = folder / "own.lua"
    path.write_text(text)
    return str(path)
