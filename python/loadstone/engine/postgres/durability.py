"""PostgreSQL's settings that make a committed transaction survive a crash, and what their values mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.engine.answers import Durability


_KEEPS_COMMITS = ("on", "local", "remote_write", "remote_apply")


def _fsync(value: str) -> tuple[bool, str]:
    if value == "on":
        return True, "commits are synced to disk"
    return False, "nothing is synced to disk: a crash of the machine can destroy the whole database"


def _full_page_writes(value: str) -> tuple[bool, str]:
    if value == "on":
        return True, "pages torn by a crash are restored from the WAL"
    return False, "a page torn by a crash stays torn, unless the file system writes pages atomically"


def _synchronous_commit(value: str) -> tuple[bool, str]:
    if value in _KEEPS_COMMITS:
        return True, "a commit is acknowledged after its WAL is on disk"
    return False, ("a commit is acknowledged before its WAL is on disk: a crash loses the last transactions")


def _wal_level(value: str) -> tuple[bool, str]:
    if value == "minimal":
        return (
            True,
            "survives a crash; archiving and replication are impossible, and bulk loads write less WAL",
        )
    return True, "WAL is complete enough for archiving and replication"


def _data_checksums(value: str) -> tuple[bool, str]:
    if value == "on":
        return True, "pages damaged on disk are detected when they are read (costs some CPU time)"
    return True, "pages damaged on disk are not detected (saves some CPU time)"


def _unlogged(value: str) -> tuple[bool, str]:
    if value == "0":
        return True, "every table of the test is written to the WAL"
    return False, "unlogged tables are empty after a crash"


_RULES: dict[str, Callable[[str], tuple[bool, str]]] = {
    "fsync": _fsync,
    "full_page_writes": _full_page_writes,
    "synchronous_commit": _synchronous_commit,
    "wal_level": _wal_level,
    "data_checksums": _data_checksums,
    "unlogged tables": _unlogged,
}


def judge(values: Mapping[str, str], *, whole_pages: bool = False) -> list[Durability]:
    """Say of every known setting among `values` whether commits survive a crash with it, and why.

    `whole_pages`: the storage is known to write a page whole or not at all.
    """
    judged: list[Durability] = []
    for setting, rule in _RULES.items():
        if setting in values:
            durable, why = rule(values[setting])
            if setting == "full_page_writes" and whole_pages and not durable:
                durable, why = True, "the server's storage writes whole pages, so a crash tears none"
            judged.append({"setting": setting, "value": values[setting], "durable": durable, "why": why})
    return judged
