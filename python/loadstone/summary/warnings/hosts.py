"""Warnings about drives on several load hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.summary.warnings.registry import Warnings, warning

if TYPE_CHECKING:
    from loadstone.results.documents.summary import HostFigures, HostsFigures, Warning

HOST_BUSY = 0.85
"""Share of their wall time from which a host's threads count as the limit."""
CEILING_SHARE = 0.8
"""Share of its ceiling from which a host may have been the limit."""
NS_PER_MS = 1e6

of_hosts: Warnings[HostsFigures] = Warnings()


@of_hosts
def host_lost(found: HostsFigures) -> Warning | None:
    """Say that a load host was lost while it drove."""
    lost = [host for host in found.hosts if host.state == "lost"]
    if not lost:
        return None
    return warning(
        f"The load host {_named(lost)} was lost during the drive: {lost[0].reason}. All others were stopped, "
        "and the figures end there.",
        "Find out why, and measure again. What the host had sent last is unknown.",
        "error",
    )


@of_hosts
def host_was_the_limit(found: HostsFigures) -> Warning | None:
    """Say that a load host had nothing left: then all of the run is limited by the clients."""
    at_limit = [host for host in found.hosts if _is_at_limit(host)]
    if not at_limit:
        return None
    return warning(
        f"The load host {_named(at_limit)} was at its own limit ({_load(at_limit[0])}): the clients may have "
        "been the limit of the whole run, not the server.",
        "Use more load hosts, or more threads on each.",
    )


@of_hosts
def hosts_disagree(found: HostsFigures) -> Warning | None:
    """Say that hosts saw latencies that differ by more than each of them scatters."""
    known = [host for host in found.hosts if host.p99_low_ns is not None and host.p99_high_ns is not None]
    if len(known) < 2:  # noqa: PLR2004 - one agrees with itself
        return None
    low = min(known, key=lambda host: host.p99_high_ns or 0)
    high = max(known, key=lambda host: host.p99_low_ns or 0)
    if (high.p99_low_ns or 0) <= (low.p99_high_ns or 0):
        return None
    return warning(
        f"The load hosts disagree: the 99th percentile was mostly {_range(low)} on {low.name}, and "
        f"{_range(high)} on {high.name} (quartiles over the intervals).",
        "Compare their networks and their CPU: the merged percentiles are those of a mix.",
    )


@of_hosts
def hosts_began_apart(found: HostsFigures) -> Warning | None:
    """Say that the hosts did not begin together, as exactly as their clocks tell."""
    errors = [host.clock_error_ns for host in found.hosts if host.clock_error_ns is not None]
    skew_ns, limit_ns = found.start_skew_ns, found.start_skew_limit_ns
    if skew_ns is None or limit_ns is None or skew_ns + max(errors, default=0) <= limit_ns:
        return None
    return warning(
        f"The load hosts may have begun {skew_ns / NS_PER_MS:.3g} ms apart; their clocks are known to "
        f"{max(errors, default=0) / NS_PER_MS:.3g} ms.",
        "Use hosts that are nearer to each other, or longer intervals and a warm-up.",
    )


def _is_at_limit(host: HostFigures) -> bool:
    busy = host.cpu is not None and host.cpu >= HOST_BUSY
    return busy or bool(host.tps and host.ceiling_tps and host.tps >= CEILING_SHARE * host.ceiling_tps)


def _load(host: HostFigures) -> str:
    if host.cpu is not None and host.cpu >= HOST_BUSY:
        return f"its driver threads were busy {100 * host.cpu:.0f} % of the time"
    return f"{host.tps or 0:,.0f} of {host.ceiling_tps or 0:,.0f} tps"


def _named(hosts: list[HostFigures]) -> str:
    return ", ".join(host.name for host in hosts)


def _range(host: HostFigures) -> str:
    return f"{(host.p99_low_ns or 0) / NS_PER_MS:.3g} to {(host.p99_high_ns or 0) / NS_PER_MS:.3g} ms"
