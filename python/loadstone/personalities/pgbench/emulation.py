"""Which version of pgbench is imitated: `--emulate`, or the environment variable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.personalities.pgbench.complaint import ComplaintError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VERSIONS = ("15", "16", "17", "18")
DEFAULT = 17
VARIABLE = "LOADSTONE_PGBENCH_EMULATE"
_OPTION = "--emulate"
_NAMES_DATABASE_FROM = 17
_NAMES_TABLES_FROM = 17


def emulated(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Return the major version that the arguments ask for; raises ComplaintError for an unknown one.

    It is read before all else: which options there are depends on it.
    """
    text = environment.get(VARIABLE) or str(DEFAULT)
    before = ""
    for argument in arguments:
        if argument == "--":
            break
        if before == _OPTION:
            text = argument
        elif argument.startswith(f"{_OPTION}="):
            text = argument.partition("=")[2]
        before = argument
    if text not in VERSIONS:
        raise ComplaintError(f'cannot emulate version "{text}"', f"Use one of {', '.join(VERSIONS)}.")
    return int(text)


def d_is_database(version: int) -> bool:
    """Tell what `-d` means: up to 16 it is `--debug`, since 17 `--dbname`."""
    return version >= _NAMES_DATABASE_FROM


def progress_names_tables(version: int) -> bool:
    """Return whether `-i` shows progress of all tables, by name; before, pgbench_accounts alone is shown."""
    return version >= _NAMES_TABLES_FROM
