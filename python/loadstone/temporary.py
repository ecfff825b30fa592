"""Folders that exist for as long as they are used, also where a signal ends their making or removal."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.signals import completed

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRIVATE = 0o700
_NAME_BYTES = 4


@contextmanager
def temporary_folder(prefix: str, parent: str | Path | None = None) -> Iterator[Path]:
    """Make a folder for this user alone, and remove it with all that it contains; yields its path.

    Signals raise anywhere (`loadstone.signals`). `tempfile.TemporaryDirectory` leaves the folder where
    one comes just after it was made, or while it is being removed. Raises OSError.
    """
    root = Path(parent or tempfile.gettempdir())
    path = _free(root, prefix)
    ours = True
    try:
        try:
            path.mkdir(_PRIVATE)
        except OSError:
            ours = False
            raise
        yield path
    finally:
        if ours:
            completed(lambda: shutil.rmtree(path, ignore_errors=True))


def _free(root: Path, prefix: str) -> Path:
    """Return a path where nothing is: a name that nobody can guess, so nobody takes it before us."""
    while (path := root / f"{prefix}{os.urandom(_NAME_BYTES).hex()}").exists():
        pass
    return path
