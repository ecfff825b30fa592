"""Which private servers there are, so that the next start removes what a killed Loadstone left.

One small JSON file a server. A process is known by its number and start time, a folder by a mark inside:
nothing else is ever touched.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any

import psutil

from loadstone.power_disk.mounts import reap as reap_mounts
from loadstone.private_server.data_folder import remove_tablespaces
from loadstone.private_server.memory_limit import remove_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    owners: tuple[str, ...] = ()
    """All processes that it has belonged to, as `owner_words` writes them."""
    groups: tuple[str, ...] = ()
    """Folders of its control groups."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What was set in its data folder, by us and by the user."""
    memory_bytes: int | None = None
    """The limit of its control group."""
    ending: bool = False
    """Its removal has begun: its data may be incomplete."""


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
        words = owner_words(owner.pid, f"{boot}/{owner.start_ticks}")
        record = Record(
            server_id,
            owner,
            names,
            str(data_directory),
            host=host,
            boot=boot,
            namespace=namespace,
            owners=(words,),
        )
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

    def claim(self, record: Record) -> Record | None:
        """Make an orphan ours; None when it is none, or somebody else was faster."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            now = next((found for found in self.records() if found.id == record.id), None)
            if now is None or not _is_orphan(now):
                return None
            owner = Process.of(os.getpid()) or Process(os.getpid(), 0)
            _, boot, namespace = _here()
            claimed = replace(
                now,
                owner=owner,
                server=now.server if now.boot == boot else None,
                boot=boot,
                namespace=namespace,
                owners=(*now.owners, owner_words(owner.pid, f"{boot}/{owner.start_ticks}")),
            )
            self.write(claimed)
            return claimed

    def remove(self, record: Record) -> None:
        """Remove the server's folders, where they bear its mark, and control groups, then the record.

        Where that is cut short, the record stays, and the next start removes the rest.
        """
        with contextlib.suppress(OSError):  # a full disk is a reason to remove them all the more
            self.write(replace(record, ending=True))
        for name in record.folders:
            folder = Path(name)
            if mark_of(folder) == record.id:
                if folder in Path(record.data_directory).parents:
                    remove_tablespaces(Path(record.data_directory))
                _remove_marked(folder)
        without_groups = remove_groups(record.groups, record.id)
        if without_groups and not any(mark_of(Path(name)) == record.id for name in record.folders):
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
        said = reap_mounts()  # a folder on a dead one cannot be removed
        for record in self.records():
            if record.keep and not any(Path(name).exists() for name in record.folders):
                self.remove(record)
            claimed = self.claim(record) if _is_orphan(record) else None
            if claimed is None:
                continue
            stopped = stop_server(claimed)
            self.remove(claimed)
            left = "a running server and its data" if stopped else "the data of a private server"
            said.append(f"removed {left}, which an earlier run left in {record.data_directory}")
        return said

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep others from claiming the same."""
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _path(self, server_id: str) -> Path:
        return self.folder / f"{server_id}.json"


def owner_words(pid: int, identity: str) -> str:
    """Name a process as run.json does: `pid` and `process`, which is boot and start time."""
    return f"{pid} {identity}"


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
        "owners": tuple(document.get("owners", ())),
        "groups": tuple(document.get("groups", ())),
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


def stop_server(record: Record, patience_s: float = 0.0) -> bool:
    """End the record's server if it still runs, waiting first whether it ends by itself.

    There is no need to be gentle: its data goes too, or recovers as after a crash.
    """
    process = record.server or _postmaster(Path(record.data_directory))
    if process is not None and patience_s:
        _wait_for_end([process], patience_s)
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


def _remove_marked(folder: Path) -> None:
    """Remove a folder and its contents, the mark last: by it, what an interrupted removal leaves is ours.

    What cannot be removed, such as a power disk that is about to end, keeps the mark, too.
    """
    for entry in _contents(folder):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                entry.unlink()
    if not _contents(folder):
        shutil.rmtree(folder, ignore_errors=True)


def _contents(folder: Path) -> list[Path]:
    """Return what a folder contains beside its mark."""
    try:
        return [entry for entry in folder.iterdir() if entry.name != MARK_FILE]
    except OSError:
        return []


def mark_of(folder: Path) -> str | None:
    """Return whose a folder is, by the mark inside; None without one."""
    try:
        return (folder / MARK_FILE).read_text()
    except OSError:
        return None
