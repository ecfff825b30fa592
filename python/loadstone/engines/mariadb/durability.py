"""InnoDB's settings that make a committed transaction survive a crash, and what their values mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.engine.answers import Durability

_OFF = ("0", "OFF")


def _flush(value: str) -> tuple[bool, str]:
    if value in ("1", "3"):
        return True, "a commit is acknowledged after its redo log is on disk"
    if value == "2":
        return (
            False,
            "a commit is acknowledged before it is on disk: a crash of the machine loses about a second",
        )
    return (
        False,
        "a commit is acknowledged before it is written: any crash loses about a second of transactions",
    )


def _doublewrite(value: str) -> tuple[bool, str]:
    if value not in _OFF:
        return True, "pages torn by a crash are restored from the doublewrite buffer"
    return False, "a page torn by a crash stays torn, unless the file system writes pages atomically"


def _log_bin(value: str) -> tuple[bool, str]:
    if value in _OFF:
        return True, "no binary log is written: replication and point-in-time recovery are impossible"
    return True, "every change is also written to the binary log"


def _sync_binlog(value: str) -> tuple[bool, str]:
    if value == "1":
        return True, "each commit syncs the binary log as well"
    return (
        True,
        "a crash of the machine may lose the end of the binary log: replicas then differ from the server",
    )


def _flush_method(value: str) -> tuple[bool, str]:
    if value.upper() in ("NOSYNC", "LITTLESYNC"):
        return False, "files are not synced: a crash of the machine can destroy the whole database"
    return True, "files are synced to disk"


_RULES: dict[str, Callable[[str], tuple[bool, str]]] = {
    "innodb_flush_log_at_trx_commit": _flush,
    "innodb_doublewrite": _doublewrite,
    "innodb_flush_method": _flush_method,
    "log_bin": _log_bin,
    "sync_binlog": _sync_binlog,
}


def judge(values: Mapping[str, str]) -> list[Durability]:
    """Say of every known setting whether commits survive a crash with it, and why."""
    without_log = values.get("log_bin", "OFF") in _OFF
    judged: list[Durability] = []
    for setting, rule in _RULES.items():
        if setting in values and not (setting == "sync_binlog" and without_log):
            durable, why = rule(values[setting])
            judged.append({"setting": setting, "value": values[setting], "durable": durable, "why": why})
    return judged
