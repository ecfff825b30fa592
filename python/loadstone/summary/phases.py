"""One phase on one target, in figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET

from loadstone.results.documents import Drive
from loadstone.results.documents.base import Counts, Stats, WarmupCounts
from loadstone.results.documents.drive import Pace, TimedStatement
from loadstone.results.documents.summary import (
    ClientCpuFigures,
    ConcurrentQueriesFigures,
    CurvePoint,
    Drift,
    DriveFigures,
    Equation,
    Latency,
    MixedQueriesFigures,
    OutcomeCounts,
    Percentile,
    PhaseFigures,
    Rate,
    StatementFigures,
    TimedOutage,
)
from loadstone.results.service import pauses_ns, service_losses, window_end_ns
from loadstone.summary.freshness import summarise_freshness
from loadstone.summary.histograms import SUPPORT, Histogram
from loadstone.summary.hosts import summarise_hosts
from loadstone.summary.intervals import (
    NS_PER_S,
    LatencyLog,
    interval_rates,
    measured,
    read_latencies,
    throughput_over_time,
)
from loadstone.summary.loads import summarise_load
from loadstone.summary.mixed import summarise_late
from loadstone.summary.plain_queries import round_of, without_round
from loadstone.summary.queries import summarise_queries
from loadstone.summary.sizes import summarise_sizes
from loadstone.summary.statistics import batch_means, drift
from loadstone.summary.steps import costs_per_row, rate_over_steps, summarise_steps
from loadstone.summary.storage import summarise_storage
from loadstone.summary.transactions import summarise_transactions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents import Interval
    from loadstone.results.documents.drive import Loaded, Outage
    from loadstone.summary.run_files import PhaseFiles

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
FEWEST_DONE = 10
"""Transactions or queries from which the intervals of a run say how much its rate scatters."""
EQUATION = "scheduled + carried over from the warm-up = done + failed + skipped + dropped"
OUTCOMES = ("done", "failed", "skipped", "dropped")


def summarise_phase(files: PhaseFiles, origin_ns: int) -> PhaseFigures:
    """Say what the report says of one phase; times in seconds since the run's origin."""
    phase = files.phase
    drive = summarise_drive(files, origin_ns)
    steps = summarise_steps(files, origin_ns)
    sizes = summarise_sizes(phase.sizes, drive, _rows_loaded(files))
    if steps and sizes and sizes.per_unit:
        sizes.per_unit = costs_per_row(steps, sizes.per_unit)
    begun_ns = _begun_ns(files) or phase.start_ns or origin_ns
    return PhaseFigures(
        number=phase.number,
        id=phase.id,
        key=phase.key,
        kind=phase.kind,
        title=phase.title,
        why=phase.why,
        # Rounds are turns of one measurement: what tells variants apart is the rest.
        variant=without_round(files.variant),
        repeat=files.repeat,
        target=phase.target or "",
        scenario=phase.scenario,
        state=files.state,
        reason=phase.reason,
        folder=files.folder.key,
        round=round_of(files),
        start_s=_seconds_since(origin_ns, phase.start_ns),
        end_s=_seconds_since(origin_ns, phase.end_ns),
        headline=phase.headline or "tps",
        rows_per_transaction=phase.rows_per_transaction,
        published=phase.published or [],
        checks=phase.checks or [],
        setup=phase.statements or [],
        drive=drive,
        plain_queries=_plain_queries(files),
        sizes=sizes,
        steps=steps,
        load=summarise_load(files.drive, sizes, steps),
        queries=summarise_queries(files.drive, drive),
        storage=summarise_storage(phase, files.drive),
        transactions=summarise_transactions(files.drive, files.progress, begun_ns),
        mixed=_mixed(files, origin_ns),
        freshness=summarise_freshness(files.sent, files.probe),
        energy_j=None,
        usage=None,
        course=[],
        hosts=summarise_hosts(files, lambda of_host: summarise_drive(of_host, origin_ns)) or UNSET,
    )


def _begun_ns(files: PhaseFiles) -> int | None:
    drive = files.drive or files.in_turn
    return drive.start_ns if drive else None


def _mixed(files: PhaseFiles, origin_ns: int) -> MixedQueriesFigures | None:
    """Return the queries that ran while the phase loaded, and those near its end; None without such."""
    if files.mixed is None or (mixed := summarise_drive(files.mixed, origin_ns)) is None:
        return None
    return MixedQueriesFigures(
        drive=mixed,
        queries=summarise_queries(files.mixed.drive, mixed),
        late=summarise_late(files.drive, files.mixed.series),
    )


def _plain_queries(files: PhaseFiles) -> ConcurrentQueriesFigures | None:
    """Return what plain queries went round as a load, alone or beside an import; None without such."""
    drive = files.drive
    if files.in_turn is None and not (drive and drive.plain_queries):
        drive = files.mixed.drive if files.mixed else None
    found = drive and drive.plain_queries
    if not found:
        return None
    return ConcurrentQueriesFigures(
        table=found.table, rows=found.rows, clients=found.clients, draws=found.draws
    )


def _rows_loaded(files: PhaseFiles) -> int | None:
    """Return the rows that the phase added, its tags left out; None where that is not known."""
    drive = files.drive
    if drive and drive.load:
        return int(drive.load.rows)
    each = files.phase.rows_per_transaction
    if drive is None or not each:
        return None
    return int(each * (drive.counts.done + (drive.warmup_counts.done if drive.warmup_counts else 0)))


def summarise_drive(files: PhaseFiles, origin_ns: int) -> DriveFigures | None:
    """Return the driver's account with intervals and percentiles; None for a phase that drove nothing."""
    drive = files.drive or _reconstructed(files)
    if drive is None:
        return None
    start_ns = drive.start_ns
    log = read_latencies(files.folder.latency_path, files.series, start_ns)
    measured_s = max(0, drive.end_ns - drive.measure_ns) / NS_PER_S
    rates = interval_rates(files.series)
    tps = _tps(drive, measured_s, rates)
    closed = (drive.pace.kind if drive.pace else "closed") == "closed"
    return DriveFigures(
        io=drive.io,
        mode=drive.mode,
        clients=drive.clients,
        threads=drive.threads,
        pace=drive.pace,
        seed=drive.seed,
        reconstructed=files.drive is None,
        state=drive.state,
        reason=drive.reason,
        start_s=(start_ns - origin_ns) / NS_PER_S,
        measure_s=(drive.measure_ns - origin_ns) / NS_PER_S,
        end_s=(drive.end_ns - origin_ns) / NS_PER_S,
        measured_s=measured_s,
        warmup_s=(drive.measure_ns - start_ns) / NS_PER_S,
        counts=_counts(drive.counts),
        warmup_counts=_counts(drive.warmup_counts or WarmupCounts()),
        losses=service_losses(drive),
        window_end_ns=window_end_ns(drive),
        pauses_s=pauses_ns(drive) / NS_PER_S,
        equation=_equation(drive, files.series, verifiable=files.drive is not None),
        drift=_drift(rates),
        series=throughput_over_time(files.series, start_ns),
        latency_series=log.over_time,
        curve=[CurvePoint(beyond=b, value_ns=v) for b, v in _total(log, "response").curve()],
        logged=_total(log, "response").count,
        tps=tps,
        tps_including_connections=_including_connections(drive, measured_s),
        rows_per_s=_rows_per_s(drive, files, measured_s, tps),
        metrics_per_s=_metrics_per_s(drive, files, measured_s),
        response=latency(drive.response, _total(log, "response")),
        service=None if closed else latency(drive.service or Stats(), _total(log, "service")),
        latency_note=CLOSED if closed else OPEN,
        statements=[_statement(statement, log) for statement in drive.statements or []],
        in_doubt=drive.in_doubt or 0,
        retried=drive.retried or 0,
        retries=drive.retries or 0,
        late=drive.late or 0,
        errors=drive.errors or [],
        operations=drive.operations,
        outages=[_outage(outage) for outage in drive.outages or []],
        scripts=drive.scripts or [],
        connect=drive.connect,
        lag=drive.lag,
        loop=drive.loop,
        bytes_sent=drive.bytes_sent,
        bytes_received=drive.bytes_received,
        client_cpu=_client_cpu(drive, measured_s),
    )


CLOSED = "Closed loop: a transaction starts when its client is free; response and service time are the same."
OPEN = "Response time is measured from the intended start, service time from the real start."


def _counts(counts: Counts | WarmupCounts) -> OutcomeCounts:
    return OutcomeCounts(
        scheduled=counts.scheduled,
        carried=counts.carried or 0,  # not in folders written before it was counted
        done=counts.done,
        failed=counts.failed,
        skipped=counts.skipped,
        dropped=counts.dropped,
    )


def _outage(outage: Outage) -> TimedOutage:
    return TimedOutage(start_ns=outage.start_ns, end_ns=outage.end_ns, clients=outage.clients)


def latency(stats: Stats, histogram: Histogram) -> Latency:
    """STATS with the percentiles that the samples support; the others say why they are missing."""
    return Latency(
        count=stats.count,
        mean_ns=stats.mean_ns,
        stddev_ns=stats.stddev_ns,
        min_ns=stats.min_ns,
        max_ns=stats.max_ns,
        percentiles=[_percentile(histogram, percentile) for percentile in PERCENTILES],
    )


def _percentile(histogram: Histogram, percentile: float) -> Percentile:
    if histogram.supports(percentile):
        value_ns = histogram.percentile_ns(percentile)
        return Percentile(percentile=percentile, value_ns=value_ns, reason=None)
    needed = round(SUPPORT / (1 - percentile / 100))
    few = f"needs {needed:,} samples, and there are {histogram.count:,}"
    reason = few if histogram.count else "no samples"
    return Percentile(percentile=percentile, value_ns=None, reason=reason)


def _tps(drive: Drive, measured_s: float, rates: list[float]) -> Rate:
    if measured_s <= 0:
        return _bare(None, 0, "nothing was measured")
    done = drive.counts.done
    if done < FEWEST_DONE:
        # Most intervals hold none then, and look steady.
        return _bare(
            done / measured_s, 0, f"only {done} transactions done; at least {FEWEST_DONE} are needed"
        )
    return _rate(done / measured_s, rates)


def _including_connections(drive: Drive, measured_s: float) -> float | None:
    connect_s = ((drive.connect and drive.connect.wall_ns) or 0) / NS_PER_S
    return drive.counts.done / (measured_s + connect_s) if measured_s > 0 else None


def _rows_per_s(drive: Drive, files: PhaseFiles, measured_s: float, tps: Rate) -> Rate | None:
    """Return the rate of rows: those of a load, else of a fixed number of rows for each transaction."""
    load, each = drive.load, files.phase.rows_per_transaction
    if measured_s <= 0:
        return None
    if not load:
        return _scaled(tps, each) if each else None
    if stepped := rate_over_steps(files.steps):
        return _over_steps(*_at_rest(load, *stepped))
    return _rate(load.rows / measured_s, interval_rates(files.series, "rows"))


def _metrics_per_s(drive: Drive, files: PhaseFiles, measured_s: float) -> Rate | None:
    if not drive.load or measured_s <= 0 or rate_over_steps(files.steps):
        return None
    return _rate(drive.load.metrics / measured_s, interval_rates(files.series, "metrics"))


def _at_rest(load: Loaded, value: float, rates: list[float]) -> tuple[float, list[float]]:
    """Count into a rate over steps what the engine does behind them before the load is at rest."""
    finish_s = (load.finish_ns or 0) / NS_PER_S
    rows = load.rows
    return (rows / (rows / value + finish_s) if finish_s and rows else value), rates


def _over_steps(value: float, rates: list[float]) -> Rate:
    """Return a rate whose interval is left out where steps differ so much that it would say nothing."""
    rate = _rate(value, rates)
    if rate.low is None or rate.high is None or rate.high - rate.low <= value:
        return rate
    return _bare(value, len(rates), "the rate changes from step to step: see the steps")


def _rate(value: float, rates: list[float]) -> Rate:
    interval = batch_means(rates, value)
    if isinstance(interval, str):
        return _bare(value, len(rates), interval)
    return Rate(**asdict(interval), reason=None)


def _bare(value: float | None, n: int, reason: str) -> Rate:
    """Return a rate without an interval, and why it has none."""
    return Rate(value=value, low=None, high=None, n=n, reason=reason)


def _scaled(rate: Rate, factor: float) -> Rate:
    value, low, high = (
        None if figure is None else figure * factor for figure in (rate.value, rate.low, rate.high)
    )
    return msgspec.structs.replace(rate, value=value, low=low, high=high)


def _drift(rates: list[float]) -> Drift | None:
    found = drift(rates)
    return None if found is None else Drift(change=found[0], p_value=found[1])


def _statement(statement: TimedStatement, log: LatencyLog) -> StatementFigures:
    tag = f"statement-{statement.script}.{statement.index}"
    return StatementFigures(
        script=statement.script,
        index=statement.index,
        line=statement.line,
        text=statement.text,
        failed=statement.failed,
        service=latency(statement.service or Stats(), _total(log, tag)),
    )


def _client_cpu(drive: Drive, measured_s: float) -> ClientCpuFigures | None:
    """Return what the client cost."""
    cpu = drive.client_cpu
    if not cpu:
        return None
    finished = drive.counts.done + drive.counts.failed
    spent_ns = cpu.user_ns + cpu.system_ns
    wall_ns = measured_s * NS_PER_S * (drive.threads or 1)
    return ClientCpuFigures(
        user_ns=cpu.user_ns,
        system_ns=cpu.system_ns,
        per_transaction_ns=spent_ns / finished if finished else None,
        utilisation=spent_ns / wall_ns if wall_ns else None,
    )


def _equation(drive: Drive, series: Sequence[Interval], *, verifiable: bool) -> Equation:
    """Verify the counting equations of the measured window and the warm-up, and the intervals' sum."""
    if not verifiable:
        return Equation(holds=None, text="counts are rebuilt from the intervals: nothing to verify")
    wrong = [
        *_unequal("counts", drive.counts, 1),
        # What the warm-up scheduled and had not ended goes from there into the measured window.
        *_unequal("warmup_counts", drive.warmup_counts or WarmupCounts(), -1),
        *_against_intervals(drive, series),
    ]
    return Equation(holds=not wrong, text="; ".join(wrong) or EQUATION)


def _unequal(name: str, counts: Counts | WarmupCounts, sign: int) -> Iterator[str]:
    begun = counts.scheduled + sign * (counts.carried or 0)
    parts = (counts.done, counts.failed, counts.skipped, counts.dropped)
    if begun != sum(parts):
        terms = " + ".join(f"{count:,} {part}" for part, count in zip(OUTCOMES, parts, strict=True))
        yield f"{name}: {begun:,} scheduled, but {terms} = {sum(parts):,}"


def _against_intervals(drive: Drive, series: Sequence[Interval]) -> list[str]:
    """Compare the rate's numerator with the intervals, of which it is the sum.

    Not of folders written before outcomes were counted where they happened, nor where writing failed.
    """
    lines = measured(series)
    if drive.counts.carried is None or drive.output_error or not lines:
        return []
    done = sum(line.done or 0 for line in lines)
    if done == drive.counts.done:
        return []
    return [f"counts: {drive.counts.done:,} done, but {done:,} in the intervals of series.jsonl"]


def _reconstructed(files: PhaseFiles) -> Drive | None:
    """Say what the driver would have written, from its intervals, when it was killed before it could."""
    if not files.series or files.in_turn is not None:
        return None
    lines = measured(files.series)
    start_ns = files.series[0].start_ns
    log = read_latencies(files.folder.latency_path, [], start_ns)
    return Drive(
        state="interrupted",
        reason="the process was killed before the driver wrote its result",
        clients=max((line.connected or 0 for line in files.series), default=0),
        start_ns=start_ns,
        measure_ns=lines[0].start_ns if lines else files.series[-1].end_ns,
        end_ns=files.series[-1].end_ns,
        counts=_summed(lines),
        pace=Pace(kind="fixed" if "service" in log.totals else "closed"),
        response=_total(log, "response").stats(),
        service=_total(log, "service").stats(),
        retries=sum(line.retries or 0 for line in lines),
        bytes_sent=sum(line.bytes_sent or 0 for line in lines),
        bytes_received=sum(line.bytes_received or 0 for line in lines),
        statements=[
            TimedStatement(script=int(s), index=int(i), service=histogram.stats())
            for (s, i), histogram in _statement_tags(log)
        ],
    )


def _summed(lines: Sequence[Interval]) -> Counts:
    """Return the outcomes in these intervals."""
    done = sum(line.done for line in lines)
    failed = sum(line.failed for line in lines)
    skipped = sum(line.skipped for line in lines)
    dropped = sum(line.dropped for line in lines)
    scheduled = done + failed + skipped + dropped
    return Counts(scheduled, done, failed, skipped, dropped, carried=0)


def _statement_tags(log: LatencyLog) -> list[tuple[tuple[str, str], Histogram]]:
    tags = []
    for tag, histogram in sorted(log.totals.items()):
        script, _, index = tag.removeprefix("statement-").partition(".")
        if script.isdigit() and index.isdigit():
            tags.append(((script, index), histogram))
    return tags


def _seconds_since(origin_ns: int, at_ns: int | None) -> float | None:
    return None if at_ns is None else (at_ns - origin_ns) / NS_PER_S


def _total(log: LatencyLog, tag: str) -> Histogram:
    return log.totals.get(tag) or Histogram()
