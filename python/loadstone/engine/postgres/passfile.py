"""Passwords and services from libpq's files: `~/.pgpass` and `pg_service.conf`.

Formats: PostgreSQL documentation, libpq, "The Password File" and "The Connection Service File".
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_FIELDS = 5
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def password_from(path: Path, wanted: Sequence[str]) -> tuple[str | None, str | None]:
    """Look up (host, port, database, user) in a password file.

    Returns the password of the first line that matches, and a note when the file exists and is ignored: as
    with libpq, one that others may read is.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return None, None
    if not stat.S_ISREG(mode):
        return None, f"the password file {path} is not a regular file and was ignored"
    if mode & _OTHERS:
        return None, f"the password file {path} can be read by others and was ignored: chmod 600 it"
    try:
        text = path.read_text(errors="surrogateescape")
    except OSError as error:
        return None, f"the password file {path} cannot be read and was ignored: {error.strerror}"
    return match_password(text.splitlines(), wanted), None


def match_password(lines: Iterable[str], wanted: Sequence[str]) -> str | None:
    """Return the password of the first line whose four fields match; `*` matches anything."""
    for line in lines:
        if line.startswith("#"):
            continue
        fields = split_line(line)
        if len(fields) < _FIELDS:
            continue
        matches = zip(fields, wanted, strict=False)
        if all(raw == "*" or _unescaped(raw) == value for raw, value in matches):
            return _unescaped(fields[_FIELDS - 1])
    return None


def split_line(line: str) -> list[str]:
    """Split a line into at most five fields, still escaped; a backslash takes the next character as it is."""
    fields = [""]
    letters = iter(line.rstrip("\r\n"))
    for letter in letters:
        if letter == ":" and len(fields) < _FIELDS:
            fields.append("")
        elif letter == ":":
            break
        else:
            fields[-1] += letter + (next(letters, "") if letter == "\\" else "")
    return fields


def _unescaped(field: str) -> str:
    letters = iter(field)
    return "".join(next(letters, "\\") if letter == "\\" else letter for letter in letters)


def read_service(name: str, files: Sequence[Path]) -> dict[str, str]:
    """Return the parameters of a service from the first file that has it."""
    for path in files:
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        found = service_of(lines, name)
        if found is not None:
            return found
    raise LoadstoneError(
        f"the service '{name}' is not in {' or '.join(map(str, files))}",
        "Check service or PGSERVICE, and PGSERVICEFILE.",
    )


def service_of(lines: Iterable[str], name: str) -> dict[str, str] | None:
    """Return the section of that name, None when there is none."""
    found: dict[str, str] | None = None
    for raw in lines:
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            if found is not None:
                return found
            found = {} if line == f"[{name}]" else None
        elif found is not None:
            key, equals, value = line.partition("=")
            if not equals:
                raise LoadstoneError(
                    f"the service '{name}' has a line without '=': {line}", "Correct that line."
                )
            found[key] = value
    return found
