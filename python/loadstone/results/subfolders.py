"""The folders below a run's: what they may be called, made and listed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.results.json_files import write_error
from loadstone.results.manifest import folders

if TYPE_CHECKING:
    from pathlib import Path

NAME_LENGTH = 120
"""Characters that a folder's name may have."""
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._+-]{{0,{NAME_LENGTH - 1}}}")


def listed(parent: Path) -> list[Path]:
    """Return the folders below one of ours. Raises LoadstoneError for a name that no file takes."""
    found = folders(parent)
    for path in found:
        if not path.name.isprintable():
            raise LoadstoneError(
                f"{parent} contains a folder that is not of this run: {path.name!r}",
                "Remove it, or use an untouched copy of the folder.",
            )
    return found


def subfolder(parent: Path, name: str) -> Path:
    """Make the folder below one of ours; returns its path. Raises LoadstoneError for a name not allowed."""
    if not _NAME.fullmatch(name):
        raise LoadstoneError(
            f"'{name}' cannot be the name of a folder of the run",
            "Use only letters, digits, dots, dashes and underscores, beginning with a letter or a digit.",
        )
    path = parent / name
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error
    return path
