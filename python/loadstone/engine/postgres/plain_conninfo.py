"""The common forms of connection strings and variables, read without libpq, whose library takes long to load.

What is not plain (a service, several hosts, a rare key or variable, a byte that needs care) is left to libpq,
and so is every error: `plain_parameters` returns None, and whoever called it asks libpq.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

_VARIABLES = {
    "PGHOST": "host",
    "PGPORT": "port",
    "PGDATABASE": "dbname",
    "PGUSER": "user",
    "PGPASSWORD": "password",
    "PGPASSFILE": "passfile",
    "PGAPPNAME": "application_name",
    "PGCONNECT_TIMEOUT": "connect_timeout",
    "PGSSLMODE": "sslmode",
}
_KEYS = frozenset(_VARIABLES.values())
_NOT_LIBPQS = frozenset({"PGDATA", "PGLOCALEDIR", "PGSYSCONFDIR", "PG_COLOR", "PG_COLORS"})
"""Variables that begin so and name no value of a connection."""
_DEFAULTS = {"port": "5432", "sslmode": "prefer"}
_PAIRS = re.compile(r"\s*(?:[a-z_]+=(?:[^\s'\\=]+|'[^'\\]*')(?:\s+|$))*", re.ASCII)
_PAIR = re.compile(r"([a-z_]+)=(?:'([^']*)'|(\S+))", re.ASCII)
_PART = r"(?:[A-Za-z0-9_.~-]|%[2-7][0-9A-Fa-f])"
_URL = re.compile(
    rf"postgres(?:ql)?://(?:(?P<user>{_PART}+)(?::(?P<password>{_PART}+))?@)?(?P<host>{_PART}*)"
    rf"(?::(?P<port>[0-9]+))?(?:/(?P<dbname>{_PART}*))?(?:\?(?P<query>[a-z_]+={_PART}+(?:&[a-z_]+={_PART}+)*))?"
)


def plain_parameters(text: str, given: Mapping[str, str]) -> dict[str, str] | None:
    """Return what libpq would make of the environment, `given` and `text`, the last word being the text's.

    `text` is a connection string, or empty. None: ask libpq.
    """
    parameters = _parameters(text)
    surroundings = _from_environment()
    if parameters is None or surroundings is None:
        return None
    return _DEFAULTS | surroundings | {name: value for name, value in given.items() if value} | parameters


def _parameters(text: str) -> dict[str, str] | None:
    if not text.isascii():
        return None
    found = _from_url(text) if "://" in text else _from_pairs(text)
    return found if found is not None and found.keys() <= _KEYS else None


def _from_pairs(text: str) -> dict[str, str] | None:
    if not _PAIRS.fullmatch(text):
        return None
    pairs = _PAIR.findall(text)
    found = {name: quoted or plain for name, quoted, plain in pairs}
    return found if len(found) == len(pairs) and all(found.values()) else None


def _from_url(text: str) -> dict[str, str] | None:
    match = _URL.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict(default="")
    query = [pair.partition("=") for pair in parts.pop("query").split("&") if pair]
    found = {name: unquote(value) for name, value in parts.items() if value}
    for name, _, value in query:
        if name in found:
            return None
        found[name] = unquote(value)
    return found


def _from_environment() -> dict[str, str] | None:
    found = {}
    for variable, value in os.environ.items():
        if variable.startswith("PG") and variable not in _NOT_LIBPQS:
            name = _VARIABLES.get(variable)
            if name is None:
                return None
            found[name] = value
    if "user" not in found:
        try:
            found["user"] = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            return None
    return found
