"""Which private servers there are, so that the next start removes what a killed Loadstone left.

One small JSON file a server. A process is known by its number and start time, a folder by a mark inside:
nothing else is ever touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import psutil

MARK_FILE = ".loadstone-server"
_STOP_WAIT_S = 5.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Process:
    """A process, beyond doubt: its number and when it began, in clock ticks since the machine's boot."""

    pid: int
    start_ticks: int

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """Return the living process of that number, None when there is none."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        # The name, in parentheses, may hold anything; start time is field 22 (proc(5)).
        state, *fields = stat.rpartition(")")[2].split()
        return None if state in {"Z", "X"} else cls(pid, int(fields[18]))

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return Process.of(self.pid) == self


@dataclass(frozen=True, slots=True)
class Record:
    """One private server: who owns it, what it consists of."""

    id: str
    owner: Process
    folders: tuple[str, ...]
    data_directory: str
    server: Process | None = None
    keep: bool = False
    host: str = ""
    boot: str = ""
    namespace: str = ""


class Registry:
    """The records of one user, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new(self, server_id: str, folders: list[Path], data_directory: Path) -> Record:
        """Mark the folders as ours and record a server that is about to be made in them."""
        for folder in folders:
            (folder / MARK_FILE).write_text(server_id)
        owner = Process.of(os.getpid()) or Process(os.getpid(), 0)
        host, boot, namespace = _here()
        names = tuple(str(folder) for folder in folders)
        record = Record(server_id, owner, names, str(data_directory), None, False, host, boot, namespace)  # noqa: FBT003
        self.write(record)
        return record

    def write(self, record: Record) -> None:
        """Write or replace a record; a reader sees the old one or the new one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        partial = self.folder / f".{record.id}.{os.getpid()}"
        partial.write_text(json.dumps(asdict(record)))
        partial.replace(self._path(record.id))

    def started(self, record: Record, pid: int, *, keep: bool) -> Record:
        """Record the server's process."""
        record = replace(record, server=Process.of(pid), keep=keep)
        self.write(record)
        return record

    def remove(self, record: Record) -> None:
        """Remove the server's folders, where they bear its mark, then the record."""
        for name in record.folders:
            folder = Path(name)
            if _mark_of(folder) == record.id:
                shutil.rmtree(folder, ignore_errors=True)
        if not any(_mark_of(Path(name)) == record.id for name in record.folders):
            self._path(record.id).unlink(missing_ok=True)

    def records(self) -> list[Record]:
        """Return all readable records."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                found.append(_read(json.loads(path.read_text())))
        return found

    def reap(self) -> list[str]:
        """Stop and remove the servers whose owners are gone; returns one line of words for each."""
        said = []
        for record in self.records():
            if record.keep and not any(Path(name).exists() for name in record.folders):
                self.remove(record)
            if not _is_orphan(record):
                continue
            stopped = _stop(record)
            self.remove(record)
            left = "a running server and its data" if stopped else "the data of a private server"
            said.append(f"removed {left} that an earlier run left in {record.data_directory}")
        return said

    def _path(self, server_id: str) -> Path:
        return self.folder / f"{server_id}.json"


def _here() -> tuple[str, str, str]:
    """Return host, boot and process namespace: within them a process number means one process."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname(), boot, os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - not a path


def _read(document: dict[str, Any]) -> Record:
    server = document["server"]
    document |= {
        "owner": Process(**document["owner"]),
        "server": Process(**server) if server else None,
        "folders": tuple(document["folders"]),
    }
    return Record(**document)


def _is_orphan(record: Record) -> bool:
    host, boot, namespace = _here()
    if record.host != host or record.keep:
        # The folder of records may be shared between hosts; a kept server is the user's own.
        return False
    if record.boot != boot:
        return True
    return record.namespace == namespace and not record.owner.alive


def _stop(record: Record) -> bool:
    """End the record's server if it still runs; its data goes too, so there is no need to be gentle."""
    if record.boot != _here()[1]:
        return False
    process = record.server or _postmaster(Path(record.data_directory))
    if process is None or not process.alive:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGQUIT)
    _wait_for_end([process], _STOP_WAIT_S)
    end_processes_in(Path(record.data_directory))
    return True


def end_processes_in(data_directory: Path) -> None:
    """Kill the server processes that work in a data directory (all of its own do); wait for their end."""
    family = []
    for found in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if found.cwd() == str(data_directory) and "postgres" in found.name():
                family.append(Process.of(found.pid))
                found.kill()
    _wait_for_end([process for process in family if process], _STOP_WAIT_S)


def _wait_for_end(processes: list[Process], limit_s: float) -> None:
    # Not psutil's waiting: it waits for zombies too, which nobody may ever collect in a container.
    end = monotonic() + limit_s
    while any(process.alive for process in processes) and monotonic() < end:
        Event().wait(_POLL_S)


def _postmaster(data_directory: Path) -> Process | None:
    """Return the server that works in this folder, for when we died before we could record it."""
    try:
        pid = int((data_directory / "postmaster.pid").read_text().split("\n", 1)[0])
        at_home = Path(f"/proc/{pid}/cwd").resolve() == data_directory.resolve()
    except (OSError, ValueError):
        return None
    return Process.of(pid) if at_home else None


def _mark_of(folder: Path) -> str | None:
    try:
        return (folder / MARK_FILE).read_text()
    except OSError:
        return None
