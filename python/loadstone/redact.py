"""Takes passwords out of URLs, libpq strings, SQL and command lines before they are shown or written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN = "***"

_KEY = r"(?:[\w.-]*(?:password|passwd|passphrase|pwd)|(?:\b|(?<=_))pass)"
_LIBPQ_VALUE = r"""(?:'(?:\\.|[^'\\])*(?:'|\Z)|"[^"]*"|\\.|\\|[^\s'\\])*"""
# In free text a URL ends at white space; a password written without escapes may hold anything else, so the
# last "@" ends it: rather a host name too few than a password too many.
_URL_IN_TEXT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):\S*@")
_URL_WHOLE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^\s:/@]*):.*@", re.DOTALL)
_QUERY = re.compile(rf"([?&]{_KEY}=)[^&#\s]*", re.IGNORECASE)
_ASSIGNED = re.compile(rf"((?<![?&\w.-]){_KEY}\s*=\s*){_LIBPQ_VALUE}", re.IGNORECASE | re.DOTALL)
_JSON = re.compile(rf'("{_KEY}"\s*:\s*)"(?:\\.|[^"\\])*(?:"|\Z)', re.IGNORECASE | re.DOTALL)
_SQL = re.compile(
    r"(\b(?:password|identified\s+by)\s+)E?'(?:''|\\.|[^'])*(?:'|\Z)", re.IGNORECASE | re.DOTALL
)

_FLAG = rf"-{{1,2}}(?:[\w.-]+\.)?{_KEY}"
_OPTION = re.compile(_FLAG, re.IGNORECASE)
_OPTION_WITH_VALUE = re.compile(rf"({_FLAG}=).*", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"((?:PGPASSWORD|MYSQL_PWD|[A-Z_]*PASSWORD)=).*", re.DOTALL)


def redact(text: str) -> str:
    """Return the text with every password that can be told as one replaced by `***`."""
    return _assignments(_URL_IN_TEXT.sub(rf"\1:{HIDDEN}@", text))


def _assignments(text: str) -> str:
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    text = _ASSIGNED.sub(rf"\1{HIDDEN}", text)
    text = _JSON.sub(rf'\1"{HIDDEN}"', text)
    return _SQL.sub(rf"\1'{HIDDEN}'", text)


def redact_command(arguments: Sequence[str]) -> list[str]:
    """Return a command line fit to be recorded: options, URLs and libpq strings without their passwords.

    An argument is known as a whole here, so a password may hold white space.
    """
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        shown.append(HIDDEN if hide_next else _redact_argument(argument))
        hide_next = not hide_next and _OPTION.fullmatch(argument) is not None
    return shown


def _redact_argument(argument: str) -> str:
    for pattern in (_OPTION_WITH_VALUE, _VARIABLE):
        match = pattern.fullmatch(argument)
        if match:
            return match.group(1) + HIDDEN
    return _assignments(_URL_WHOLE.sub(rf"\1:{HIDDEN}@", argument))
