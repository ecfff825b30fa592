"""Parameters of a scenario: their types, their ranges, and how a user's text is read."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loadstone.errors import LoadstoneError
from loadstone.scenario.schema import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loadstone.model import Value

ParameterType = Literal["enum", "integer", "number", "string", "boolean", "path"]

_BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}
_LARGER = {"MB": {"GB": 1 << 10, "TB": 1 << 20}}
"""As settings of PostgreSQL are written."""
_INTEGER_LIMIT = 2**63
_LONGEST_SHOWN = 80
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "path": "a path",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One thing that a user of a scenario may turn."""

    name: str
    type: ParameterType
    default: Value
    values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    help: str = ""
    unit: str = ""

    def parse(self, text: str) -> Value:
        """Read a user's text as this parameter's type, unit allowed; LoadstoneError when it does not fit."""
        plain, times = text.strip(), 1
        if self.unit and self.type in ("integer", "number"):
            plain, times = _without_unit(plain, self.unit)
        try:
            value = self._convert(plain)
            value = value * times if times > 1 and isinstance(value, (int, float)) else value
        except (ValueError, KeyError):
            raise self._refusal(text) from None
        return self.check(value)

    def check(self, value: object) -> Value:
        """Return a value that this parameter may have (a whole `number` becomes a float), or refuse it."""
        if self.type == "number" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not self._has_type(value) or not self._in_range(value):
            raise self._refusal(value)
        return value  # type: ignore[return-value]  # _has_type has seen to it

    def allowed(self) -> str:
        """Say in words what values there are."""
        if self.type == "enum":
            return "one of " + ", ".join(self.values)
        words = _WORDS[self.type]
        if self.minimum is not None:
            words += f" from {self.minimum:g}"
        if self.maximum is not None:
            words += f" up to {self.maximum:g}"
        return words + (f" ({self.unit})" if self.unit else "")

    def _convert(self, text: str) -> Value:
        if self.type == "boolean":
            return _BOOLEANS[text.lower()]
        if self.type == "integer":
            return int(text)
        return float(text) if self.type == "number" else text

    def _has_type(self, value: object) -> bool:
        if self.type == "boolean":
            return isinstance(value, bool)
        if self.type == "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        if self.type == "number":
            return isinstance(value, float)
        return isinstance(value, str)

    def _in_range(self, value: object) -> bool:
        if self.type == "enum":
            return value in self.values
        if isinstance(value, str):
            return "\0" not in value
        if not isinstance(value, (int, float)):
            return True
        # Beyond 64 bits neither the server nor plan.json can hold the number.
        limit = _INTEGER_LIMIT if self.type == "integer" else math.inf
        low = -limit if self.minimum is None else self.minimum
        high = limit if self.maximum is None else self.maximum
        return low <= value <= high and -limit < value < limit

    def _refusal(self, value: object) -> LoadstoneError:
        hint = f"It is {self.allowed()}{': ' + self.help if self.help else ''}".rstrip(".") + "."
        guess = nearest(str(value), self.values)
        shown = repr(value)
        shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
        return LoadstoneError(f"the parameter '{self.name}' cannot be {shown}", f"{guess}{hint}")


def _without_unit(text: str, unit: str) -> tuple[str, int]:
    """Return the number of a text, and how many units its own unit has: 1GB is 1024 of MB."""
    for larger, times in {unit: 1, **_LARGER.get(unit, {})}.items():
        if text.endswith(larger):
            return text.removesuffix(larger).rstrip(), times
    return text, 1


def nearest(name: str, known: Iterable[str]) -> str:
    """`Did you mean '…'? ` for a misspelt name, or nothing."""
    match = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean '{match[0]}'? " if match else ""


def unknown_parameter(name: str, parameters: Iterable[str], where: str) -> Problem:
    """Return what is wrong where a key or a template names a parameter that the scenario does not have."""
    known = list(parameters)
    hint = f"{nearest(name, known)}Parameters: {', '.join(known) or 'none'}."
    return Problem(where, f"there is no parameter '{name}'", hint)
