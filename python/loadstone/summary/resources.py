"""What the machine and the server did over the run: rates from the monitor's cumulative counters."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from loadstone.summary.series import NS_PER_S, POINTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from loadstone.summary.reading import Json

LONGEST_STEP_S = 5.0
"""Two samples further apart have a phase boundary or an outage between them: no rate is drawn over it."""

SHORTEST_STEP_S = 0.5
"""Processors' time is counted in ticks of 10 ms: over a shorter step a share would be mostly rounding."""

NEAR_NS = 1_000_000_000
WAITS_SHOWN = 6
CPU_BUSY = ("user", "nice", "system", "irq", "softirq")
CPU_ALL = (*CPU_BUSY, "steal", "iowait", "idle")

MACHINE = ("engine", "machine")
"""What a server on another machine tells of that machine; `host` is always ours."""

RATES = {
    "disk_read_bytes_per_s": ("host", "disk", "read_bytes"),
    "disk_write_bytes_per_s": ("host", "disk", "write_bytes"),
    "disk_read_ops_per_s": ("host", "disk", "read_ops"),
    "disk_write_ops_per_s": ("host", "disk", "write_ops"),
    "disk_busy": ("host", "disk", "busy_s"),
    "network_rx_bytes_per_s": ("host", "network", "rx_bytes"),
    "network_tx_bytes_per_s": ("host", "network", "tx_bytes"),
    "server_write_bytes_per_s": ("server", "write_bytes"),
    "wal_bytes_per_s": ("engine", "counters", "wal_bytes"),
    "commits_per_s": ("engine", "counters", "xact_commit"),
    "blocks_read_per_s": ("engine", "counters", "blks_read"),
    "temp_bytes_per_s": ("engine", "counters", "temp_bytes"),
    "group_read_bytes_per_s": ("group", "read_bytes"),
    "group_write_bytes_per_s": ("group", "write_bytes"),
    "machine_read_ops_per_s": (*MACHINE, "disk", "read_ops"),
    "machine_write_ops_per_s": (*MACHINE, "disk", "write_ops"),
    "machine_read_bytes_per_s": (*MACHINE, "disk", "read_bytes"),
    "machine_write_bytes_per_s": (*MACHINE, "disk", "write_bytes"),
}
GAUGES = {
    "server_rss_bytes": ("server", "rss_bytes"),
    "client_rss_bytes": ("client", "rss_bytes"),
    "active_sessions": ("engine", "gauges", "active"),
    "dead_tuples": ("engine", "gauges", "dead_tuples"),
    "group_memory_bytes": ("group", "memory_bytes"),
    "group_cache_bytes": ("group", "cache_bytes"),
    "group_limit_bytes": ("group", "limit_bytes"),
    "machine_memory_bytes": (*MACHINE, "memory_used_bytes"),
}
COURSE_POINTS = 150
"""The most points of one phase's own course, which is drawn beside that of other targets."""
COURSE = (
    "cpu_server",
    "cpu_client",
    "cpu_busy",
    "memory_used_bytes",
    "server_rss_bytes",
    "client_rss_bytes",
    "group_memory_bytes",
    "disk_read_ops_per_s",
    "disk_write_ops_per_s",
    "disk_write_bytes_per_s",
    "gpu_utilisation",
    "gpu_memory_bytes",
    "machine_cpu",
    "machine_memory_bytes",
    "machine_read_ops_per_s",
    "machine_write_ops_per_s",
)
"""What of it is kept."""


def summarise_resources(monitor: Sequence[Json], origin_ns: int) -> Json:
    """Points on the run's time axis (seconds since its origin), checkpoints, and the waits worth drawing."""
    steps = _steps(monitor, origin_ns)
    waits = Counter[str]()
    for step in steps:
        waits.update(step["waits"])
    shown = [name for name, _ in sorted(waits.items(), key=lambda item: (-item[1], item[0]))[:WAITS_SHOWN]]
    return {
        "points": [_joined(group, shown) for group in _groups(steps, POINTS)],
        "waits": shown,
        "waits_left_out": max(0, len(waits) - len(shown)),
        "checkpoints": [step["t_s"] for step in steps if step["checkpoints"]],
        "cores": next(
            (sample["host"]["cores"] for sample in monitor if (sample.get("host") or {}).get("cores")), None
        ),
    }


def course_between(monitor: Sequence[Json], start_ns: int, end_ns: int) -> list[Json]:
    """Return points on a phase's own time axis: seconds since `start_ns`, at most some hundred."""
    steps = _steps(_between(monitor, start_ns - NEAR_NS, end_ns + NEAR_NS), start_ns)
    inside = [step for step in steps if 0 <= step["t_s"] <= (end_ns - start_ns) / NS_PER_S + 1]
    points = [_joined(group, ()) for group in _groups(inside, COURSE_POINTS)]
    return [{"t_s": point["t_s"], **{name: point[name] for name in COURSE}} for point in points]


def usage_between(monitor: Sequence[Json], start_ns: int, end_ns: int) -> Json | None:
    """Mean shares of the machine, checkpoints and WAL between two moments; None without two samples there."""
    inside = _between(monitor, start_ns, end_ns)
    if len(_spaced(inside)) < 2:  # noqa: PLR2004 - a phase of a second: take the samples around it
        inside = _between(monitor, start_ns - NEAR_NS, end_ns + NEAR_NS)
    steps = _steps(inside, 0)
    if not steps:
        return None
    usage: Json = {
        name: _mean(steps, name)
        for name in (
            "cpu_server",
            "cpu_client",
            "cpu_other",
            "cpu_steal",
            "cpu_iowait",
            "cpu_busy",
            "disk_busy",
            "server_rss_bytes",
            "client_rss_bytes",
            "gpu_utilisation",
            "gpu_memory_bytes",
        )
    }
    usage["memory_limit_bytes"] = max((step["group_limit_bytes"] or 0 for step in steps), default=0) or None
    usage["checkpoints"] = sum(step["checkpoints"] for step in steps)
    usage["wal_bytes"] = _delta(inside[0], inside[-1], ("engine", "counters", "wal_bytes"))
    usage["deadlocks"] = _delta(inside[0], inside[-1], ("engine", "counters", "deadlocks"))
    return usage


def _steps(monitor: Sequence[Json], origin_ns: int) -> list[Json]:
    samples = _spaced([sample for sample in monitor if isinstance(sample.get("t_ns"), int)])
    steps = []
    for before, after in pairwise(samples):
        length_s = (after["t_ns"] - before["t_ns"]) / NS_PER_S
        if 0 < length_s <= LONGEST_STEP_S:
            steps.append(_step(before, after, length_s, (after["t_ns"] - origin_ns) / NS_PER_S))
    return steps


def _between(monitor: Sequence[Json], start_ns: int, end_ns: int) -> list[Json]:
    return [sample for sample in monitor if start_ns <= sample.get("t_ns", -1) <= end_ns]


def _spaced(samples: Sequence[Json]) -> list[Json]:
    """Leave out samples too close to the one before: at a phase's boundary two follow at once."""
    kept = list(samples[:1])
    for sample in samples[1:]:
        if sample["t_ns"] - kept[-1]["t_ns"] >= SHORTEST_STEP_S * NS_PER_S:
            kept.append(sample)
    return kept


def _step(before: Json, after: Json, length_s: float, t_s: float) -> Json:
    step: Json = {"t_s": t_s, "length_s": length_s}
    for name, path in RATES.items():
        delta = _delta(before, after, path)
        step[name] = None if delta is None else delta / length_s
    for name, path in GAUGES.items():
        step[name] = _at(after, path)
    step |= _cpu(before, after, length_s) | _gpu(after)
    step["machine_cpu"] = _machine_cpu(before, after)
    total, available = (_at(after, ("host", f"memory_{name}_bytes")) for name in ("total", "available"))
    step["memory_used_bytes"] = None if total is None or available is None else total - available
    counters = [("engine", "counters", f"checkpoints_{name}") for name in ("timed", "requested")]
    step["checkpoints"] = int(sum(_delta(before, after, path) or 0 for path in counters))
    step["waits"] = (after.get("engine") or {}).get("waits") or {}
    return step


def _cpu(before: Json, after: Json, length_s: float) -> Json:
    """Shares of the whole machine (0..1); `other` is what neither the server nor we used."""
    deltas = {name: _delta(before, after, ("host", "cpu_s", name)) for name in CPU_ALL}
    total = sum(value or 0 for value in deltas.values())
    cores = _at(after, ("host", "cores"))
    capacity = total or (cores * length_s if cores else 0)
    names = ("cpu_server", "cpu_client", "cpu_other", "cpu_steal", "cpu_iowait", "cpu_busy")
    if not capacity:
        return dict.fromkeys(names)
    busy = sum(deltas[name] or 0 for name in CPU_BUSY)
    server, client = (_process_cpu(before, after, who) for who in ("server", "client"))
    return {
        "cpu_server": None if server is None else server / capacity,
        "cpu_client": None if client is None else client / capacity,
        "cpu_other": max(0.0, busy - (server or 0) - (client or 0)) / capacity,
        "cpu_steal": (deltas["steal"] or 0) / capacity,
        "cpu_iowait": (deltas["iowait"] or 0) / capacity,
        "cpu_busy": busy / capacity,
    }


def _machine_cpu(before: Json, after: Json) -> float | None:
    """Return how busy a remote server's machine was (0..1): from its times, else as it says at the moment."""
    known = {name: _delta(before, after, (*MACHINE, "cpu_s", name)) for name in CPU_ALL}
    whole = sum(value or 0 for value in known.values())
    if whole:
        return 1 - ((known["idle"] or 0) + (known["iowait"] or 0)) / whole
    return _at(after, (*MACHINE, "cpu_busy"))


def _gpu(sample: Json) -> Json:
    """Return the mean utilisation (0..1) of all GPUs and the memory used on them together."""
    cards = sample.get("gpu") or []
    used = [card["utilisation"] for card in cards if card.get("utilisation") is not None]
    memory = [card["memory_used_bytes"] for card in cards if card.get("memory_used_bytes") is not None]
    return {
        "gpu_utilisation": sum(used) / len(used) if used else None,
        "gpu_memory_bytes": sum(memory) if memory else None,
    }


def _process_cpu(before: Json, after: Json, who: str) -> float | None:
    parts = [_delta(before, after, (who, f"cpu_{kind}_s")) for kind in ("user", "system")]
    return None if None in parts else sum(part or 0 for part in parts)


def _groups(steps: Sequence[Json], most: int) -> Iterable[Sequence[Json]]:
    joined = math.ceil(len(steps) / most) if steps else 1
    return (steps[at : at + joined] for at in range(0, len(steps), joined))


def _joined(group: Sequence[Json], waits: Sequence[str]) -> Json:
    names = [name for name in group[0] if name not in {"t_s", "length_s", "waits", "checkpoints"}]
    point: Json = {name: _mean(group, name) for name in names}
    point["t_s"] = group[-1]["t_s"]
    point["waits"] = {name: sum(step["waits"].get(name, 0) for step in group) / len(group) for name in waits}
    return point


def _mean(steps: Sequence[Json], name: str) -> float | None:
    known = [(step[name], step["length_s"]) for step in steps if step[name] is not None]
    weight = sum(length for _, length in known)
    return sum(value * length for value, length in known) / weight if weight else None


def _at(sample: Json, path: Sequence[str]) -> float | None:
    value: object = sample
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _delta(before: Json, after: Json, path: Sequence[str]) -> float | None:
    """Return the counter's growth; None when not seen twice or when it went backwards (a restart)."""
    old, new = _at(before, path), _at(after, path)
    return None if old is None or new is None or new < old else new - old
