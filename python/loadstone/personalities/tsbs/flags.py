"""Flags as TSBS's programs take them: pflag's grammar and complaints, and values from ./config.* as by viper.

A flag on the command line wins over the file, the file over the default.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from loadstone.errors import LoadstoneError
from loadstone.workload.tsbs.dataset import parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Kind = Literal["string", "int", "uint", "float", "bool", "duration"]
Value = str | int | float | bool

_FILES = ("json", "toml", "yaml", "yml", "properties", "props", "prop", "hcl", "dotenv", "env", "ini")
"""What TSBS looks for, in its order; the first that is there is read."""
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False"}
_BITS = 64
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its default is of the flag's kind, a duration's in nanoseconds."""

    name: str
    kind: Kind
    default: Value
    help: str
    shown: str = ""
    """The default as the usage shows it, where it is not the value itself."""


class UsageError(Exception):
    """The command line is not understood: TSBS's programs then say so with their usage, and exit with 2."""

    def __init__(self, message: str, usage: str) -> None:
        """Keep the complaint and the usage apart."""
        super().__init__(message)
        self.message = message
        self.usage = usage


class AnswerGivenError(Exception):
    """A text was asked for instead of the work."""

    def __init__(self, text: str) -> None:
        """Keep the text."""
        super().__init__(text)
        self.text = text


class Values:
    """What each flag is set to, and by whom."""

    def __init__(self, values: Mapping[str, Value], given: frozenset[str], filed: frozenset[str]) -> None:
        """Take all values, and the names of those from the command line and from the file."""
        self._values = dict(values)
        self.given = given
        """Names of the flags on the command line."""
        self.filed = filed
        """Names of the flags that the file sets."""

    @property
    def chosen(self) -> frozenset[str]:
        """Names of the flags that somebody set."""
        return self.given | self.filed

    def raw(self, name: str) -> Value:
        """Return a flag of any kind."""
        return self._values[name]

    def text(self, name: str) -> str:
        """Return a flag of kind string."""
        return str(self._values[name])

    def number(self, name: str) -> int:
        """Return a flag of kind int, uint or duration."""
        return int(self._values[name])

    def real(self, name: str) -> float:
        """Return a flag of kind float."""
        return float(self._values[name])

    def on(self, name: str) -> bool:
        """Return a flag of kind bool."""
        return bool(self._values[name])


def parse(program: str, flags: Sequence[Flag], arguments: Sequence[str], folder: Path = Path()) -> Values:
    """Understand the arguments and the file `config.*` in `folder`.

    Raises UsageError, AnswerGivenError for `--help`, LoadstoneError when the file cannot be read.
    """
    known = {flag.name: flag for flag in flags}
    given = dict(_split(program, flags, known, arguments))
    filed = {name: value for name, value in _from_file(folder, known) if name not in given}
    values = {flag.name: flag.default for flag in flags} | filed | given
    return Values(values, frozenset(given), frozenset(filed))


def usage(program: str, flags: Sequence[Flag]) -> str:
    """Return the list of flags in pflag's form."""
    lines = []
    for flag in sorted(flags, key=lambda flag: flag.name):
        kind = "" if flag.kind == "bool" else f" {flag.kind}"
        lines.append((f"      --{flag.name}{kind}", flag.help + _default(flag)))
    width = max(len(left) for left, _ in lines) + 3
    return "\n".join([f"Usage of {program}:", *(f"{left:<{width}}{right}" for left, right in lines), ""])


def _default(flag: Flag) -> str:
    if flag.shown:
        return f" (default {flag.shown})"
    if flag.default in ("", 0, False):
        return ""
    shown = json.dumps(flag.default) if isinstance(flag.default, str | bool) else str(flag.default)
    return f" (default {shown})"


def _split(
    program: str, flags: Sequence[Flag], known: Mapping[str, Flag], arguments: Sequence[str]
) -> list[tuple[str, Value]]:
    if {"--help", "-h"} & set(arguments):
        raise AnswerGivenError(usage(program, flags))
    found = []
    rest = list(arguments)
    try:
        while rest:
            found.append(_take(known, rest.pop(0), rest))
    except _ComplaintError as complaint:
        raise UsageError(str(complaint), usage(program, flags)) from None
    return found


class _ComplaintError(Exception):
    pass


def _take(known: Mapping[str, Flag], argument: str, rest: list[str]) -> tuple[str, Value]:
    if not argument.startswith("--") or argument == "--":
        raise _ComplaintError(_not_a_flag(argument, rest))
    name, equals, text = argument[2:].partition("=")
    flag = known.get(name)
    if flag is None:
        raise _ComplaintError(f"unknown flag: --{name}")
    if not equals:
        if flag.kind != "bool" and not rest:
            raise _ComplaintError(f"flag needs an argument: --{name}")
        text = "true" if flag.kind == "bool" else rest.pop(0)
    try:
        return name, parse_value(flag.kind, text)
    except ValueError as error:
        raise _ComplaintError(f'invalid argument "{text}" for "--{name}" flag: {error}') from None


def _not_a_flag(argument: str, rest: Sequence[str]) -> str:
    if argument == "--":
        return "nothing may follow --" if rest else "-- has no meaning here"
    if argument.startswith("-") and argument != "-":
        return f"unknown shorthand flag: {argument[1]!r} in {argument}"
    return f"unknown argument: {argument}"


def parse_value(kind: Kind, text: str) -> Value:
    """Return the value that a text means; raises ValueError with Go's words where it has any."""
    return _PARSERS[kind](text)


def _integer(function: str, low: int, high: int) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        complaint = f'strconv.{function}: parsing "{text}": '
        sign = r"[+-]?" if low else ""
        if not re.fullmatch(sign + r"(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)", text):
            raise ValueError(complaint + "invalid syntax")
        digits = re.sub(r"^([+-]?)0(?=[0-7_]+$)", r"\g<1>0o", text)
        value = int(digits[:_LONGEST], 0)  # longer ones are out of range as well
        if not low <= value <= high:
            raise ValueError(complaint + "value out of range")
        return value

    return parse_integer


def _real(text: str) -> float:
    complaint = f'strconv.ParseFloat: parsing "{text}": '
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{complaint}invalid syntax") from None
    if not math.isfinite(value):
        raise ValueError(f"{complaint}value out of range")
    return value


def _bool(text: str) -> bool:
    if text in _TRUE | _FALSE:
        return text in _TRUE
    raise ValueError(f'strconv.ParseBool: parsing "{text}": invalid syntax')


def _duration(text: str) -> int:
    try:
        return parse_duration(text)
    except LoadstoneError as error:
        raise ValueError(f"{error.message}. {error.hint}") from None


_PARSERS: dict[Kind, Callable[[str], Value]] = {
    "string": str,
    "int": _integer("ParseInt", -(2 ** (_BITS - 1)), 2 ** (_BITS - 1) - 1),
    "uint": _integer("ParseUint", 0, 2**_BITS - 1),
    "float": _real,
    "bool": _bool,
    "duration": _duration,
}


def _from_file(folder: Path, known: Mapping[str, Flag]) -> list[tuple[str, Value]]:
    path = next((p for end in _FILES if (p := folder / f"config.{end}").is_file()), None)
    if path is None:
        return []
    found = []
    # Keys of no flag are other programs': they share the file.
    for key, value in _content(path).items():
        flag = known.get(str(key).lower())
        if flag is None:
            continue
        try:
            found.append((flag.name, _filed_value(flag.kind, value)))
        except ValueError as error:
            raise LoadstoneError(
                f"{path.name} sets {key} to {value!r}: {error}", "Correct the file, or set the flag itself."
            ) from None
    return found


def _filed_value(kind: Kind, value: Any) -> Value:
    if kind == "duration" and isinstance(value, int) and not isinstance(value, bool):
        return value  # nanoseconds, as in Go
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, str | int | float):
        return parse_value(kind, str(value))
    if value is None:
        raise ValueError("there is no value")
    isoformat = getattr(value, "isoformat", None)  # YAML and TOML know times
    if isoformat is None or kind != "string":
        raise ValueError(f"it is not of type {kind}")
    return str(isoformat()).replace("+00:00", "Z")


def _content(path: Path) -> dict[str, Any]:
    kind = path.suffix[1:]
    hint = (
        "Correct it, or change to a folder without it: TSBS's programs read it silently, and so does "
        "Loadstone."
    )
    try:
        text = path.read_text(encoding="utf-8")
        if kind == "json":
            content = json.loads(text)
        elif kind == "toml":
            content = tomllib.loads(text)
        elif kind in {"yaml", "yml"}:
            content = yaml.safe_load(text)
        else:
            raise LoadstoneError(
                f"Loadstone cannot read the format of {path.name} in this folder",
                "TSBS would read it: set its values as flags, or as config.yaml, and move it away.",
            )
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise LoadstoneError(f"{path.name} in this folder cannot be read: {error}", hint) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise LoadstoneError(f"{path.name} in this folder has no names with values", hint)
    return content
