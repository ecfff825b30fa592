"""Options while the command line is read: texts by name, as sysbench keeps them, and their values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.personalities.sysbench.complaint import ComplaintError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from loadstone.personalities.sysbench.definitions import Kind, Option

    Write = Callable[[str], object]

Value = bool | int | float | str | list[str] | None
_INT_MAX = 2**31 - 1
_ON = {"on", "true", "1"}
_OFF = {"off", "false", "0"}
_SIZES = "KMGTPEZY"
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"\s*[+-]?[0-9]+")


def canonical(name: str) -> str:
    """Return the name of an option as scripts write it: dashes and underscores are the same."""
    return name.replace("-", "_")


@dataclass(slots=True)
class Setting:
    """One option, with the texts that were given for it; none where it is off, or empty."""

    name: str
    kind: Kind
    texts: list[str] = field(default_factory=list)


class Settings:
    """All options that are known so far, in the order in which they became known."""

    def __init__(self, err: Write) -> None:
        """Complain about a configuration file that cannot be read by `err`."""
        self._known: dict[str, Setting] = {}
        self._err = err

    def __contains__(self, name: str) -> bool:
        """Return whether an option is known."""
        return canonical(name) in self._known

    def __iter__(self) -> Iterator[Setting]:
        """Return all options."""
        return iter(self._known.values())

    def define(self, options: Iterable[Option]) -> None:
        """Make options known, with their defaults; one that was known before begins anew."""
        for option in options:
            # A flag without a default is on, as one that is given without a value.
            default = option.default if option.kind == "bool" else option.default or ""
            self.assign(option.name, default, option.kind)

    def kind(self, name: str) -> Kind:
        """Return the kind of a known option."""
        return self._known[canonical(name)].kind

    def assign(self, name: str, text: str | None, kind: Kind) -> bool:
        """Set an option, `text` being None where there was no `=`; returns whether the text is possible."""
        setting = self._known.setdefault(canonical(name), Setting(canonical(name), kind))
        setting.kind = kind
        if kind == "bool":
            return _assign_flag(setting, text)
        setting.texts = []
        if not text:
            return True
        if kind == "file":
            self._read(text)
        setting.texts = [part for part in text.split(",") if part] if kind == "list" else [text]
        return True

    def _read(self, path: str) -> None:
        """Read a configuration file: lines NAME=VALUE."""
        try:
            content = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            self._err(f"{path}: {error.strerror}\n")
            return
        except UnicodeDecodeError:
            self._err(f"{path}: the file is not UTF-8 text\n")
            return
        for line in content.splitlines():
            name, equals, text = line.partition("=")
            name = name.strip()
            if equals and name and not name.startswith("#"):
                self.assign(name, text.strip(), self.kind(name) if name in self else "string")

    def copy(self, target: str, source: str) -> None:
        """Set an option to what another is set to."""
        self.assign(target, self.string(source), self.kind(source))

    def flag(self, name: str) -> bool:
        """Return whether an option is on."""
        return bool(self._known[canonical(name)].texts)

    def string(self, name: str) -> str | None:
        """Return the text of an option, None where it is empty."""
        return next(iter(self._known[canonical(name)].texts), None)

    def listed(self, name: str) -> list[str]:
        """Return the parts of an option."""
        return self._known[canonical(name)].texts

    def integer(self, name: str) -> int:
        """Return a whole number, 0 where the text is empty; raises ComplaintError."""
        text = self.string(name)
        if text is None:
            return 0
        value = int(text) if _WHOLE.fullmatch(text) and len(text) < 20 else None  # noqa: PLR2004 - of any use
        if value is None or not -_INT_MAX - 1 <= value <= _INT_MAX:
            raise ComplaintError(f"Invalid value for the '{canonical(name)}' option: '{text}'")
        return value

    def double(self, name: str) -> float:
        """Return the number at the beginning of the text, 0 where there is none."""
        match = _NUMBER.match(self.string(name) or "")
        return float(match.group()) if match else 0.0

    def size(self, name: str) -> int:
        """Return a number of bytes; 0 where the text is none, or its suffix is unknown."""
        return size_of(self.string(name) or "")

    def value(self, name: str) -> Value:
        """Return the value as scripts see it; raises ComplaintError."""
        kind = self._known[canonical(name)].kind
        if kind in ("string", "file"):
            return self.string(name)
        if kind == "bool":
            return self.flag(name)
        if kind == "list":
            return self.listed(name)
        if kind == "double":
            return self.double(name)
        return self.size(name) if kind == "size" else self.integer(name)


def size_of(text: str) -> int:
    """Return the bytes that `64K` and the like mean; an unknown suffix makes it 0, as in sysbench."""
    match = re.match(r"([0-9]*)(.?)", text, re.DOTALL)
    digits, suffix = match.groups() if match else ("", "")
    if not digits:
        return 0
    if not suffix:
        return int(digits)
    power = _SIZES.find(suffix.upper()) + 1
    return int(digits) * 1024**power if power else 0


def _assign_flag(setting: Setting, text: str | None) -> bool:
    setting.texts = []
    if text is None or text in _ON:
        setting.texts = ["on"]
        return True
    return text in _OFF
