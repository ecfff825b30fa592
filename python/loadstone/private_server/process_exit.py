"""Whether a private server's process is at its end."""

from __future__ import annotations

import contextlib
import subprocess

_DYING_S = 5.0


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process that no longer answers is dead; its sockets close a moment earlier."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_S)
    return process.poll() is not None
