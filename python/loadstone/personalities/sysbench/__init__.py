"""`loadstone sysbench`: sysbench's options, scripts and output, on Loadstone's driver.

docs/sysbench.md says where figures and behaviour differ from sysbench's, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.personalities.sysbench.complaint import (
    AnswerGivenError,
    ComplaintError,
    EndedError,
)
from loadstone.personalities.sysbench.options import parse
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[str], object]

__all__ = ["main"]


def main(arguments: Sequence[str], out: Write, err: Write, answer: Write | None = None) -> int:
    """Do what sysbench would with these arguments; log and results go to `out`, complaints to `err`.

    `answer` takes texts that are always the same, and have no secrets.
    Returns the exit status: 0, 1 (wrong use, or what was asked has failed), 130 or 143 (a signal).
    """
    try:
        line = parse(arguments, err)
        with Signals() as signals:
            from loadstone.personalities.sysbench.commands import perform_command  # noqa: PLC0415 - not for --help

            return perform_command(line, signals, out, err)
    except AnswerGivenError as given:
        (answer or out)(given.out)
        return ExitCode.OK
    except EndedError as ended:
        return ended.code
    except LoadstoneError as error:
        complaint = (
            error
            if isinstance(error, ComplaintError)
            else ComplaintError(error.message, error.hint, fatal=True)
        )
        out(complaint.out())
        err(complaint.err())
        return ExitCode.BAD_INPUT
    except InterruptedRun as stop:
        return stop.exit_code
