"""What the machine and the server did over the run: rates from the monitor's cumulative counters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from loadstone.results.documents import Sample
from loadstone.results.documents.summary import CoursePoint, ResourcePoint, Resources, Usage
from loadstone.results.documents.target import Host
from loadstone.summary import watched
from loadstone.summary.intervals import NS_PER_S, POINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from msgspec import Struct

    from loadstone.results.documents.target import (
        ControlGroup,
        CpuTimes,
        DiskCounters,
        Engine,
        Machine,
        NetworkCounters,
        Process,
    )

LONGEST_STEP_S = 5.0
"""Two samples further apart have a phase boundary or an outage between them: no rate is drawn over it."""

SHORTEST_STEP_S = 0.5
"""Processors' time is counted in ticks of 10 ms: over a shorter step a share would be mostly rounding."""

NEAR_NS = 1_000_000_000
WAITS_SHOWN = 6
CPU_BUSY, CPU_ALL = watched.CPU_BUSY, watched.CPU_ALL

COURSE_POINTS = 150
"""The most points of one phase's own course, which is drawn beside that of other targets."""

Reading = Callable[[Sample], float | None]


def _host(read: Callable[[Host], float | None]) -> Reading:
    return lambda sample: None if sample.host is None else read(sample.host)


def _disk(read: Callable[[DiskCounters], float | None]) -> Reading:
    return _host(lambda host: None if host.disk is None else read(host.disk))


def _network(read: Callable[[NetworkCounters], float | None]) -> Reading:
    return _host(lambda host: None if host.network is None else read(host.network))


def _server(read: Callable[[Process], float | None]) -> Reading:
    return lambda sample: None if sample.server is None else read(sample.server)


def _client(read: Callable[[Process], float | None]) -> Reading:
    return lambda sample: None if sample.client is None else read(sample.client)


def _group(read: Callable[[ControlGroup], float | None]) -> Reading:
    return lambda sample: None if sample.group is None else read(sample.group)


def _engine(read: Callable[[Engine], float | None]) -> Reading:
    return lambda sample: None if sample.engine is None else read(sample.engine)


def _machine(read: Callable[[Machine], float | None]) -> Reading:
    """Read what a server on another machine tells of that machine; `host` is always ours."""
    return _engine(lambda engine: None if engine.machine is None else read(engine.machine))


def _machine_disk(read: Callable[[DiskCounters], float | None]) -> Reading:
    return _machine(lambda machine: None if machine.disk is None else read(machine.disk))


def _counter(name: str) -> Reading:
    return _engine(lambda engine: (engine.counters or {}).get(name))


def _gauge(name: str) -> Reading:
    return _engine(lambda engine: (engine.gauges or {}).get(name))


RATES: dict[str, Reading] = {
    "disk_read_bytes_per_s": _disk(lambda disk: disk.read_bytes),
    "disk_write_bytes_per_s": _disk(lambda disk: disk.write_bytes),
    "disk_read_ops_per_s": _disk(lambda disk: disk.read_ops),
    "disk_write_ops_per_s": _disk(lambda disk: disk.write_ops),
    "disk_busy": _disk(lambda disk: disk.busy_s),
    "network_rx_bytes_per_s": _network(lambda network: network.rx_bytes),
    "network_tx_bytes_per_s": _network(lambda network: network.tx_bytes),
    "server_write_bytes_per_s": _server(lambda server: server.write_bytes),
    "wal_bytes_per_s": _counter("wal_bytes"),
    "commits_per_s": _counter("xact_commit"),
    "blocks_read_per_s": _counter("blks_read"),
    "temp_bytes_per_s": _counter("temp_bytes"),
    "group_read_bytes_per_s": _group(lambda group: group.read_bytes),
    "group_write_bytes_per_s": _group(lambda group: group.write_bytes),
    "machine_read_ops_per_s": _machine_disk(lambda disk: disk.read_ops),
    "machine_write_ops_per_s": _machine_disk(lambda disk: disk.write_ops),
    "machine_read_bytes_per_s": _machine_disk(lambda disk: disk.read_bytes),
    "machine_write_bytes_per_s": _machine_disk(lambda disk: disk.write_bytes),
}
GAUGES: dict[str, Reading] = {
    "server_rss_bytes": _server(lambda server: server.rss_bytes),
    "client_rss_bytes": _client(lambda client: client.rss_bytes),
    "active_sessions": _gauge("active"),
    "dead_tuples": _gauge("dead_tuples"),
    "group_memory_bytes": _group(lambda group: group.memory_bytes),
    "group_cache_bytes": _group(lambda group: group.cache_bytes),
    "group_limit_bytes": _group(lambda group: group.limit_bytes),
    "machine_memory_bytes": _machine(lambda machine: machine.memory_used_bytes),
}
CPU_SHARES = ("cpu_server", "cpu_client", "cpu_other", "cpu_steal", "cpu_iowait", "cpu_busy")


@dataclass(frozen=True, slots=True)
class _Step:
    """What happened between two samples."""

    t_s: float
    length_s: float
    figures: Mapping[str, float | None]
    """By the names of the fields of a point."""
    checkpoints: int
    waits: Mapping[str, float]


def summarise_resources(monitor: Sequence[Sample], origin_ns: int) -> Resources:
    """Points on the run's time axis (seconds since its origin), checkpoints, and the waits worth drawing."""
    steps = _steps(monitor, origin_ns)
    waits = Counter[str]()
    for step in steps:
        waits.update(step.waits)
    shown = [name for name, _ in sorted(waits.items(), key=lambda item: (-item[1], item[0]))[:WAITS_SHOWN]]
    return Resources(
        points=[_joined(group, shown) for group in _groups(steps, POINTS)],
        waits=shown,
        waits_left_out=max(0, len(waits) - len(shown)),
        checkpoints=[step.t_s for step in steps if step.checkpoints],
        cores=next((sample.host.cores for sample in monitor if sample.host and sample.host.cores), None),
    )


def course_between(monitor: Sequence[Sample], start_ns: int, end_ns: int) -> list[CoursePoint]:
    """Return points on a phase's own time axis: seconds since `start_ns`, at most some hundred."""
    steps = _steps(_between(monitor, start_ns - NEAR_NS, end_ns + NEAR_NS), start_ns)
    inside = [step for step in steps if 0 <= step.t_s <= (end_ns - start_ns) / NS_PER_S + 1]
    return [
        CoursePoint(t_s=group[-1].t_s, **_means(group, _COURSE)) for group in _groups(inside, COURSE_POINTS)
    ]


def usage_between(monitor: Sequence[Sample], start_ns: int, end_ns: int) -> Usage | None:
    """Mean shares of the machine, checkpoints and WAL between two moments; None without two samples there."""
    inside = _between(monitor, start_ns, end_ns)
    if len(_spaced(inside)) < 2:  # noqa: PLR2004 - a phase of a second: take the samples around it
        inside = _between(monitor, start_ns - NEAR_NS, end_ns + NEAR_NS)
    steps = _steps(inside, 0)
    if not steps:
        return None
    limit = "group_limit_bytes"
    limits = (step.figures[limit] or 0 for step in steps)
    return Usage(
        **_means(steps, _USAGE),
        memory_limit_bytes=max(limits, default=0) or None,
        checkpoints=sum(step.checkpoints for step in steps),
        wal_bytes=_delta(inside[0], inside[-1], _counter("wal_bytes")),
        deadlocks=_delta(inside[0], inside[-1], _counter("deadlocks")),
        server_write_bytes=_delta(inside[0], inside[-1], _server(lambda server: server.write_bytes)),
    )


def _steps(monitor: Sequence[Sample], origin_ns: int) -> list[_Step]:
    steps = []
    for before, after in pairwise(_spaced(monitor)):
        length_s = (after.t_ns - before.t_ns) / NS_PER_S
        if 0 < length_s <= LONGEST_STEP_S:
            steps.append(_step(before, after, length_s, (after.t_ns - origin_ns) / NS_PER_S))
    return steps


def _between(monitor: Sequence[Sample], start_ns: int, end_ns: int) -> list[Sample]:
    return [sample for sample in monitor if start_ns <= sample.t_ns <= end_ns]


def _spaced(samples: Sequence[Sample]) -> list[Sample]:
    """Leave out samples too close to the one before: at a phase's boundary two follow at once."""
    kept = list(samples[:1])
    for sample in samples[1:]:
        if sample.t_ns - kept[-1].t_ns >= SHORTEST_STEP_S * NS_PER_S:
            kept.append(sample)
    return kept


def _step(before: Sample, after: Sample, length_s: float, t_s: float) -> _Step:
    figures: dict[str, float | None] = {}
    for name, read in RATES.items():
        delta = _delta(before, after, read)
        figures[name] = None if delta is None else delta / length_s
    figures |= {name: read(after) for name, read in GAUGES.items()}
    figures |= _cpu(before, after, length_s) | _gpu(after)
    host = after.host or Host()
    total, available = host.memory_total_bytes, host.memory_available_bytes
    figures |= {
        "machine_cpu": _machine_cpu(before, after),
        "memory_used_bytes": None if total is None or available is None else total - available,
    }
    seen = watched.machine_figures(before, after)
    figures |= {name: seen.get(name, figures.get(name)) for name in watched.OWN}
    figures |= {n: v for n, v in watched.counter_rates(before, after).items() if figures[n] is None}
    begun = (_delta(before, after, _counter(f"checkpoints_{why}")) or 0 for why in ("timed", "requested"))
    waits = (after.engine and after.engine.waits) or {}
    return _Step(t_s, length_s, figures, int(sum(begun)), waits)


def _cpu(before: Sample, after: Sample, length_s: float) -> dict[str, float | None]:
    """Shares of the whole machine (0..1); `other` is what neither the server nor we used."""
    deltas = _cpu_deltas(before, after, lambda sample: sample.host and sample.host.cpu_s)
    total = sum(value or 0 for value in deltas.values())
    cores = after.host and after.host.cores
    capacity = total or (cores * length_s if cores else 0)
    if not capacity:
        return dict.fromkeys(CPU_SHARES)
    busy = sum(deltas[name] or 0 for name in CPU_BUSY)
    server, client = (_process_cpu(before, after, read) for read in (_server, _client))
    shares = (
        None if server is None else server / capacity,
        None if client is None else client / capacity,
        max(0.0, busy - (server or 0) - (client or 0)) / capacity,
        (deltas["steal"] or 0) / capacity,  # no document: figures by the names of fields
        (deltas["iowait"] or 0) / capacity,  # no document: figures by the names of fields
        busy / capacity,
    )
    return dict(zip(CPU_SHARES, shares, strict=True))


def _cpu_deltas(
    before: Sample, after: Sample, times: Callable[[Sample], CpuTimes | None]
) -> dict[str, float | None]:
    """Return how much the seconds of each kind have grown."""
    old, new = times(before), times(after)
    return {name: _grown(getattr(old, name, None), getattr(new, name, None)) for name in CPU_ALL}


def _machine_cpu(before: Sample, after: Sample) -> float | None:
    """Return how busy a remote server's machine was (0..1): from its times, else as it says at the moment."""
    known = _cpu_deltas(
        before, after, lambda sample: sample.engine and sample.engine.machine and sample.engine.machine.cpu_s
    )
    whole = sum(value or 0 for value in known.values())
    if whole:
        return 1 - sum(known[name] or 0 for name in ("idle", "iowait")) / whole
    return _machine(lambda machine: machine.cpu_busy)(after)


def _gpu(sample: Sample) -> dict[str, float | None]:
    """Return the mean utilisation (0..1) of all GPUs and the memory used on them together."""
    cards = sample.gpu or []
    used = [card.utilisation for card in cards if card.utilisation is not None]
    memory = [card.memory_used_bytes for card in cards if card.memory_used_bytes is not None]
    return {
        "gpu_utilisation": sum(used) / len(used) if used else None,
        "gpu_memory_bytes": sum(memory) if memory else None,
    }


def _process_cpu(
    before: Sample, after: Sample, whose: Callable[[Callable[[Process], float | None]], Reading]
) -> float | None:
    user = _delta(before, after, whose(lambda process: process.cpu_user_s))
    system = _delta(before, after, whose(lambda process: process.cpu_system_s))
    return None if user is None or system is None else user + system


def _groups(steps: Sequence[_Step], most: int) -> Iterable[Sequence[_Step]]:
    joined = math.ceil(len(steps) / most) if steps else 1
    return (steps[at : at + joined] for at in range(0, len(steps), joined))


def _joined(group: Sequence[_Step], waits: Sequence[str]) -> ResourcePoint:
    waited = {name: sum(step.waits.get(name, 0) for step in group) / len(group) for name in waits}
    return ResourcePoint(t_s=group[-1].t_s, waits=waited, **_means(group, _RESOURCES))


def _measured(kind: type[Struct]) -> list[str]:
    """Return the fields of a type that are means over the steps."""
    whole = {"checkpoints", "wal_bytes", "deadlocks", "server_write_bytes"}
    others = {"t_s", "waits", "memory_limit_bytes", *whole}
    return [name for name in kind.__struct_fields__ if name not in others]


_COURSE, _RESOURCES, _USAGE = (_measured(kind) for kind in (CoursePoint, ResourcePoint, Usage))


def _means(steps: Sequence[_Step], names: Sequence[str]) -> dict[str, Any]:
    return {name: _mean(steps, name) for name in names}


def _mean(steps: Sequence[_Step], name: str) -> float | None:
    known = [(value, step.length_s) for step in steps if (value := step.figures[name]) is not None]
    weight = sum(length for _, length in known)
    return sum(value * length for value, length in known) / weight if weight else None


def _delta(before: Sample, after: Sample, read: Reading) -> float | None:
    return _grown(read(before), read(after))


def _grown(old: float | None, new: float | None) -> float | None:
    """Return the counter's growth; None when not seen twice or when it went backwards (a restart)."""
    return None if old is None or new is None or new < old else new - old
