"""`loadstone tsbs`: the command lines of the Time Series Benchmark Suite on Loadstone's own machinery.

Each command is a module of this package, found by its name; docs/tsbs.md says where they differ from TSBS's.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.personalities.tsbs.flags import AnswerGivenError, UsageError
from loadstone.signals import InterruptedRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    Write = Callable[[str], object]

__all__ = ["commands", "main"]

PROGRAM = "loadstone tsbs"
_COMMANDS = {
    "generate-data": "generate a data set, in TSBS's formats and others",
    "load": "load a data set into a database",
    "generate-queries": "generate a file of queries",
    "run-queries": "run a file of queries",
}
"""What each command does, in the order of use."""
_USAGE = 2
"""As TSBS's programs exit when a flag is wrong."""


def commands() -> dict[str, str]:
    """Return the commands that are there, each with what it does."""
    here = Path(__file__).parent
    return {name: does for name, does in _COMMANDS.items() if (here / f"{_module(name)}.py").exists()}


def main(arguments: Sequence[str], out: Write, err: Write) -> int:
    """Do what the TSBS program of this name would; results go to `out`, all else to `err`.

    Returns the exit status: those of docs/exit-codes.md, and 2 when a flag is wrong.
    """
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", ())
    if name in {"", "-h", "--help", "help"}:
        (out if name else err)(_help())
        return ExitCode.OK if name else ExitCode.BAD_INPUT
    if name not in commands():
        err(f"{PROGRAM}: there is no command {name!r}\n{_help()}")
        return ExitCode.BAD_INPUT
    return _perform(_load(name), f"{PROGRAM} {name}", rest, out, err)


def _perform(command: ModuleType, program: str, arguments: Sequence[str], out: Write, err: Write) -> int:
    try:
        return int(command.main(arguments, out, err))
    except AnswerGivenError as answer:
        out(answer.text)
        return ExitCode.OK
    except UsageError as error:
        err(f"{error.message}\n{error.usage}")
        return _USAGE
    except LoadstoneError as error:
        err(f"{program}: {error.message}\n" + (f"  {error.hint}\n" if error.hint else ""))
        return error.exit_code
    except InterruptedRun as stop:
        err(f"{program}: {stop}\n")
        return stop.exit_code


def _load(name: str) -> ModuleType:
    return import_module(f"{__name__}.{_module(name)}")


def _module(name: str) -> str:
    return name.replace("-", "_")


def _help() -> str:
    lines = [f"  {name:<18}{does}" for name, does in commands().items()]
    return "\n".join(
        [f"Usage: {PROGRAM} COMMAND [FLAGS]", "", *lines, "", "COMMAND --help lists its flags.", ""]
    )
