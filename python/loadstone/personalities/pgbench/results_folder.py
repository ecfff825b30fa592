"""Where a run's files go: nowhere, the folder of `--out`, or the run folder of `--report`."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.results.json_files import try_to_write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.errors import ExitCode
    from loadstone.model import Drive


@dataclass(slots=True)
class Measurement:
    """The folder of the driver's files if they are wanted, and what the driver has measured."""

    path: Path | None
    account: dict[str, Any] | None = None
    """drive.json; None until the drive is over."""


class ResultsFolder(Protocol):
    """The place of a run's files."""

    def measuring(self, drive: Drive) -> AbstractContextManager[Measurement]:
        """Prepare for the drive, and put away what it leaves; `account` is set inside."""

    def end(self, code: ExitCode) -> ExitCode:
        """Finish once the results are printed; return the exit status, changed if that failed."""


class DriverFolder:
    """The driver's files and nothing else."""

    def __init__(self, path: Path | None) -> None:
        """Use a folder that is there, or none: a run of days has no more to keep than one of seconds."""
        self._path = path

    @contextmanager
    def measuring(self, drive: Drive) -> Iterator[Measurement]:
        """Let the driver write its files here."""
        del drive
        yield Measurement(self._path)

    def end(self, code: ExitCode) -> ExitCode:
        """Do nothing more."""
        return code


@contextmanager
def driver_folder(wanted: Path | None) -> Iterator[DriverFolder]:
    """Open the folder of `--out`, if there is one; raises ComplaintError."""
    if wanted is None:
        yield DriverFolder(None)
        return
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        if any(wanted.iterdir()):
            raise ComplaintError(f'the folder "{wanted}" is not empty', "Name a new one with --out.")
        try_to_write(wanted / ".probe")
    except OSError as error:
        raise ComplaintError(f'could not write to the folder "{wanted}": {error.strerror}') from error
    yield DriverFolder(wanted)
