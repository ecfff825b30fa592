"""Becomes the server: drops rights, ties the server's life to ours, then executes it.

Run as a script (`python -I -S launch.py UID GID PARENT PROGRAM ARGUMENT …`) rather than as a `preexec_fn`,
which is not safe once we have threads. A PARENT of 0 lets the server outlive us.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Execute the program as UID:GID; -1 keeps the present user."""
    uid, gid, parent = (int(text) for text in arguments[:3])
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if parent:
        # Set after setuid, which clears it. SIGINT is PostgreSQL's fast shutdown.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:
            sys.exit("the process that started this one is gone")
    os.execv(arguments[3], arguments[3:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
