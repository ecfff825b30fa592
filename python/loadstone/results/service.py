"""Whether the server served a drive to its end: clients lost, stalls, outages without end.

The one place that decides it, for the run (which fails with exit status 2) and for the report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.results.documents import Drive
    from loadstone.results.documents.drive import Stall

STALL_SHARE = 0.1
"""Share of the measured window from which a stall makes its figures those of something else."""
SHORTEST_STALL_NS = {True: 1_000_000_000, False: 2_000_000_000}
"""The shortest stall that counts, without and with an end: a busy disk may stop a server for a second."""
FEWEST_MISSED = 10
"""Transactions that would have been done in a stall, at the rate of the rest: fewer may just take long."""
_NS_PER_S = 1e9


def service_losses(drive: Drive) -> list[str]:
    """Return in words how the server failed the drive (drive.json); empty when it served to the end."""
    outages = list(_endless_outages(drive))
    lost = list(_lost_clients(drive))
    return [*lost, *outages] or list(_stalled(drive))


def lost_connections(drive: Mapping[str, Any]) -> bool:
    """Return whether a client's connection was lost while it was driven; `drive` is drive.json as written."""
    return bool(drive.get("outages") or (drive.get("lost_clients") or {}).get("count"))


def window_end_ns(drive: Drive) -> int:
    """Return when the measured window ended."""
    end_ns, deadline_ns = int(drive.end_ns), drive.deadline_ns
    return min(int(deadline_ns), end_ns) if deadline_ns and end_ns > drive.measure_ns else end_ns


def pauses_ns(drive: Drive) -> int:
    """Return how long our own threads were stopped in the measured window."""
    return int((drive.loop and drive.loop.pauses and drive.loop.pauses.total_ns) or 0)


def _lost_clients(drive: Drive) -> Iterator[str]:
    lost = drive.lost_clients
    if not lost or not lost.count:
        return
    count, of = lost.count, drive.clients or lost.count
    when = f", the first at {_since(drive, lost.first_ns)}" if lost.first_ns is not None else ""
    why = f": {lost.message} ({lost.sqlstate})" if lost.message else ""
    clients, were = "client" if of == 1 else "clients", "was" if count == 1 else "were"
    yield f"{count:,} of {of:,} {clients} {were} lost and not replaced{when}{why}"


def _endless_outages(drive: Drive) -> Iterator[str]:
    for outage in drive.outages or []:
        if outage.end_ns is None:
            seconds = max(0, window_end_ns(drive) - outage.start_ns) / _NS_PER_S
            clients = outage.clients or 0
            who = f"{clients:,} client{'s' if clients != 1 else ''}" if clients else "clients"
            begun = _since(drive, outage.start_ns)
            yield f"{who} could not reach the server for {seconds:.1f} s, from {begun} until the end"


def _stalled(drive: Drive) -> Iterator[str]:
    stall = drive.stall
    if not stall:
        return
    window_ns = max(1, window_end_ns(drive) - drive.measure_ns)
    length_ns = stall.length_ns - pauses_ns(drive) - _outages_ns(drive, stall)
    endless = stall.end_ns is None
    if length_ns < max(STALL_SHARE * window_ns, SHORTEST_STALL_NS[endless]):
        return
    rate = _usual_rate(drive, window_ns - length_ns)
    if rate * length_ns < FEWEST_MISSED and (rate or not endless):
        return
    served_ns = window_end_ns(drive) if stall.end_ns is None else stall.end_ns
    to_the_end = served_ns >= window_end_ns(drive)
    until = "until the end" if to_the_end else f"until {_since(drive, served_ns)}"
    seconds = stall.length_ns / _NS_PER_S
    begun = _since(drive, stall.start_ns)
    whole = window_ns / _NS_PER_S
    yield f"no transaction was done for {seconds:.1f} s of {whole:.1f} s, from {begun} {until}"


def _outages_ns(drive: Drive, stall: Stall) -> int:
    """Return how much of a stall was outages that ended: who asks to reconnect measures those, too."""
    end_ns = stall.end_ns or stall.start_ns + stall.length_ns
    ended = [(o.start_ns, o.end_ns) for o in drive.outages or [] if o.end_ns is not None]
    return sum(max(0, min(end, end_ns) - max(start, stall.start_ns)) for start, end in ended)


def _usual_rate(drive: Drive, rest_ns: float) -> float:
    """Return transactions done per ns outside the stall, in the warm-up where that was faster."""
    warmup_ns = drive.measure_ns - drive.start_ns
    warmup = (drive.warmup_counts.done if drive.warmup_counts else 0) / warmup_ns if warmup_ns > 0 else 0.0
    return float(max(drive.counts.done / max(1.0, rest_ns), warmup))


def _since(drive: Drive, at_ns: int) -> str:
    seconds = (at_ns - drive.measure_ns) / _NS_PER_S
    return f"second {seconds:.1f}" if seconds >= 0 else f"{-seconds:.1f} s before the warm-up ended"
