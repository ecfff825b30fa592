"""What `--help` and `--version` print."""

from __future__ import annotations

from pathlib import Path

from loadstone import __version__
from loadstone.personalities.pgbench.complaint import PROGRAM
from loadstone.personalities.pgbench.emulation import d_is_database


def help_text(version: int) -> str:
    """Return the help, with `-d` as the emulated version has it."""
    text = Path(__file__).with_name("help.txt").read_text(encoding="utf-8")
    database, debug = ("-d, ", "    ") if d_is_database(version) else ("    ", "-d, ")
    return text.replace("{database}", database).replace("{debug}", debug)


def version_text(version: int) -> str:
    """Return the version that is emulated, and ours."""
    return f"{PROGRAM} (PostgreSQL) {version} (Loadstone {__version__})\n"
