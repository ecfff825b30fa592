"""From the command line to what is to be done: the script loaded, its options read, its command begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone import _core
from loadstone.errors import ExitCode
from loadstone.personalities.sysbench.complaint import ComplaintError, EndedError
from loadstone.personalities.sysbench.definitions import lines
from loadstone.personalities.sysbench.limits import limits_of
from loadstone.personalities.sysbench.log import Log, explains
from loadstone.personalities.sysbench.options import finish
from loadstone.personalities.sysbench.running import Job, call, run
from loadstone.personalities.sysbench.scripts import STDIN, FoundScript, Script, find, load, read_stdin
from loadstone.personalities.sysbench.texts import header

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.personalities.sysbench.options import CommandLine
    from loadstone.signals import Signals

    Write = Callable[[str], object]

_BUILT_IN_COMMANDS = ("prepare", "cleanup")


def perform_command(line: CommandLine, signals: Signals, out: Write, err: Write) -> int:
    """Load the script and do what the command line says; raises LoadstoneError, EndedError."""
    limits = limits_of(line.settings, out)
    log = Log(out, limits.verbosity)
    log.text(header())
    named = line.script not in (None, "-")
    found = find(line.script or "") if named else read_stdin()
    script = _loaded(found, line, log, err)
    job = Job(line, script, limits, log, signals, err)
    if line.command is None or not named:
        return _load_only(job)
    if not _runs(script, line.command):
        log.plain(script.output)
    finish(line, script.options, is_legacy=not script.declares)
    return _dispatch(job, line.command)


def _load_only(job: Job) -> int:
    """Do what the script does when it is loaded, and nothing else."""
    if job.script.needs_database:
        return call(job, "", is_parallel=False)
    job.log.plain(job.script.output)
    return ExitCode.OK


def _runs(script: Script, command: str) -> bool:
    """Whether the command has the script loaded again, by a client, which then prints what it prints."""
    return command == "run" or command in script.commands or command in script.functions


def _loaded(found: FoundScript, line: CommandLine, log: Log, err: Write) -> Script:
    command = None if found.script == STDIN else line.command
    try:
        return load(found, line, command)
    except _core.ScriptError as error:
        message, file, number, _, traceback, output = error.args
        log.plain(output)
        log.text(f"{file}:{number}: {message}" if number else str(message), "fatal")
        if traceback and explains(line.settings.integer("verbosity")):
            err(f"{traceback}\n")
        raise EndedError(ExitCode.BAD_INPUT) from error


def _dispatch(job: Job, command: str) -> int:
    script = job.script
    if command in script.commands:
        return call(job, command, is_parallel=script.commands[command])
    if command == "help":
        return _help(job)
    if command in _BUILT_IN_COMMANDS:
        if command not in script.functions:
            raise _not_implemented(script, command)
        return call(job, command, is_parallel=False)
    if command == "run":
        return run(job)
    raise ComplaintError(f"Unknown command: {command}")


def _help(job: Job) -> int:
    script = job.script
    if "help" in script.functions:
        return call(job, "help", is_parallel=False)
    if not script.declares:
        raise _not_implemented(script, "help")
    job.log.plain(f"{script.found.name} options:\n{lines(script.options)}")
    return ExitCode.OK


def _not_implemented(script: Script, command: str) -> ComplaintError:
    return ComplaintError(f"'{script.found.name}' test does not implement the '{command}' command.")
