"""Where a command keeps what it records: the folder of --out, or one that is gone at its end."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.results.json_files import try_to_write
from loadstone.temporary import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.personalities.tsbs.flags import Values


def refuse_unwritable(values: Values, *flags: str) -> None:
    """Refuse files that could not be written once all is done; nothing in them is changed by the try.

    Raises LoadstoneError that names the flag.
    """
    for flag in filter(values.text, flags):
        path = Path(values.text(flag))
        try:
            try_to_write(path)
        except OSError as error:
            raise LoadstoneError(
                f"{path} cannot be written: {error.strerror}", f"Choose another file with --{flag}."
            ) from error


@contextmanager
def records_folder(wanted: str) -> Iterator[Path]:
    """Make the folder that `--out` names, empty or new, or a temporary one where it names none."""
    if not wanted:
        with temporary_folder("loadstone-tsbs-") as temporary:
            yield temporary
        return
    folder = Path(wanted)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise LoadstoneError(f"the folder {folder} is not empty", "Choose a new one with --out.")
        try_to_write(folder / ".probe")
    except OSError as error:
        raise LoadstoneError(
            f"the folder {folder} cannot be written: {error.strerror}", "Choose another one with --out."
        ) from error
    yield folder
