"""The command line. Passwords leave our arguments before anything else is imported."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

_INTERRUPTED = 130
_FAILED = 2
_ADDRESS_SPACE = 400 << 20
"""Below it, a library that we need tries again for ever."""

_PROGRAMS = ("pgbench", "sysbench")
"""A link of such a name to our executable makes it that program: in scripts that call no other."""


def main() -> None:
    """Run the command line and exit: the console script's entry point."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _ADDRESS_SPACE:
        _end(
            f"Loadstone needs {_ADDRESS_SPACE >> 20} MiB of address space, but ulimit -v allows only "
            f"{limit >> 20}",
            1,
        )
    try:
        _main()
    except KeyboardInterrupt:
        _end("stopped by SIGINT", _INTERRUPTED)
    except MemoryError:
        _end("there is not enough memory", _FAILED)
    except ImportError as error:
        if "cannot allocate memory" not in str(error) and "failed to map" not in str(error):
            raise
        _end("there is not enough memory to load Loadstone's libraries", _FAILED)


def _main() -> None:
    name = sys.argv[0].rpartition("/")[2]
    if name in _PROGRAMS:
        sys.argv[1:1] = [name]
    from loadstone.cli.process_title import hide_passwords

    hide_passwords()
    from loadstone.cli import streams  # `ps` shows passwords until here

    streams.prepare()
    from loadstone.cli.group import loadstone

    loadstone()


def _end(words: str, code: int) -> None:
    """Say why we end, with nothing imported; where nobody reads it, the status says it."""
    with suppress(OSError):
        os.write(2, f"loadstone: {words}\n".encode())
    raise SystemExit(code)
