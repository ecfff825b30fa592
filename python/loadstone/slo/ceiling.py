"""Our own ceiling for a search: no load is tried that Loadstone could not drive without being the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.workload.calibrate import CLIENTS, USABLE, calibrate_for

if TYPE_CHECKING:
    from loadstone.model import Drive
    from loadstone.results.documents import Drive as DriveResult
    from loadstone.signals import Signals

_PIPELINE = "\\startpipeline"


def own_ceiling(drive: Drive, result: DriveResult, signals: Signals | None) -> float | None:
    """Measure how many such transactions per second we drive against a server that answers at once.

    The built-in server answers one statement; a transaction of several takes as many times the effort.
    """
    clients = min(drive.clients, CLIENTS[-1])
    threads = None if drive.threads is None else min(drive.threads, clients)
    found = calibrate_for([(drive.mode, clients)], signals, threads=threads)["results"][0]["tps"]
    return None if found is None else round(found / _exchanges(drive, result), 1)


def _exchanges(drive: Drive, result: DriveResult) -> float:
    """Return the statements of a transaction, at least one; those of a pipeline are one exchange."""
    done = result.counts.done
    if not done or any(_PIPELINE in script.text for script in drive.scripts):
        return 1.0
    sent = sum((one.service.count or 0) for one in result.statements or () if one.service is not None)
    return max(1.0, sent / done)


def drivable(ceiling: float | None) -> float | None:
    """Return the highest load that we drive at ease; None: not known.

    >>> drivable(900.0)
    720.0
    """
    return None if ceiling is None else USABLE * ceiling
