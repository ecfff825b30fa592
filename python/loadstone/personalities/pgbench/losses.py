"""Clients that ended before the run did, and connections that were made again: what shrinks a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    DriveResult = Mapping[str, Any]

OUTAGES_MAX = 5
"""So many outages are listed."""


def losses(account: DriveResult) -> Iterator[str]:
    """Lines about clients and connections that were lost, if any were; times count from the start."""
    start_ns, ended = account["start_ns"], account["details"]["ended"]
    count = sum(reason["count"] for reason in ended)
    if count:
        yield f"clients that ended early: {count} of {account['clients']}"
    for reason in ended:
        when = _span(start_ns, reason["first_ns"], reason["last_ns"])
        message = reason["message"].split("\n", 1)[0].rstrip()
        yield f"  {reason['count']} {when}: {reason['sqlstate']} {message}"
    if account["connect"]["reconnects"]:
        yield f"connections made again: {account['connect']['reconnects']}"
        yield from _outages(account)


def _outages(account: DriveResult) -> Iterator[str]:
    start_ns, outages = account["start_ns"], account["outages"]
    for outage in outages[:OUTAGES_MAX]:
        until = f"until {_s(start_ns, outage['end_ns'])}" if outage["end_ns"] else "to the end"
        yield f"  up to {outage['clients']} clients had none from {_s(start_ns, outage['start_ns'])} {until}"
    if len(outages) > OUTAGES_MAX:
        yield f"  and {len(outages) - OUTAGES_MAX} times more"


def _span(start_ns: int, first_ns: int, last_ns: int) -> str:
    first, last = _s(start_ns, first_ns), _s(start_ns, last_ns)
    return f"after {first}" if first == last else f"after {first} to {last}"


def _s(start_ns: int, at_ns: int) -> str:
    return f"{max(0, at_ns - start_ns) / 1e9:.1f} s"
