"""What a server far away says of its own machine by SQL, where an extension lets it: there is no agent.

Sources: system_stats of EnterpriseDB, pg_proctab (and pgnodemx, which offers its functions), pg_stat_kcache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import psycopg

from loadstone.engine.postgres import statements
from loadstone.sqltext import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loadstone.engine.control import Control, Row

_TICKS_PER_S = 100  # what Linux shows to programs, whatever the kernel's own rate is
_KIB = 1024
_SECTOR_BYTES = 512
_NOT_DISKS = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d+.*|[a-z]+d[a-z]+\d+|(nvme|mmcblk)\d.*p\d+")
"""No disk, stacked on disks that are counted themselves, or a part of one."""
_MACHINE = ("pg_proctab", "system_stats")
"""The first counts processors' time, the second looks for a moment how busy they are."""
_OFFERED = (*_MACHINE, "pg_stat_kcache")
Machine = dict[str, Any]


class RemoteMachine:
    """Chooses once among what is installed; then asks for it."""

    def __init__(self, control: Control) -> None:
        """Look what there is."""
        rows = control.execute(statements.OF_THE_MACHINE, {"names": list(_OFFERED)}).fetchall()
        schemas = {row["name"]: row["schema"] for row in rows}
        self._readers: list[tuple[str, str]] = [
            (name, quoted(schemas[name])) for name in _OFFERED if schemas.get(name) is not None
        ]
        self._available = [name for name in _MACHINE if name in schemas and schemas[name] is None]
        self.notes: list[str] = []
        """What is not observed, and why, in words."""
        if not any(name in _MACHINE for name, _ in self._readers):
            self._not_observed()

    def sample(self, control: Control) -> Machine | None:
        """Return `machine` of monitor.jsonl's `engine`; None when nothing is told."""
        found: Machine = {
            "cpu_s": None,
            "cpu_busy": None,
            "memory_total_bytes": None,
            "memory_used_bytes": None,
            "disk": None,
            "statements": None,
            "sources": [],
        }
        for name, schema in list(self._readers):
            if name in _MACHINE and any(source in _MACHINE for source in found["sources"]):
                continue
            try:
                found |= _READERS[name](control, schema)
            except psycopg.errors.Error as error:
                if not _is_lasting(error):
                    raise
                self._readers = [reader for reader in self._readers if reader[0] != name]
                self.notes.append(f"{name} cannot be queried: {error.diag.message_primary}")
                if not any(other in _MACHINE for other, _ in self._readers):
                    self._not_observed()
            else:
                found["sources"].append(name)
        return found if found["sources"] else None

    def _not_observed(self) -> None:
        hint = (
            f"create extension {self._available[0]} would show them"
            if self._available
            else (f"the server has none of the extensions that would show them ({', '.join(_MACHINE)})")
        )
        self.notes.append(
            "CPU, memory and IOPS of the server's machine are not observed: it is another machine, and "
            f"{hint}; `--watch` shows them without it"
        )


def _is_lasting(error: psycopg.errors.Error) -> bool:
    """Whether the same question would fail the next time too."""
    lasting = (
        psycopg.errors.InsufficientPrivilege,
        psycopg.errors.UndefinedFunction,
        psycopg.errors.UndefinedColumn,
        psycopg.errors.ObjectNotInPrerequisiteState,  # its library is not loaded
    )
    return isinstance(error, lasting)


def _system_stats(control: Control, schema: str) -> Machine:
    memory = _one(control, statements.SYSTEM_STATS_MEMORY, schema)
    usage = _one(control, statements.SYSTEM_STATS_CPU, schema)
    disks = _all(control, statements.SYSTEM_STATS_DISKS, schema)
    return {
        "cpu_busy": min(max(1 - (usage["idle"] + usage["iowait"]) / 100, 0.0), 1.0),
        "memory_total_bytes": memory["total"],
        "memory_used_bytes": memory["used"],
        "disk": _disk(disks, 1),
    }


def _proctab(control: Control, schema: str) -> Machine:
    cpu = _one(control, statements.PROCTAB_CPU, schema)
    memory = _one(control, statements.PROCTAB_MEMORY, schema)
    disks = _all(control, statements.PROCTAB_DISKS, schema)
    return {
        "cpu_s": {name: ticks / _TICKS_PER_S for name, ticks in cpu.items()},
        "memory_total_bytes": memory["total"] * _KIB,
        "memory_used_bytes": memory["used"] * _KIB,
        "disk": _disk(disks, _SECTOR_BYTES),
    }


def _kcache(control: Control, schema: str) -> Machine:
    return {"statements": _one(control, statements.KCACHE, schema)}


_READERS: dict[str, Callable[[Control, str], Machine]] = {
    "system_stats": _system_stats,
    "pg_proctab": _proctab,
    "pg_stat_kcache": _kcache,
}


def _disk(rows: Iterable[Row], unit_bytes: int) -> Machine | None:
    whole = [row for row in rows if not _NOT_DISKS.fullmatch(row["device"].strip())]
    if not whole:
        return None
    return {
        "read_ops": sum(row["reads"] for row in whole),
        "write_ops": sum(row["writes"] for row in whole),
        "read_bytes": sum(row["read"] for row in whole) * unit_bytes,
        "write_bytes": sum(row["written"] for row in whole) * unit_bytes,
    }


def _one(control: Control, statement: str, schema: str) -> Row:
    return _all(control, statement, schema)[0]


def _all(control: Control, statement: str, schema: str) -> list[Row]:
    return control.execute(statement.format(schema=schema)).fetchall()
