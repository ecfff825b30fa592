"""Standard streams that are always there: results that cannot be written are an error, notices never are."""

from __future__ import annotations

import io
import os
import sys
from typing import BinaryIO, TextIO, cast

from loadstone.errors import ResultsLostError
from loadstone.results.redact import redact_known
from loadstone.visible import visible


def prepare() -> None:
    """Open what was closed when we were started, and guard what we write to.

    A closed stream's number would be given to the next file that is opened, and whatever is printed would go
    into that file. A closed standard output is opened for reading: whoever writes results to it is refused.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        _open_if_closed(number, mode)
    if sys.stdin is None:
        sys.stdin = cast("TextIO", open(0, closefd=False))  # noqa: SIM115 - for as long as we run
    sys.stdout = Results(1)
    sys.stderr = Notices(2)


class _Guarded(io.TextIOWrapper):
    """Text to a descriptor; the first write that fails leads all that follows to /dev/null."""

    def __init__(self, number: int) -> None:
        self._number = number
        writer = cast("BinaryIO", open(number, "wb", closefd=False))  # noqa: SIM115 - as above
        terminal = os.isatty(number)
        super().__init__(writer, errors="backslashreplace", line_buffering=terminal or number == 2)  # noqa: PLR2004

    def write(self, text: str) -> int:
        """Write text without the secrets that are known."""
        try:
            return super().write(redact_known(text))
        except OSError as error:
            self._failed(error)
            return len(text)

    def flush(self) -> None:
        """Hand on what is kept."""
        try:
            super().flush()
        except OSError as error:
            self._failed(error)

    def _failed(self, _: OSError) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._number)
        os.close(nowhere)


class Results(_Guarded):
    """Standard output."""

    def write(self, text: str) -> int:
        """Write text; a terminal is shown what would act on it, a file gets every character as it is."""
        super().write(visible(text) if self.isatty() else text)
        return len(text)

    def _failed(self, error: OSError) -> None:
        super()._failed(error)
        raise ResultsLostError(
            f"the results could not be written to standard output: {error.strerror}",
            "Write to a disk with free space, or to a program that reads all of it.",
        ) from error


class Notices(_Guarded):
    """Standard error: a terminal that goes away, a full disk or a reader that has gone end no run."""

    def write(self, text: str) -> int:
        """Write text, with characters that would act on a terminal shown as escapes."""
        super().write(visible(text))
        return len(text)

    def draw(self, text: str) -> int:
        """Write text of our own as it is: it may move the cursor."""
        return super().write(text)


def _open_if_closed(number: int, mode: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, mode)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        os.set_inheritable(number, True)  # noqa: FBT003 - it has no name
