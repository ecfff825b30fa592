"""Becomes the server: drops rights, ties the server's life to ours, then executes it.

Run as a script (`python -I -S launch.py UID GID PARENT DOORS PROGRAM ARGUMENT …`) rather than as a
`preexec_fn`, which is not safe once we have threads. A PARENT of 0 lets the server outlive us; behind a colon
it may say by which signal the server ends with it, else 2 (SIGINT). DOORS are the files of the control groups
to join, with colons between them.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Execute the program as UID:GID; -1 keeps the present user."""
    uid, gid = (int(text) for text in arguments[:2])
    parent, _, ending = arguments[2].partition(":")
    for door in filter(None, arguments[3].split(os.pathsep)):
        if os.path.basename(door) != "cgroup.procs":  # noqa: PTH119 - pathlib is slow to import
            sys.exit(f"{door} is not the file of a control group")
        handle = os.open(door, os.O_WRONLY)
        os.write(handle, b"0")  # the process that writes
        os.close(handle)
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if int(parent):
        # Set after setuid, which clears it. SIGINT is PostgreSQL's fast shutdown.
        # A shell starts what it leaves in the background with SIGINT ignored, and Java keeps it so.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(ending or signal.SIGINT), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("the process that started this one is gone")
    os.execv(arguments[4], arguments[4:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
