"""Warnings about a phase: its checks, its end, its counts, the machine, and whether we were the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.summary.intervals import NS_PER_S
from loadstone.summary.warnings.hosts import of_hosts
from loadstone.summary.warnings.loads import load_warnings
from loadstone.summary.warnings.registry import Warnings, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.results.documents import Calibration
    from loadstone.results.documents.phase import Check
    from loadstone.results.documents.summary import DriveFigures, PhaseFigures, Warning

CLIENT_BUSY = 0.85
"""Share of their wall time from which the driver's threads count as the limit."""
PAUSED = 0.05
"""Share of the measured time in which our own threads were stopped, from which the client was late."""
LAG_SHARE = 0.5
"""Event-loop lag (p99) over median latency from which the client may have been late."""
CEILING_SHARE = 0.8
"""Share of the calibrated ceiling from which the client may have been the limit."""
OTHER_BUSY = 0.10
STEAL = 0.02
DRIFT = 0.10
DRIFT_P = 0.01
NS_PER_MS = 1e6
MEDIAN, OFTEN_WANTED = 50, 99.9
NEEDED = 10_000


@dataclass(frozen=True, slots=True)
class Driven:
    """A phase that drove, with what the calibration says of it."""

    phase: PhaseFigures
    drive: DriveFigures
    calibration: Calibration
    in_process: bool = False
    """Whether the engine works in our own process."""


of_check: Warnings[Check] = Warnings()
of_phase: Warnings[PhaseFigures] = Warnings()
of_loss: Warnings[str] = Warnings()
of_drive: Warnings[Driven] = Warnings()


def phase_warnings(
    phase: PhaseFigures, calibration: Calibration, *, in_process: bool = False
) -> Iterator[Warning]:
    """Say what holds for one phase on one target; `in_process`: its engine works in our own process."""
    where = phase.target, phase.folder
    for check in phase.checks:
        yield from of_check.of(check, *where)
    yield from of_phase.of(phase, *where)
    drive = phase.drive
    if drive is None:
        return
    if phase.state == "complete":  # else the reason says so
        for text in drive.losses:
            yield from of_loss.of(text, *where)
    yield from of_drive.of(Driven(phase, drive, calibration, in_process), *where)
    if phase.hosts:
        yield from of_hosts.of(phase.hosts, *where)
    yield from load_warnings(phase)


@of_check
def check_failed(check: Check) -> Warning | None:
    """Say that the database's content is not what it acknowledged."""
    if check.passed is not False:
        return None
    return warning(
        f"The check “{check.name}” failed: expected {check.expected}, found {check.actual}.",
        "A fast wrong answer is a failure: check the server's log before you use any figure.",
        "error",
    )


@of_phase
def phase_incomplete(phase: PhaseFigures) -> Warning | None:
    """Say that a phase was cut short."""
    if phase.state in {"complete", "skipped"}:
        return None
    state = "killed" if phase.state == "running" else phase.state
    reason = phase.reason or (phase.drive and phase.drive.reason)
    because = f": {reason}" if reason else ""
    return warning(
        f"The phase did not finish as planned ({state}){because}. Its figures end there.",
        "Do not compare its figures with those of a complete phase.",
    )


@of_loss
def service_lost(text: str) -> Warning:
    """Say that the server did not serve all clients to the end."""
    return warning(
        f"The server did not stay available for the whole phase: {text}.",
        "Check the server's log for that time. Do not use the figures of this phase: they include it.",
        "error",
    )


@of_drive
def counts_do_not_add_up(driven: Driven) -> Warning | None:
    """Say that the counting equation is violated: the driver lost or doubled transactions."""
    equation = driven.drive.equation
    if equation.holds is not False:
        return None
    return warning(
        f"The counts do not add up: {equation.text}.",
        "Do not use this phase's figures; report this run folder as a bug of Loadstone.",
        "error",
    )


@of_drive
def nothing_done(driven: Driven) -> Warning | None:
    """Say that not one transaction came to its end."""
    if driven.drive.counts.done:
        return None
    return warning(
        "No transaction was completed in the measured window.",
        "Look at the errors of this phase. If there are none, a transaction takes longer than the phase.",
        "error",
    )


@of_drive
def errors_happened(driven: Driven) -> Warning | None:
    """Say that transactions failed."""
    drive = driven.drive
    if not drive.counts.failed:
        return None
    worst = max(drive.errors, key=lambda error: error.count, default=None)
    first = f"{worst.sqlstate} {worst.message}" if worst else "not recorded"
    return warning(
        f"{drive.counts.failed:,} of {_begun(drive):,} transactions failed, most often with: {first}.",
        "See the table of errors by SQLSTATE. Remove their cause, or mention the failures with the figures.",
    )


@of_drive
def work_dropped(driven: Driven) -> Warning | None:
    """Say that under a rate work was not done in time."""
    drive, counts = driven.drive, driven.drive.counts
    if not (counts.skipped or drive.late or (counts.dropped and _has_rate(drive))):
        return None
    return warning(
        f"The server did not keep up with the rate: of {_begun(drive):,} scheduled transactions, "
        f"{counts.skipped:,} were skipped, {counts.dropped:,} were dropped at the end, and "
        f"{drive.late:,} were late.",
        "Lower the rate until no transaction is skipped: that is the load that this server can handle.",
    )


@of_drive
def in_doubt(driven: Driven) -> Warning | None:
    """Say that answers were lost with their connections."""
    count = driven.drive.in_doubt
    if not count:
        return None
    return warning(
        f"{count:,} transactions are in doubt: they were sent, but the connection was lost before the "
        "answer.",
        "The tables may contain up to that many more than were acknowledged; the check allows for it.",
    )


@of_drive
def outage(driven: Driven) -> Warning | None:
    """Say that connections were lost for a while."""
    outages = driven.drive.outages
    if not outages:
        return None
    last_ns = max(driven.drive.window_end_ns, *(one.start_ns for one in outages))
    longest_s = max((one.end_ns or last_ns) - one.start_ns for one in outages) / NS_PER_S
    endless = any(one.end_ns is None for one in outages)
    until = ", the last time until the end" if endless else ""
    times = "once" if len(outages) == 1 else f"{len(outages)} times"
    return warning(
        f"The server could not be reached {times}, for up to {longest_s:.1f} s{until}.",
        "Check the server's log for that time; the throughput figure includes the outage.",
    )


@of_drive
def client_paused(driven: Driven) -> Warning | None:
    """Say that our own process was stopped."""
    drive = driven.drive
    if not drive.measured_s or drive.pauses_s < PAUSED * drive.measured_s:
        return None
    return warning(
        f"Loadstone itself was suspended for {drive.pauses_s:.1f} of the measured "
        f"{drive.measured_s:.1f} s: latencies in that time are Loadstone's, not the server's.",
        "Do not suspend it, make sure that it gets CPU time, and measure again.",
    )


@of_drive
def client_was_the_limit(driven: Driven) -> Warning | None:
    """Say that our own threads were busy nearly all the time."""
    drive = driven.drive
    used = drive.client_cpu and drive.client_cpu.utilisation
    if used is None or used < CLIENT_BUSY:
        return None
    return warning(
        f"Loadstone itself was the limit: its driver threads ({drive.threads or 1}) were busy "
        f"{100 * used:.0f} % of the time.",
        "Use more threads (--set threads=N) or drive the load from another machine.",
    )


@of_drive
def client_may_have_been_late(driven: Driven) -> Warning | None:
    """Say that the event loop needed long between two waits, against the latencies it measured."""
    drive = driven.drive
    lag = drive.loop and drive.loop.lag_p99_ns
    median = next((p.value_ns for p in drive.response.percentiles if p.percentile == MEDIAN), None)
    if not lag or not median or lag < LAG_SHARE * median:
        return None
    return warning(
        f"Loadstone may have been the limit: its event loop took up to {lag / NS_PER_MS:.3g} ms (99th "
        f"percentile) to see new answers, and the median latency is {median / NS_PER_MS:.3g} ms.",
        "Use more threads, fewer clients, or a separate machine: the latencies shown are upper bounds.",
    )


@of_drive
def near_ceiling(driven: Driven) -> Warning | None:
    """Say that the rate is close to what we reach against a server that does nothing."""
    top, tps = ceiling(driven.calibration, driven.drive), driven.drive.tps.value
    if not top or not tps or tps < CEILING_SHARE * top:
        return None
    return warning(
        f"Loadstone may have been the limit: {tps:,.0f} tps is {100 * (tps / top):.0f} % of the "
        f"{top:,.0f} tps it reaches here against a server that answers at once.",
        "Drive the load from another machine or with more threads, and calibrate there.",
    )


@of_drive
def log_incomplete(driven: Driven) -> Warning | None:
    """Say that the histogram log does not hold every sample."""
    logged, counted = driven.drive.logged, driven.drive.response.count
    if not counted or logged >= counted:
        return None
    return warning(
        f"The latency log has {logged:,} of {counted:,} samples; percentiles are computed from those.",
        "This is normal for a killed run; otherwise check that the disk with the run folder was not full.",
    )


@of_drive
def too_few_samples(driven: Driven) -> Warning | None:
    """Say that a percentile is left out that people look for; nobody does of loads and plain queries."""
    phase, response = driven.phase, driven.drive.response
    entry = next(p for p in response.percentiles if p.percentile == OFTEN_WANTED)
    if (
        phase.load is not None
        or phase.plain_queries is not None
        or not response.count
        or entry.value_ns is not None
    ):
        return None
    return warning(
        f"{driven.drive.logged:,} samples are too few for the {OFTEN_WANTED:g}th percentile, which "
        f"needs about {NEEDED:,}; it is not shown.",
        "Measure longer (--set duration=SECONDS) if you need it.",
        "info",
    )


@of_drive
def machine_was_busy(driven: Driven) -> Warning | None:
    """Say that someone else used the machine's processors."""
    usage = driven.phase.usage
    if usage is None:
        return None
    # Without the server's own share (a remote one, or one of another user) "other" would blame the server.
    known = usage.cpu_server is not None or driven.in_process
    other = (usage.cpu_other or 0.0) if known else 0.0
    steal = usage.cpu_steal or 0.0
    if other < OTHER_BUSY and steal < STEAL:
        return None
    return warning(
        f"The machine was busy with something else: {100 * other:.0f} % of its CPU went neither to the "
        f"server nor to Loadstone, and {100 * steal:.0f} % was stolen by the hypervisor.",
        "Stop other programs, or use a machine that is not shared, and run again.",
    )


@of_drive
def unsteady(driven: Driven) -> Warning | None:
    """Say that throughput at the end differs from that at the beginning.

    Whether steps take longer as the table grows is what they are there to show.
    """
    found, phase = driven.drive.drift, driven.phase
    if not found or phase.steps or abs(found.change) < DRIFT or found.p_value > DRIFT_P:
        return None
    checkpoints = phase.usage.checkpoints if phase.usage else 0
    direction = "fell" if found.change < 0 else "rose"
    inside = (
        f"; {checkpoints} checkpoint{'s' if checkpoints > 1 else ''} began inside the phase"
        if checkpoints
        else ""
    )
    moved = f"it {direction} by {100 * abs(found.change):.0f} % from the first to the last third"
    return warning(
        f"Throughput was not steady: {moved}{inside}.",
        "Warm up and measure for longer (several checkpoint intervals), and look at the chart of "
        "throughput over time.",
    )


def ceiling(calibration: Calibration, drive: DriveFigures) -> float | None:
    """Return the calibrated tps for the drive's protocol mode, at the nearest number of clients."""
    clients = drive.clients
    rows = [
        (row.clients, row.tps)
        for row in calibration.results or []
        if row.mode == drive.mode and row.tps and row.clients
    ]
    if not rows or not clients:
        return None
    return float(min(rows, key=lambda row: (abs(row[0] - clients), row[0]))[1])


def _begun(drive: DriveFigures) -> int:
    return drive.counts.scheduled + drive.counts.carried


def _has_rate(drive: DriveFigures) -> bool:
    return bool(drive.pace and drive.pace.kind != "closed")
