"""sysbench's command line: what it asks for, its grammar and its complaints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from loadstone.personalities.sysbench.complaint import PROGRAM, AnswerGivenError, ComplaintError
from loadstone.personalities.sysbench.definitions import BEYOND, GROUPS
from loadstone.personalities.sysbench.settings import Settings, canonical
from loadstone.personalities.sysbench.texts import help_text, version_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from loadstone.personalities.sysbench.definitions import Option

    Write = Callable[[str], object]

_TEST = "--test="
_TEST_IS_OLD = (
    "WARNING: the --test option is deprecated. You can pass a script name or path on the command line "
    "without any options.\n"
)
_OURS = {canonical(option.name) for option in BEYOND.options}


@dataclass(slots=True)
class CommandLine:
    """The arguments, understood as far as they can be before the script is known."""

    arguments: tuple[str, ...]
    settings: Settings
    script: str | None = None
    command: str | None = None
    later: list[str] = field(default_factory=list)
    """Options that only the script can know."""
    ours: dict[str, str] = field(default_factory=dict)
    """What was given for options of ours, which a script may define otherwise."""


def parse(arguments: Sequence[str], err: Write) -> CommandLine:
    """Understand the arguments; raises ComplaintError, or AnswerGivenError when a text was requested."""
    settings = Settings(err)
    for group in GROUPS:
        settings.define(group.options)
    line = CommandLine(tuple(arguments), settings)
    for argument in arguments:
        _take(line, argument, err)
    if settings.flag("help"):
        raise AnswerGivenError(help_text())
    if settings.flag("version"):
        raise AnswerGivenError(version_text())
    return line


def _take(line: CommandLine, argument: str, err: Write) -> None:
    if not argument.startswith("--"):
        _take_word(line, argument)
    elif argument.startswith(_TEST):
        err(_TEST_IS_OLD)
        line.settings.assign("test", argument[len(_TEST) :], "string")
        line.script = line.settings.string("test")
    elif not _assigned(line.settings, argument):
        line.later.append(argument)
    else:
        name = canonical(argument[2:].partition("=")[0])
        if name in _OURS:
            line.ours[name] = argument


def _take_word(line: CommandLine, word: str) -> None:
    if line.script is None:
        line.script = word
    elif line.command is None:
        line.command = word
    else:
        raise ComplaintError(f"Unrecognized command line argument: {word}")


def _assigned(settings: Settings, argument: str) -> bool:
    name, equals, text = argument[2:].partition("=")
    if name not in settings:
        return False
    return settings.assign(name, text if equals else None, settings.kind(name))


def finish(line: CommandLine, options: Sequence[Option], *, is_legacy: bool) -> None:
    """Understand the rest, once the script has said what its options are; raises ComplaintError.

    A legacy script has declared none: whatever is unknown is its own.
    """
    settings = line.settings
    settings.define(options)
    again = [line.ours.pop(name) for name in _names(options) if name in line.ours]
    for argument in (*again, *line.later):
        name, equals, text = argument[2:].partition("=")
        if is_legacy and name not in settings:
            settings.assign(name, text if equals else None, "string")
        elif not _assigned(settings, argument):
            raise ComplaintError(f"invalid option: {argument}", _near(name, settings, line.script))


def _names(options: Iterable[Option]) -> list[str]:
    return [canonical(option.name) for option in options]


def _near(name: str, settings: Settings, script: str | None) -> str:
    """Return a hint where an option has a similar name, and nothing else: tests compare these messages."""
    if name in settings:
        return ""
    import difflib  # noqa: PLC0415 - only for the hint

    close = difflib.get_close_matches(canonical(name), [setting.name for setting in settings], 1, 0.8)
    if not close:
        return ""
    option = close[0].replace("_", "-")
    return f"Perhaps --{option} is meant; '{PROGRAM} {script} help' lists the script's options."
