"""The command group: a verb's module is imported when the verb is given, and every ending has its status."""

from __future__ import annotations

import io
import logging
import math
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from loadstone import __version__
from loadstone.errors import ExitCode, LoadstoneError, explained
from loadstone.results.redact import learn_command, redact, remember_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    "ab",
    "advise",
    "calibrate",
    "compare",
    "crash",
    "engines",
    "export",
    "generate",
    "history",
    "pgbench",
    "plan",
    "report",
    "run",
    "scenarios",
    "slo",
    "sysbench",
    "tsbs",
)
"""Each is a module of this package with a `command`."""


class Group(click.Group):
    """Turns every way of ending into the exit status that docs/exit-codes.md gives it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the module of a verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"loadstone.cli.{cmd_name}").command
        return command

    def main(self, *args: Any, **given: Any) -> Any:
        """Run the command line and exit."""
        given["standalone_mode"] = False
        learn_command(given.get("args") or sys.argv[1:])
        remember_environment(os.environ)
        logging.getLogger("loadstone").handlers[:] = [Waits()]
        try:
            _refuse_bytes(sys.argv[1:])
            code = super().main(*args, **given)
            sys.stdout.flush()
        except Exception as error:  # noqa: BLE001 - what is unknown is a bug of ours, shown whole
            code = _ended_by(error)
        sys.exit(int(code or ExitCode.OK))


def _refuse_bytes(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8: no server, no JSON document and no report can hold them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise LoadstoneError(
                f"the argument '{argument}' is not UTF-8 text", "Use another name, or rename the file."
            ) from None


class Waits(logging.Handler):
    """Shows what is logged: that we wait for a server, and for what."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one line."""
        from loadstone.cli import terminal

        terminal.say(f"loadstone: {record.getMessage()}")


def _ended_by(error: Exception) -> ExitCode:
    """Show what ended the command, and return the exit status."""
    if isinstance(error, click.ClickException):
        shown = io.StringIO()
        error.show(shown)
        click.echo(redact(shown.getvalue()), nl=False, err=True)
        return ExitCode.BAD_INPUT
    from loadstone.cli import terminal

    known = explained(error)
    if known is not None:
        terminal.trouble(known)
        return known.exit_code
    if isinstance(error, click.Abort):
        terminal.say("stopped by SIGINT")
        return ExitCode.INTERRUPTED
    terminal.bug()
    return ExitCode.FAILED


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.option(
    "--verbose", is_flag=True, help="With --version: also the versions of all libraries and crates."
)
@click.pass_context
def loadstone(context: click.Context, *, version: bool, verbose: bool) -> None:
    """Measure how much load a database can handle."""
    if version:
        click.echo(_version(verbose=verbose))
        context.exit()
    if verbose:
        raise click.UsageError("--verbose goes with --version")
    if context.invoked_subcommand is None:
        raise click.UsageError("Missing command.")


def _version(*, verbose: bool) -> str:
    if not verbose:
        return f"loadstone {__version__}"
    from loadstone.host.environment import verbose_version

    return verbose_version()


class Foreign(click.Command):
    """A command whose arguments are another program's: they are handed on as they are, `--` and all."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Understand nothing."""
        ctx.params["arguments"] = tuple(args)
        return []


class Seconds(click.FloatRange):
    """A range of seconds; `nan`, which is neither below nor above anything, is not in it."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a number."""
        seconds = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return seconds


def pairs(_: click.Context, option: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Read the values of an option that is given as NAME=VALUE, several times."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            message = f"{text!r} is not name=value"
            raise click.BadParameter(message, param=option)
        found[name] = value
    return found
