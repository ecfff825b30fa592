"""The figures of a run as OpenMetrics text, which Prometheus and its relatives read.

The library prometheus-client writes the text. Nothing has a time stamp: a run is over when it is exported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.report.formats import unit
from loadstone.summary.comparisons import headline_rate
from loadstone.tables.columns import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.core import Metric

    from loadstone.results.documents.summary import DriveFigures, PhaseFigures, Summary

    Labels = dict[str, str]

_OUTCOMES = ("done", "failed", "skipped", "dropped")


def openmetrics(summary: Summary) -> str:
    """Return the text. Raises LoadstoneError where the library is not installed."""
    try:
        from prometheus_client.openmetrics import exposition  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LoadstoneError(
            "export as OpenMetrics needs the package prometheus-client",
            "Install it: pip install 'loadstone[openmetrics]'",
        ) from error
    write: Callable[[_Collected], bytes] = exposition.generate_latest
    return write(_Collected(summary)).decode()


class _Collected:
    """What the library asks for metrics."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary

    def collect(self) -> Iterable[Metric]:
        """Yield each metric with all its samples."""
        yield from _infos(self._summary)
        yield from _phases(self._summary)
        yield _queries(self._summary)


def _infos(summary: Summary) -> Iterator[Metric]:
    from prometheus_client.core import InfoMetricFamily  # noqa: PLC0415 - an extra

    run = summary.run
    about: dict[str, object] = {
        "id": run.id,
        "loadstone": run.loadstone,
        "state": run.state,
        "started_at": run.started_at,
    }
    about |= {"size": summary.plan.size, "seed": summary.plan.seed}
    yield InfoMetricFamily(
        "loadstone_run", "The run", value={name: _text(value) for name, value in about.items()}
    )
    targets = InfoMetricFamily("loadstone_target", "A target of the run", labels=["target"])
    for target in summary.targets:
        named: dict[str, object] = {
            "label": target.short_label,
            "engine": target.engine,
            "version": target.version,
        }
        targets.add_metric([target.id], {name: _text(value) for name, value in named.items()})
    yield targets


def _phases(summary: Summary) -> Iterator[Metric]:
    from prometheus_client.core import Metric  # noqa: PLC0415 - an extra

    rate = Metric("loadstone_phase_rate", "Main rate of a phase per second, with its 95 % interval", "gauge")
    outcomes = Metric("loadstone_phase_transactions", "Transactions of a phase by outcome", "counter")
    response = Metric("loadstone_phase_response_seconds", "Response time", "summary", "seconds")
    cpu = Metric(
        "loadstone_phase_server_cpu_ratio", "The server's share of the machine's CPU", "gauge", "ratio"
    )
    wal = Metric("loadstone_phase_wal_bytes", "WAL written in the measured time", "gauge", "bytes")
    sizes = Metric("loadstone_phase_size_bytes", "Size of the tables after a phase", "gauge", "bytes")
    for phase in summary.phases:
        labels = _labels(phase)
        if phase.drive:
            _add_rate(rate, labels, phase, phase.drive)
            _add_drive(outcomes, response, labels, phase.drive)
        if phase.usage and phase.usage.cpu_server is not None:
            cpu.add_sample(cpu.name, labels, phase.usage.cpu_server)
        if phase.usage and phase.usage.wal_bytes is not None:
            wal.add_sample(wal.name, labels, phase.usage.wal_bytes)
        if phase.sizes:
            for kind in ("table", "index", "toast"):
                sizes.add_sample(sizes.name, labels | {"kind": kind}, getattr(phase.sizes.kinds, kind).after)
    yield from (rate, outcomes, response, cpu, wal, sizes)


def _add_rate(metric: Metric, labels: Labels, phase: PhaseFigures, drive: DriveFigures) -> None:
    rate = headline_rate(drive, phase.headline)
    if rate is None:
        return
    for bound in ("value", "low", "high"):
        value = getattr(rate, bound)
        if value is not None:
            named = {"unit": unit(phase.kind, phase.headline), "bound": bound}
            metric.add_sample(metric.name, labels | named, value)


def _add_drive(outcomes: Metric, response: Metric, labels: Labels, drive: DriveFigures) -> None:
    for outcome in _OUTCOMES:
        outcomes.add_sample(
            f"{outcomes.name}_total", labels | {"outcome": outcome}, getattr(drive.counts, outcome)
        )
    latency = drive.response
    for entry in latency.percentiles:
        if entry.value_ns is not None:
            quantile = {"quantile": f"{entry.percentile / 100:.6g}"}
            response.add_sample(response.name, labels | quantile, entry.value_ns / 1e9)
    if latency.count and latency.mean_ns is not None:
        response.add_sample(f"{response.name}_count", labels, latency.count)
        response.add_sample(f"{response.name}_sum", labels, latency.count * latency.mean_ns / 1e9)


def _queries(summary: Summary) -> Metric:
    from prometheus_client.core import Metric  # noqa: PLC0415 - an extra

    metric = Metric("loadstone_query_seconds", "Median of the runs of a query", "gauge", "seconds")
    for entry in summary.plain_queries:
        for target in entry.targets:
            for query in target.queries:
                labels = {
                    "target": target.target,
                    "scenario": _text(entry.scenario),
                    "phase": _text(entry.id),
                }
                labels |= {"variant": as_json(entry.variant), "query": query.name}
                for kind, times in (("warm", query.warm), ("cold", query.cold)):
                    if times.median_s is not None:
                        metric.add_sample(metric.name, labels | {"caches": kind}, times.median_s)
    return metric


def _labels(phase: PhaseFigures) -> Labels:
    return {
        "target": phase.target,
        "scenario": _text(phase.scenario),
        "phase": _text(phase.id),
        "variant": as_json(phase.variant),
        "round": _text(phase.round),
        "repeat": str(phase.repeat),
    }


def _text(value: object) -> str:
    return "" if value is None else str(value)
