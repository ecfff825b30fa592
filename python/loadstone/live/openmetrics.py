"""`--openmetrics ADDRESS`: figures of a run that goes on, for Prometheus; prometheus-client writes them."""

from __future__ import annotations

import contextlib
import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.errors import LoadstoneError
from loadstone.live.figures import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prometheus_client.core import Metric

    from loadstone.live.figures import Interval, LiveFigures, Place, Totals

LOOPBACK = "127.0.0.1"
PORTS = range(2**16)
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:\[\]/]+)?:)?(?P<port>\d{1,5})")
_QUANTILES = {"p50_s": "0.5", "p95_s": "0.95", "p99_s": "0.99"}
Labels = dict[str, str]


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of `PORT`, `HOST:PORT` or `[IPV6]:PORT`: this machine's own with a port alone.

    Raises LoadstoneError for anything else.
    """
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or int(found["port"]) not in PORTS:
        raise LoadstoneError(
            f"--openmetrics '{text}' is not an address",
            "Write a port, such as 9400, or HOST:PORT, such as 0.0.0.0:9400 for all networks.",
        )
    return (found["host"] or LOOPBACK).strip("[]"), int(found["port"])


@contextlib.contextmanager
def serving(address: str, figures: LiveFigures) -> Iterator[str]:
    """Serve the figures inside the context; yields the URL.

    Raises LoadstoneError where the address is taken or the library is not installed.
    """
    host, port = parse_address(address)
    try:
        from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LoadstoneError(
            "--openmetrics needs the package prometheus-client",
            "Install it: pip install 'loadstone[openmetrics]'",
        ) from error
    registry = CollectorRegistry()
    registry.register(Collector(figures))
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise LoadstoneError(
            f"--openmetrics {address}: {getattr(error, 'strerror', None) or error}",
            "Choose another port, or 0 for any that is free.",
        ) from error
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Collector:
    """What the library asks for metrics."""

    def __init__(self, figures: LiveFigures) -> None:
        """Read `figures` whenever metrics are asked for."""
        self._figures = figures

    def describe(self) -> Iterable[Metric]:
        """Name no metrics beforehand."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return each metric with all its samples."""
        figures = self._figures
        with figures.changed:
            last = figures.intervals[-1] if figures.intervals else None
            current = last if last is not None and last.place == figures.place else None
            return [
                *_run(figures),
                *_totals(figures.totals),
                _response(figures.totals, current),
                *_current(current),
            ]


def _run(figures: LiveFigures) -> list[Metric]:
    from prometheus_client.core import InfoMetricFamily, Metric  # noqa: PLC0415 - an extra

    phases = Metric("loadstone_phases", "Phases that have ended, by state", "counter")
    for state, count in sorted(figures.ended_phases.items()):
        phases.add_sample("loadstone_phases_total", {"state": state}, count)
    planned = Metric("loadstone_planned_phases", "Phases of the plan that are not skipped", "gauge")
    planned.add_sample(planned.name, {}, figures.now().phases)
    trial = Metric("loadstone_trial", "Number of the trial that goes on", "gauge")
    offered = Metric(
        "loadstone_offered_rate", "Transactions that should begin a second in the trial", "gauge"
    )
    if (now := figures.trial) is not None:
        block = "" if now.block is None else str(now.block)
        trial.add_sample(trial.name, {"arm": now.arm, "block": block, "kind": now.kind}, now.number)
        if now.offered_per_s is not None:
            offered.add_sample(offered.name, {}, now.offered_per_s)
    running = Metric("loadstone_phase_running", "1 for the phase that goes on", "gauge")
    if figures.place is not None:
        running.add_sample(running.name, _labels(figures.place), 1)
    return [
        InfoMetricFamily("loadstone_build", "Loadstone", {"version": __version__}),
        phases,
        planned,
        trial,
        offered,
        running,
    ]


def _totals(totals: dict[Place, Totals]) -> list[Metric]:
    from prometheus_client.core import Metric  # noqa: PLC0415 - an extra

    counts = Metric("loadstone_transactions", "Transactions by outcome, warm-up included", "counter")
    rows = Metric("loadstone_rows", "Rows loaded", "counter")
    for place, total in totals.items():
        for outcome in OUTCOMES:
            labels = _labels(place) | {"outcome": outcome}
            counts.add_sample("loadstone_transactions_total", labels, total.outcomes[outcome])
        if total.rows:
            rows.add_sample("loadstone_rows_total", _labels(place), total.rows)
    return [counts, rows]


def _response(totals: dict[Place, Totals], interval: Interval | None) -> Metric:
    """Return counts and sums of phases, and the quantiles of the last interval, as summaries have them."""
    from prometheus_client.core import Metric  # noqa: PLC0415 - an extra

    response = Metric(
        "loadstone_response_seconds",
        "Response time from the intended start; quantiles are those of the last interval",
        "summary",
    )
    for place, total in totals.items():
        labels = _labels(place)
        if interval is not None and interval.place == place:
            for name, quantile in _QUANTILES.items():
                value = getattr(interval, name)
                if value is not None:
                    response.add_sample(response.name, labels | {"quantile": quantile}, value)
        response.add_sample(f"{response.name}_count", labels, total.responses)
        response.add_sample(f"{response.name}_sum", labels, total.response_s)
    return response


def _current(interval: Interval | None) -> list[Metric]:
    """Return gauges of the last interval; empty between drives."""
    from prometheus_client.core import Metric  # noqa: PLC0415 - an extra

    rate = Metric("loadstone_rate", "Transactions per second in the last interval", "gauge")
    rows = Metric("loadstone_row_rate", "Rows per second in the last interval", "gauge")
    failed = Metric("loadstone_failure_rate", "Failed transactions per second in the last interval", "gauge")
    clients = Metric("loadstone_clients", "Connected clients", "gauge")
    slowest = Metric("loadstone_response_max_seconds", "Longest response time of the last interval", "gauge")
    warmup = Metric("loadstone_warmup", "1 during the warm-up", "gauge")
    metrics = [rate, rows, failed, clients, slowest, warmup]
    if interval is None:
        return metrics
    labels = _labels(interval.place)
    values = (
        interval.rate_per_s,
        interval.rows_per_s,
        interval.failed_per_s,
        interval.clients,
        interval.max_s,
        float(interval.warmup),
    )
    for metric, value in zip(metrics, values, strict=True):
        if value is not None:
            metric.add_sample(metric.name, labels, value)
    return metrics


def _labels(place: Place) -> Labels:
    return asdict(place)
