"""The place in the cache where a download appears: whole, by renaming, under a lock between processes."""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.fetch.errors import cache_error

if TYPE_CHECKING:
    from collections.abc import Iterator

_POLL_S = 0.1


class Place:
    """One destination, with the room beside it that a download needs."""

    def __init__(self, jar: str, destination: Path) -> None:
        """`jar` is the file's name, for errors. The parent folder is made if it is missing."""
        self.jar = jar
        self.destination = destination
        with self.errors():
            destination.parent.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Wait until no other process fetches the same file. The system drops the lock with our process."""
        path = self.destination.with_name(f".{self.destination.name}.lock")
        with self.errors():
            file = path.open("ab")
        with file:
            while not self._lock(file.fileno()):
                time.sleep(_POLL_S)
            yield

    @contextlib.contextmanager
    def room(self) -> Iterator[Path]:
        """Give an empty folder on the destination's file system, removed at the end. Needs the lock."""
        self._remove_leftovers()
        with self.errors():
            room = tempfile.mkdtemp(prefix=self._prefix, dir=self.destination.parent)
        try:
            yield Path(room)
        finally:
            shutil.rmtree(room, ignore_errors=True)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of the file system into errors for the user."""
        try:
            yield
        except OSError as error:
            place = Path(error.filename) if isinstance(error.filename, str) else self.destination.parent
            raise cache_error(self.jar, place, error) from error

    @property
    def _prefix(self) -> str:
        return f".{self.destination.name}.partial-"

    def _lock(self, descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise cache_error(self.jar, self.destination.parent, error) from error
        return True

    def _remove_leftovers(self) -> None:
        """Remove what a killed process left. We hold the lock, so nobody works in there."""
        for entry in self.destination.parent.iterdir():
            if entry.name.startswith(self._prefix):
                shutil.rmtree(entry, ignore_errors=True)


def readable_by_all(path: Path) -> None:
    """Let every user read a file, or a folder and all that is in it.

    A server runs as another user when we are root, and our umask may be strict.
    """
    if path.is_symlink():
        return
    if path.is_dir():
        path.chmod(path.stat().st_mode | 0o755)
        for entry in path.iterdir():
            readable_by_all(entry)
    elif path.is_file():
        path.chmod(path.stat().st_mode | 0o444)
