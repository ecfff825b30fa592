"""What `--watch` shows of the server's machine: figures between two samples, gaps, the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.results.documents.summary import WatchFigures, WatchGap
from loadstone.summary.intervals import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.results.documents import Sample, Target
    from loadstone.results.documents.target import CpuTimes, Host, Process, WatchedBy, WatchedMachine

    Read = Callable[[WatchedMachine], float | None]

CPU_BUSY = ("user", "nice", "system", "irq", "softirq")
CPU_ALL = (*CPU_BUSY, "steal", "iowait", "idle")
GAPS_SHOWN = 20
LONGEST_STEP_S = 5.0
"""No rate is drawn over an outage."""


def _host(read: Callable[[Host], float | None]) -> Read:
    return lambda seen: None if seen.host is None else read(seen.host)


def _server(read: Callable[[Process], float | None]) -> Read:
    return lambda seen: None if seen.server is None else read(seen.server)


_RATES: dict[str, Read] = {
    "machine_read_ops_per_s": _host(lambda host: host.disk and host.disk.read_ops),
    "machine_write_ops_per_s": _host(lambda host: host.disk and host.disk.write_ops),
    "machine_read_bytes_per_s": _host(lambda host: host.disk and host.disk.read_bytes),
    "machine_write_bytes_per_s": _host(lambda host: host.disk and host.disk.write_bytes),
    "machine_disk_busy": _host(lambda host: host.disk and host.disk.busy_s),
    "machine_rx_bytes_per_s": _host(lambda host: host.network and host.network.rx_bytes),
    "machine_tx_bytes_per_s": _host(lambda host: host.network and host.network.tx_bytes),
}
_GAUGES: dict[str, Read] = {
    "machine_memory_bytes": _host(lambda host: _minus(host.memory_total_bytes, host.memory_available_bytes)),
    "machine_server_rss_bytes": _server(lambda server: server.rss_bytes),
}
_COUNTED = {
    "commits_per_s": "xact_commit",
    "blocks_read_per_s": "blks_read",
    "temp_bytes_per_s": "temp_bytes",
}
"""Rates of the server's counters, which a postgres_exporter has as well."""
OWN = (*_RATES, *_GAUGES, "machine_cpu", "machine_iowait", "machine_steal", "machine_server_cpu")
"""Names of the figures of a machine that is watched."""


def machine_figures(before: Sample, after: Sample) -> dict[str, float]:
    """Return what is known of the server's machine between two samples, by the names of the summary.

    Each source has its own times: a rate is over the span between its two readings.
    """
    found: dict[str, float] = {}
    for old, new in _pairs(before, after):
        length_s = (new.t_ns - old.t_ns) / NS_PER_S
        for name, read in _RATES.items():
            grown = _grown(read(old), read(new))
            if grown is not None:
                found.setdefault(name, grown / length_s)
        for name, read in _GAUGES.items():
            value = read(new)
            if value is not None:
                found.setdefault(name, value)
        for name, share in _cpu(old, new, length_s).items():
            found.setdefault(name, share)
    return found


def counter_rates(before: Sample, after: Sample) -> dict[str, float]:
    """Return rates of the server's counters by postgres_exporter, by the names of the summary."""
    found: dict[str, float] = {}
    for old, new in _pairs(before, after):
        for name, counter in _COUNTED.items():
            grown = _grown((old.counters or {}).get(counter), (new.counters or {}).get(counter))
            if grown is not None:
                found.setdefault(name, grown / ((new.t_ns - old.t_ns) / NS_PER_S))
    return found


def watch_figures(monitor: Sequence[Sample], target: Target, origin_ns: int) -> list[WatchFigures]:
    """Return what each source of a target has shown, and when it did not."""
    known = list(target.watched_by) if target.watched_by else []
    return [_figures(one, monitor, origin_ns) for one in known]


def _figures(known: WatchedBy, monitor: Sequence[Sample], origin_ns: int) -> WatchFigures:
    seen = [_of(sample, known.source) for sample in monitor]
    there = [one for one in seen if one is not None]
    clocks = [one for one in there if one.clock_offset_s is not None and one.clock_error_s is not None]
    last = clocks[-1] if clocks else None
    gaps = _gaps(monitor, seen, origin_ns)
    return WatchFigures(
        source=known.source,
        about=known.about,
        samples=len(there),
        missed=len(seen) - len(there),
        gaps=gaps[:GAPS_SHOWN],
        gaps_left_out=max(0, len(gaps) - GAPS_SHOWN),
        clock_offset_s=last.clock_offset_s if last else known.clock_offset_s,
        clock_error_s=last.clock_error_s if last else known.clock_error_s,
        not_observed=list(known.not_observed),
    )


def _gaps(monitor: Sequence[Sample], seen: Sequence[WatchedMachine | None], origin_ns: int) -> list[WatchGap]:
    """Return the spans of samples in which the source said nothing."""
    gaps: list[WatchGap] = []
    begin: int | None = None
    for sample, one in zip(monitor, seen, strict=True):
        if one is None and begin is None:
            begin = sample.t_ns
        elif one is not None and begin is not None:
            gaps.append(_gap(begin, sample.t_ns, origin_ns))
            begin = None
    if begin is not None:
        gaps.append(_gap(begin, monitor[-1].t_ns, origin_ns))
    return gaps


def _gap(begin_ns: int, end_ns: int, origin_ns: int) -> WatchGap:
    return WatchGap(start_s=(begin_ns - origin_ns) / NS_PER_S, end_s=(end_ns - origin_ns) / NS_PER_S)


def _of(sample: Sample, source: str) -> WatchedMachine | None:
    return next((one for one in sample.watch if one.source == source), None)


def _pairs(before: Sample, after: Sample) -> list[tuple[WatchedMachine, WatchedMachine]]:
    """Return what the same source said at both times."""
    pairs = [(old, new) for new in after.watch if (old := _of(before, new.source)) is not None]
    return [(old, new) for old, new in pairs if 0 < new.t_ns - old.t_ns <= LONGEST_STEP_S * NS_PER_S]


def _cpu(old: WatchedMachine, new: WatchedMachine, length_s: float) -> Mapping[str, float]:
    """Return shares of the whole machine, 0 to 1."""
    deltas = _cpu_deltas(old.host and old.host.cpu_s, new.host and new.host.cpu_s)
    cores = new.host.cores if new.host else None
    capacity = sum(deltas.values()) or (cores * length_s if cores else 0)
    if not capacity:
        return {}
    found = {}
    if deltas:
        found = {
            "machine_cpu": sum(deltas.get(name, 0) for name in CPU_BUSY) / capacity,
            "machine_iowait": deltas.get("iowait", 0) / capacity,  # no document: seconds by their names
            "machine_steal": deltas.get("steal", 0) / capacity,  # no document: seconds by their names
        }
    user, system = (
        _grown(old.server and getattr(old.server, name), new.server and getattr(new.server, name))
        for name in ("cpu_user_s", "cpu_system_s")
    )
    if user is not None and system is not None:
        found["machine_server_cpu"] = (user + system) / capacity  # no document: shares by their names
    return found


def _cpu_deltas(old: CpuTimes | None, new: CpuTimes | None) -> dict[str, float]:
    """Return seconds of each kind; empty where a counter has gone backwards: the machine was restarted."""
    if old is None or new is None:
        return {}
    deltas = {name: _grown(getattr(old, name), getattr(new, name)) for name in CPU_ALL}
    if any(
        getattr(new, name) is not None and delta is None for name, delta in deltas.items() if name != "iowait"
    ):
        return {}
    return {name: delta for name, delta in deltas.items() if delta is not None}


def _grown(old: float | None, new: float | None) -> float | None:
    """Return the counter's growth; None when not seen twice or when it went backwards (a restart)."""
    return None if old is None or new is None or new < old else new - old


def _minus(whole: float | None, part: float | None) -> float | None:
    return None if whole is None or part is None else whole - part
