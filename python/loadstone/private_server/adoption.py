"""The data of a private server whose run was killed: taken over by the run that continues with them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.private_server.builds import cache_root
from loadstone.private_server.data_folder import DataFolder
from loadstone.private_server.memory_limit import remove_groups
from loadstone.private_server.os_user import OsUser, server_account
from loadstone.private_server.registry import Registry, end_processes_in, mark_of, owner_words, stop_server

if TYPE_CHECKING:
    from loadstone.private_server.registry import Record

_CONFIGURED = "# Set by Loadstone"


@dataclass(frozen=True, slots=True)
class Adoption:
    """A killed run's private server or folder, which now belongs to this process: nobody else removes it."""

    record: Record

    @property
    def data_directory(self) -> Path:
        """Where the data lie."""
        return Path(self.record.data_directory)

    @property
    def place(self) -> DataFolder:
        """The server's folders."""
        folders = [Path(name) for name in self.record.folders]
        home = next(folder for folder in folders if folder.name == self.record.id)
        storage = self.data_directory.parent
        socket = next((folder for folder in folders if folder not in (home, storage)), home)
        return DataFolder(home, storage, socket)

    def clear(self, patience_s: float, major: int) -> None:
        """Make sure that no process works on the data, and that a server of this version can.

        A server that still ends, for its Loadstone is gone, is given that long.
        """
        stop_server(self.record, patience_s)
        end_processes_in(self.data_directory)
        remove_groups(self.record.groups, self.record.id)
        version = _text(self.data_directory / "PG_VERSION").strip()
        if version != str(major):
            raise LoadstoneError(
                f"the data in '{self.data_directory}' are of PostgreSQL {version or '(unknown)'}, not "
                f"{major}",
                "Resume with the same targets.",
            )
        if _CONFIGURED not in _text(self.data_directory / "postgresql.conf"):
            raise LoadstoneError(
                f"the data in '{self.data_directory}' were not yet complete when the run was killed",
                "Start a new run.",
            )
        # Its process is gone, and another may have been given the same number.
        (self.data_directory / "postmaster.pid").unlink(missing_ok=True)


def adopt(data_directory: Path, pid: int, process: str) -> Adoption:
    """Take over what the run of this process left; `pid` and `process` are those of its run.json.

    To be called before any private server is opened, for opening one removes what killed runs have left.
    Raises LoadstoneError with why it cannot be had.
    """
    whose = f"the data in {data_directory}"
    for registry in _registries():
        found = [r for r in registry.records() if Path(r.data_directory) == data_directory]
        for record in found:
            if owner_words(pid, process) not in record.owners:
                raise LoadstoneError(f"{whose} belong to another run", "Start a new run.")
            if record.keep:
                raise LoadstoneError(
                    f"{whose} belong to a server that was kept running", "Use it as a --target."
                )
            if record.ending or not data_directory.exists() or not _is_whole(record):
                raise LoadstoneError(
                    f"{whose} are gone, or belong partly to somebody else", "Start a new run."
                )
            claimed = registry.claim(record)
            if claimed is None:
                raise LoadstoneError(
                    f"{whose} are still in use by process {record.owner.pid}", "End that process first."
                )
            return Adoption(claimed)
    raise LoadstoneError(f"{whose} no longer exist", "Start a new run.")


def _registries() -> list[Registry]:
    """Return those of servers and of folders that are our own."""
    own = OsUser(str(os.geteuid()), os.geteuid(), os.getegid(), switched=False)
    folders = {cache_root(account) / "servers" for account in (server_account(), own)}
    return [Registry(folder) for folder in sorted(folders)]


def _is_whole(record: Record) -> bool:
    return all(mark_of(Path(folder)) == record.id for folder in record.folders)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
