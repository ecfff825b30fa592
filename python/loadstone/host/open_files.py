"""The limit of open files: raised for the clients of a run before anything is touched, or the run refused."""

from __future__ import annotations

import resource
from pathlib import Path

from loadstone.errors import LoadstoneError

RESERVE = 256
"""Descriptors beside the clients': files of the run folder, rings, control connections."""


def make_room_for(connections: int, reserve: int = RESERVE) -> None:
    """See that so many connections can be open at once, beside what is open already and `reserve` files.

    The soft limit is raised as far as it must be. Raises LoadstoneError where the hard limit is in the way.
    """
    need = _open_now() + connections + reserve
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _holds(soft, need):
        return
    try:
        # Root may go beyond the hard limit, which is then as high as the soft one.
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard if _holds(hard, need) else need))
    except (ValueError, OSError) as error:
        raise LoadstoneError(
            f"{connections} connections need {need} open files, but this process may have only {hard}",
            f"Raise the limit before the run: ulimit -n {need} (as root, or with LimitNOFILE= of a "
            "service and /etc/security/limits.conf), or use fewer clients.",
        ) from error


def _holds(limit: int, need: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= need


def _open_now() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:  # the reserve must do
        return 0
