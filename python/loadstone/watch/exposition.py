"""The metrics of node_exporter and postgres_exporter as our own counters, from the text that they serve.

The library prometheus-client parses the text. Names: node_exporter 1.x (`node_…`), postgres_exporter 0.11
and later (`pg_…`). These are bytes from outside: what is not metrics raises LoadstoneError, no more.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LINE_BYTES_MAX = 64 * 1024
"""No exporter writes longer lines; the time that parsing takes stays proportional to the text."""
KEPT_BYTES_MAX = 2**20
"""Of the lines that we use: of a machine with 512 cores they are a quarter of that."""
OPENMETRICS = "application/openmetrics-text"
Facts = dict[str, Any]

_MOST = 1e18
"""No counter reaches this; the documents do not take more."""
_CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_DISK = {
    "read_ops": "node_disk_reads_completed",
    "write_ops": "node_disk_writes_completed",
    "read_bytes": "node_disk_read_bytes",
    "write_bytes": "node_disk_written_bytes",
    "busy_s": "node_disk_io_time_seconds",
}
_NETWORK = {
    "rx_bytes": "node_network_receive_bytes",
    "tx_bytes": "node_network_transmit_bytes",
    "rx_packets": "node_network_receive_packets",
    "tx_packets": "node_network_transmit_packets",
}
_MEMORY = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
_PRESSURE = {"cpu_some_s": "cpu", "io_some_s": "io", "memory_some_s": "memory"}
_NOT_DISKS = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d+|[a-z]+d[a-z]+\d+|(nvme|mmcblk)\d.*p\d+")
"""No disk, stacked on disks that are counted themselves, or a part of one."""
_NOT_CARDS = re.compile(
    r"(lo|ifb|veth|docker|br-|br\d|virbr|bond|team|dummy|tun|tap|wg|cali|cni|flannel|vxlan|lxc).*|.*\.\d+"
)
"""Interfaces without a cable: loopback, virtual, or built on others, which are counted themselves."""
_COUNTERS = {
    "xact_commit": "pg_stat_database_xact_commit",
    "xact_rollback": "pg_stat_database_xact_rollback",
    "blks_read": "pg_stat_database_blks_read",
    "blks_hit": "pg_stat_database_blks_hit",
    "temp_bytes": "pg_stat_database_temp_bytes",
    "deadlocks": "pg_stat_database_deadlocks",
    "checkpoints_timed": "pg_stat_bgwriter_checkpoints_timed",
    "checkpoints_requested": "pg_stat_bgwriter_checkpoints_req",
}
_OTHERS = (
    "node_cpu_seconds",
    *(f"node_memory_{name}_bytes" for name in _MEMORY),
    *(f"node_pressure_{kind}_waiting_seconds" for kind in _PRESSURE.values()),
    "node_load1",
    "node_time_seconds",
    "node_uname_info",
    "node_exporter_build_info",
    "node_boot_time_seconds",
    "pg_up",
    "pg_stat_activity_count",
    "postgres_exporter_build_info",
    "pg_exporter_last_scrape_error",
)
_WANTED = "|".join((*_DISK.values(), *_NETWORK.values(), *_COUNTERS.values(), *_OTHERS))
_LINES = re.compile(rf"^(?:# TYPE )?(?:{_WANTED})(?:_total)?(?:_info)?[ {{\t].*$".encode(), re.MULTILINE)


class Metric(NamedTuple):
    """One sample of the text."""

    labels: Mapping[str, str]
    value: float


Metrics = dict[str, list[Metric]]
"""By name, without `_total`."""


class Reading(NamedTuple):
    """What one text says: parts of a line of monitor.jsonl, None where the exporter has none."""

    host: Facts | None
    counters: dict[str, float] | None
    gauges: dict[str, float] | None
    time_ns: int | None
    """Its wall clock."""
    about: str
    """Which exporter, and on which machine."""
    boot_s: float | None = None
    """When its machine began to run: counters begin again then."""


def metrics_of(text: bytes, content_type: str = "", *, whole: bool = False) -> Metrics:
    """Return the samples that we use; `whole` has all of the text parsed, also what we do not use.

    Raises LoadstoneError for what is not metrics.
    """
    if any(len(line) > LINE_BYTES_MAX for line in text.splitlines()):
        raise LoadstoneError(f"is not metrics: a line has more than {LINE_BYTES_MAX:,} bytes")
    openmetrics = OPENMETRICS in content_type
    used = b"\n".join(_LINES.findall(text))
    if len(used) > KEPT_BYTES_MAX:
        raise LoadstoneError(f"is not metrics of one machine: more than {KEPT_BYTES_MAX:,} bytes of them")
    kept = text if whole else used + (b"\n# EOF\n" if openmetrics else b"\n")
    found: defaultdict[str, list[Metric]] = defaultdict(list)
    try:
        for family in _parser(openmetrics=openmetrics)(kept.decode()):
            for sample in family.samples:
                value = float(sample.value)
                if math.isfinite(value) and abs(value) < _MOST:
                    found[sample.name.removesuffix("_total")].append(Metric(sample.labels, value))
    except Exception as error:  # whatever the library makes of bytes from outside
        raise LoadstoneError(f"is not metrics: {_short(error)}") from error
    return dict(found)


def _parser(*, openmetrics: bool) -> Callable[[str], Iterable[Any]]:
    try:
        from prometheus_client import parser  # noqa: PLC0415 - an extra
        from prometheus_client.openmetrics import parser as open_parser  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LoadstoneError(
            "reading the metrics of exporters needs the package prometheus-client",
            "Install it: pip install 'loadstone[openmetrics]'",
        ) from error
    found: Callable[[str], Iterable[Any]] = (
        open_parser.text_string_to_metric_families if openmetrics else parser.text_string_to_metric_families
    )
    return found


def _short(error: Exception) -> str:
    words = str(error).strip() or type(error).__name__
    return words if len(words) <= 120 else f"{words[:120]}…"  # noqa: PLR2004 - one line


def reading_of(metrics: Metrics, database: str | None = None) -> Reading:
    """Return what the samples say of the machine and the server; `database` narrows its counters to one.

    Raises LoadstoneError where they are those of neither exporter, or the exporter has lost its server.
    """
    if "node_cpu_seconds" not in metrics and "pg_up" not in metrics:
        raise LoadstoneError(
            "has no metrics of node_exporter (node_cpu_seconds_total) or postgres_exporter (pg_up)",
            "Name the exporter's own address, such as http://db1:9100/metrics.",
        )
    if "pg_up" in metrics and not any(sample.value for sample in metrics["pg_up"]):
        raise LoadstoneError(
            "belongs to a postgres_exporter that cannot reach its server (pg_up is 0)",
            "Look into the exporter's log, or leave its --watch out.",
        )
    time_s, boot_s = _one(metrics, "node_time_seconds"), _one(metrics, "node_boot_time_seconds")
    has_server = "pg_up" in metrics
    return Reading(
        _host(metrics) if "node_cpu_seconds" in metrics else None,
        _counters(metrics, database) if has_server else None,
        _gauges(metrics) if has_server else None,
        None if time_s is None or time_s < 0 else int(time_s * 1e9),
        _about(metrics),
        boot_s,
    )


def _about(metrics: Metrics) -> str:
    exporters = ("node_exporter", "postgres_exporter")
    built = {name: _labels(metrics, f"{name}_build_info") for name in exporters}
    words = [f"{name} {labels.get('version', '')}".strip() for name, labels in built.items() if labels]
    if uname := _labels(metrics, "node_uname_info"):
        words.append(f"on {uname.get('nodename', '')} ({uname.get('release', '')})")
    return " ".join(words)


def _labels(metrics: Metrics, name: str) -> Mapping[str, str]:
    """Return the labels of a metric whose value is always 1."""
    samples = metrics.get(name)
    return samples[0].labels if samples else {}


def _host(metrics: Metrics) -> Facts:
    """Return `host` as the local sampler does."""
    cpu = metrics["node_cpu_seconds"]
    times = {mode: sum(s.value for s in cpu if s.labels.get("mode") == mode) for mode in _CPU}
    memory = {name: _one(metrics, f"node_memory_{name}_bytes") for name in _MEMORY}
    swap, free = memory["SwapTotal"], memory["SwapFree"]
    pressure = {k: _one(metrics, f"node_pressure_{kind}_waiting_seconds") for k, kind in _PRESSURE.items()}
    return {
        "cpu_s": times,
        "cores": len({sample.labels.get("cpu") for sample in cpu}),
        "load1": _one(metrics, "node_load1"),
        "memory_total_bytes": memory["MemTotal"],
        "memory_available_bytes": memory["MemAvailable"],
        "swap_used_bytes": None if swap is None or free is None else swap - free,
        "disk": _by_device(metrics, _DISK, _NOT_DISKS),
        "network": _by_device(metrics, _NETWORK, _NOT_CARDS),
        "pressure": None if None in pressure.values() else pressure,
    }


def _by_device(metrics: Metrics, names: Mapping[str, str], none: re.Pattern[str]) -> Facts | None:
    devices = {s.labels.get("device", "") for name in names.values() for s in metrics.get(name, ())}
    chosen = {device for device in devices if not none.fullmatch(device)} or devices - {"lo"}
    if not chosen:
        return None
    return {
        key: sum(s.value for s in metrics[name] if s.labels.get("device") in chosen)
        for key, name in names.items()
        if name in metrics
    }


def _counters(metrics: Metrics, database: str | None) -> dict[str, float]:
    found = {}
    for key, name in _COUNTERS.items():
        samples = metrics.get(name, [])
        ours = [sample for sample in samples if sample.labels.get("datname") == database]
        if samples:
            found[key] = sum(sample.value for sample in ours or samples)
    return found


def _gauges(metrics: Metrics) -> dict[str, float]:
    active = [s for s in metrics.get("pg_stat_activity_count", ()) if s.labels.get("state") == "active"]
    return {"active": sum(sample.value for sample in active)} if active else {}


def _one(metrics: Metrics, name: str) -> float | None:
    samples = metrics.get(name)
    return samples[0].value if samples else None
