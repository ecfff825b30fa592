"""What became of the transactions of a drive that should have begun: a trial, from the drive's own files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.results.document_reader import read_document
from loadstone.results.documents import Drive
from loadstone.slo.documents import Trial
from loadstone.slo.lateness import was_late
from loadstone.slo.limits import Observed
from loadstone.summary.histograms import Histogram, bucket_top_ns, read_log

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.slo.documents import Kind
    from loadstone.slo.limits import Limit

_PERCENTILES = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """What a trial is to be; `rate` is None for a closed loop."""

    number: int
    kind: Kind
    rate: float | None
    seconds: float


def counted(drive: Path, plan: TrialPlan, limits: tuple[Limit, ...], errors: float | None) -> Trial:
    """Return the trial that a drive was; its folder is not named yet."""
    seen, histogram = observed(drive, limits)
    result = read_document(drive, Drive)
    lasted_s = max(1, result.end_ns - result.measure_ns) / 1e9
    trial = Trial(
        number=plan.number, kind=plan.kind, rate=plan.rate, seconds=plan.seconds, folder="",
        should=seen.should, in_time=list(seen.in_time), failed=seen.failed,
        misses=seen.misses(limits, errors) if plan.rate is not None else [],
        done_per_s=round(result.counts.done / lasted_s, 3),
    )  # fmt: skip
    trial.client_late = was_late(result, limits, trial.misses)
    trial.p50_ms, trial.p99_ms, trial.p999_ms = (_ms(histogram, one) for one in _PERCENTILES)
    return trial


def observed(drive: Path, limits: tuple[Limit, ...]) -> tuple[Observed, Histogram]:
    """Return what a drive counted, and its response times; a bucket counts as in time if all of it is.

    What the warm-up carried into the window should have begun before it, and has no latency: it is left out.
    """
    counts = read_document(drive, Drive).counts
    histogram = Histogram()
    for line in read_log(drive.with_name("latency.hlog")):
        if line.tag == "response":
            histogram.add(line.first, line.counts)
    in_time = tuple(_within(histogram, one.ns) for one in limits)
    failed = counts.failed + counts.skipped + counts.dropped
    return Observed(counts.scheduled, in_time, failed), histogram


def _within(histogram: Histogram, ns: int) -> int:
    last = 0
    while last < len(histogram.counts) and bucket_top_ns(last) <= ns:
        last += 1
    return int(histogram.counts[:last].sum())


def _ms(histogram: Histogram, percentile: float) -> float | None:
    found = histogram.percentile_ns(percentile) if histogram.supports(percentile) else None
    return None if found is None else found / 1e6
