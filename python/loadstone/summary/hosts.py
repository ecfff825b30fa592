"""The load hosts of a drive, each in figures."""

from __future__ import annotations

from statistics import quantiles
from typing import TYPE_CHECKING

from loadstone.results.documents.summary import HostFigures, HostsFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadstone.results.documents.hosts import LoadHost
    from loadstone.results.documents.summary import DriveFigures, LatencyPoint
    from loadstone.summary.run_files import PhaseFiles

FEWEST_INTERVALS = 5
"""From so many the quartiles of a percentile over time mean something."""


def summarise_hosts(
    files: PhaseFiles, summarise: Callable[[PhaseFiles], DriveFigures | None]
) -> HostsFigures | None:
    """Return each load host's figures by the function that makes those of all; None for one host."""
    if files.hosts is None:
        return None
    found = files.hosts.document
    hosts = [_host(host, files.hosts.files.get(host.name), summarise) for host in found.hosts]
    return HostsFigures(
        start_skew_ns=found.start_skew_ns, start_skew_limit_ns=found.start_skew_limit_ns, hosts=hosts
    )


def _host(
    host: LoadHost, files: PhaseFiles | None, summarise: Callable[[PhaseFiles], DriveFigures | None]
) -> HostFigures:
    drive = summarise(files) if files is not None else None
    low_ns, high_ns = _quartiles(drive.latency_series) if drive else (None, None)
    return HostFigures(
        name=host.name,
        state=host.state,
        reason=host.reason,
        clients=drive.clients if drive else None,
        tps=drive.tps.value if drive else None,
        p50_ns=_percentile(drive, 50.0),
        p99_ns=_percentile(drive, 99.0),
        p99_low_ns=low_ns,
        p99_high_ns=high_ns,
        cpu=drive.client_cpu.utilisation if drive and drive.client_cpu else None,
        loop_lag_p99_ns=drive.loop.lag_p99_ns if drive and drive.loop else None,
        ceiling_tps=host.ceiling_tps,
        clock_error_ns=host.clock.error_ns,
        began_after_go_ns=host.began_after_go_ns,
        agent_cpu=host.agent.cpu_ns_per_s / 1e9 if host.agent else None,
        agent_bytes_per_s=host.agent.bytes_per_s if host.agent else None,
    )


def _percentile(drive: DriveFigures | None, percentile: float) -> float | None:
    entries = drive.response.percentiles if drive else []
    return next((entry.value_ns for entry in entries if entry.percentile == percentile), None)


def _quartiles(course: Sequence[LatencyPoint]) -> tuple[float | None, float | None]:
    """Return the quartiles of the 99th percentiles over time, where samples support them."""
    found = [point.p99_ns for point in course if point.p99_ns is not None]
    if len(found) < FEWEST_INTERVALS:
        return None, None
    low, _, high = quantiles(found, n=4, method="inclusive")
    return low, high
