"""Where a private server's data come from and go to: copies of a template, for trials that begin alike."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError, RunFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DISK_FULL = "No space left on device"


@dataclass(frozen=True, slots=True)
class Provision:
    """What a private server starts with in place of an empty cluster, and what it leaves."""

    copy_of: Path | None = None
    """The data directory of a server that was stopped in order; a copy of it is used."""
    save_to: Path | None = None
    """Where the data directory goes when the server has stopped in order; must not exist."""
    port: int = 0
    """The port wanted; another one if it is taken, or if it is 0."""
    sized: Mapping[str, str] = field(default_factory=dict)
    """Settings sized to the machine, as another server got them; empty: sized now."""


EMPTY = Provision()
"""A new cluster, which goes with its server."""


def copy_data(source: Path, destination: Path) -> None:
    """Copy a data directory, sharing its blocks where the file system can, and sync the copy to disk.

    Unsynced pages would be written back during the measurement. Raises RunFailedError on a full disk,
    LoadstoneError for all else.
    """
    copied = _run("cp", "-a", "--reflink=auto", "--", str(source), str(destination))
    if copied.returncode:
        said = copied.stdout.strip().splitlines()[-1:] or [f"cp ended with {copied.returncode}"]
        if _DISK_FULL in copied.stdout:
            free = shutil.disk_usage(destination.parent).free
            raise RunFailedError(
                f"the data cannot be copied: the disk is full ({free:,} bytes are free at "
                f"'{destination.parent}', the data have {size_of(source):,})",
                "Free some space, or use a folder with more space with --storage.",
            )
        raise LoadstoneError(f"the data cannot be copied: {said[0]}", "Use another folder with --storage.")
    _run("sync", "--file-system", "--", str(destination))


def move_data(source: Path, destination: Path) -> None:
    """Move a data directory to another place, on another file system if need be."""
    try:
        source.rename(destination)
    except OSError:
        copy_data(source, destination)


def size_of(folder: Path) -> int:
    """Return the allocated bytes of all files in a folder."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_blocks * 512
    return total


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
        env={"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"},
    )  # fmt: skip
