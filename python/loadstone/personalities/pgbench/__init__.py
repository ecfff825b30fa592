"""`loadstone pgbench`: pgbench's options, scripts and results, on Loadstone's driver.

docs/pgbench.md says where figures and behaviour differ from pgbench's, and why.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.personalities.pgbench.complaint import PROGRAM, AnswerGivenError, ComplaintError
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[str], object]

__all__ = ["main"]


def main(arguments: Sequence[str], out: Write, err: Write) -> int:
    """Do what pgbench would with these arguments; results go to `out`, all else to `err`.

    Returns the exit status: 0, 1 (nothing was run), 2 (the run was aborted), 130 or 143 (a signal).
    """
    from loadstone.personalities.pgbench.options import parse  # noqa: PLC0415 - sysbench has parts of ours

    try:
        options = parse(arguments, os.environ)
        if options.seed_given:
            err(f"{PROGRAM}: setting random seed to {options.seed}\n")
        with Signals() as signals:
            if options.initialize:
                from loadstone.personalities.pgbench.initialization.steps import initialize  # noqa: PLC0415

                return initialize(options, err)
            from loadstone.personalities.pgbench.run import run  # noqa: PLC0415 - not for --help

            return run(options, signals, out, err)
    except AnswerGivenError as answer:
        out(answer.out)
        err(answer.err)
        return ExitCode.OK
    except ComplaintError as complaint:
        err(complaint.text())
        return ExitCode.BAD_INPUT
    except LoadstoneError as error:
        err(ComplaintError(error.message, error.hint).text())
        return error.exit_code
    except InterruptedRun as stop:
        return stop.exit_code
