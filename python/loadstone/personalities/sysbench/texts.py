"""What `--help` and `--version` print, and the first line of every run."""

from __future__ import annotations

from loadstone import __version__
from loadstone.personalities.sysbench.complaint import PROGRAM
from loadstone.personalities.sysbench.definitions import (
    BEYOND,
    BUILT_IN,
    DATABASE,
    DRIVERS,
    GENERAL,
    LOG,
    MYSQL,
    PGSQL,
    RANDOM,
    VERBOSITY,
    lines,
)

VERSION = "1.0.20"
"""The sysbench that is imitated; scripts see it as `sysbench.version`."""


def help_text() -> str:
    """Return the help, in sysbench's order."""
    blocks = "".join(f"{group.heading}\n{lines(group.options)}" for group in (GENERAL, RANDOM, VERBOSITY))
    drivers = "".join(f"  {name} - {title}\n" for name, title in DRIVERS.items())
    return (
        f"Usage:\n  {PROGRAM} [options]... [testname] [command]\n\n"
        "Commands of most scripts: prepare run cleanup help\n\n"
        f"{blocks}{lines(LOG.options)}{DATABASE.heading}\n\n{lines(DATABASE.options)}\n"
        f"Compiled-in database drivers:\n{drivers}\n"
        + "".join(f"{group.heading}\n{lines(group.options)}" for group in (MYSQL, PGSQL, BEYOND))
        + f"Tests of the machine itself ({', '.join(BUILT_IN)}) are not part of Loadstone.\n\n"
        f"'{PROGRAM} SCRIPT help' lists the options of a script.\n\n"
    )


def version_text() -> str:
    """Return the version that is imitated, in sysbench's own form, which programs compare."""
    return f"{PROGRAM} {VERSION}\n"


def header() -> str:
    """Return the first line of a run, which says who is speaking."""
    return f"{PROGRAM} {VERSION} (Loadstone {__version__}, using bundled LuaJIT 2.1)\n"
