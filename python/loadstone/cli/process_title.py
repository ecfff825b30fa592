"""Hides passwords of our own command line from `ps` and /proc/PID/cmdline."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from loadstone.results.redact import redact_command

_ARG_START, _ARG_END = 47, 48
"""Places of the two addresses in /proc/PID/stat (proc(5) counts from 1)."""


def hide_passwords() -> None:
    """Overwrite the passwords among our arguments where the kernel shows them from: our own memory.

    They can be seen until this is called; PGPASSWORD and ~/.pgpass keep them out altogether. What cannot be
    hidden, on a kernel that does not tell where the arguments lie, stays as it is.
    """
    try:
        given = Path("/proc/self/cmdline").read_bytes()
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (int(fields[place - 2]) for place in (_ARG_START, _ARG_END))
    except (OSError, ValueError, IndexError):
        return
    shown = hidden(given)
    if shown != given and start and end - start == len(given):
        ctypes.memmove(start, shown, len(shown))


def hidden(command_line: bytes) -> bytes:
    """Return a command line (arguments ending in NUL bytes) of the same length without its passwords."""
    arguments = command_line.split(b"\0")[:-1]
    redacted = redact_command([os.fsdecode(argument) for argument in arguments])
    result = b""
    for argument, text in zip(arguments, map(os.fsencode, redacted), strict=True):
        result += text[: len(argument)].ljust(len(argument), b"\0") + b"\0"
    return result
