"""Where a command keeps what it records: the folder of --out, or one that is gone at its end."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def records_folder(wanted: str) -> Iterator[Path]:
    """Make the folder that `--out` names, empty or new, or a temporary one where it names none."""
    if not wanted:
        with tempfile.TemporaryDirectory(prefix="loadstone-tsbs-") as temporary:
            yield Path(temporary)
        return
    folder = Path(wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise LoadstoneError(f"the folder {folder} is not empty", "Name a new one with --out.")
    except OSError as error:
        raise LoadstoneError(
            f"the folder {folder} cannot be made: {error.strerror}", "Name another with --out."
        ) from error
    yield folder
