"""Rates, ratios and latencies in summary.json."""

from typing import Annotated

from msgspec import Meta

from loadstone.results.documents.summary.units import Figure, Figures, Nanoseconds, Seconds, Share


class Rate(Figures, kw_only=True):
    """A rate with its 95 % interval, or why it has none."""

    value: Annotated[Figure | None, Meta(extra={"unit": "1/s"})]
    low: Annotated[Figure | None, Meta(extra={"unit": "1/s"})]
    high: Annotated[Figure | None, Meta(extra={"unit": "1/s"})]
    n: Annotated[int, Meta(description="intervals, or repeats, that it comes from")]
    reason: Annotated[str | None, Meta(description="why there is no interval")]
    batch: Annotated[int | None, Meta(description="intervals that were joined into one batch")] = None
    degrees_of_freedom: Figure | None = None
    relative_se: Annotated[Share | None, Meta(description="standard error over the value")] = None
    method: str | None = None


class GroupRate(Rate, kw_only=True):
    """A rate over repeats: of one its own, of several the median with least and greatest."""

    spread: Annotated[str | None, Meta(description="what low and high are")]


class Drift(Figures, kw_only=True):
    """How throughput moved from the first to the last third of the measured time."""

    change: Annotated[Share, Meta(description="below 0: it fell")]
    p_value: Share


class Ratio(Figures, kw_only=True):
    """A figure over that of the first target."""

    value: Figure
    low: Figure | None
    high: Figure | None
    method: str


class RateRatio(Figures, kw_only=True):
    """A rate over another one, with its 95 % interval."""

    value: Figure
    low: Figure | None
    high: Figure | None
    differs: Annotated[bool | None, Meta(description="whether the interval leaves out 1")]
    confidence: Share | None = None


class Percentile(Figures, kw_only=True):
    """A percentile of a latency."""

    percentile: Figure
    value_ns: Nanoseconds | None
    reason: Annotated[str | None, Meta(description="why it is left out")]


class LatencyStats(Figures, kw_only=True):
    """A distribution of latencies."""

    count: int | None
    mean_ns: Nanoseconds | None
    stddev_ns: Nanoseconds | None
    min_ns: Nanoseconds | None
    max_ns: Nanoseconds | None


class Latency(LatencyStats, kw_only=True):
    """A distribution of latencies, with the percentiles that its samples support."""

    percentiles: list[Percentile]


class MedianLatencies(Figures, kw_only=True):
    """Medians of latencies over the repeats."""

    mean_ns: Nanoseconds | None
    stddev_ns: Nanoseconds | None
    max_ns: Nanoseconds | None
    min_ns: Nanoseconds | None


class CurvePoint(Figures, kw_only=True):
    """A point of a distribution."""

    beyond: Annotated[Share, Meta(description="share of the samples that took longer")]
    value_ns: Nanoseconds


class LatencyPoint(Figures, kw_only=True):
    """Latencies at one time of a phase."""

    t_s: Seconds
    mean_ns: Nanoseconds | None
    p50_ns: Nanoseconds | None
    p95_ns: Nanoseconds | None
    p99_ns: Nanoseconds | None


class RatePoint(Figures, kw_only=True):
    """Throughput at one time of a phase."""

    t_s: Seconds
    tps: Figure
    failed_per_s: Figure
    warmup: bool
    rows_per_s: Figure | None = None
    metrics_per_s: Figure | None = None


class FreshnessFigures(Figures, kw_only=True):
    """The time from handing over a row until a query saw it."""

    count: Annotated[int, Meta(description="row times that were seen")]
    never_seen: int
    mean_ns: Nanoseconds | None
    max_ns: Nanoseconds | None
    percentiles: list[Percentile]
    probe_every_ns: Annotated[Nanoseconds | None, Meta(description="median time between two answers")]
