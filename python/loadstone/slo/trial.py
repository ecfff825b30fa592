"""One trial of the search: a run at a load, and what became of the transactions that should have begun."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loadstone.ab.trial import refuse_failed
from loadstone.errors import ExitCode
from loadstone.private_server import Provision
from loadstone.results.documents import Drive
from loadstone.results.reading import exists, read_document
from loadstone.run import execute
from loadstone.slo.documents import Trial
from loadstone.slo.limits import Observed
from loadstone.slo.paced import Paced
from loadstone.summary.document import write_summary
from loadstone.summary.histograms import Histogram, bucket_top_ns, read_log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.ab.arms import Arm
    from loadstone.ab.parts import Parts
    from loadstone.results.documents.summary import PhaseFigures
    from loadstone.run import Listener, Request
    from loadstone.slo.documents import Kind
    from loadstone.slo.limits import Limit

_PERCENTILES = (50.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the trials of a search have in common."""

    request: Request
    parts: Parts
    arm: Arm
    folder: Path
    port: int
    sized: Mapping[str, str]
    limits: tuple[Limit, ...]
    errors: float | None
    listener: Listener

    def make_template(self, place: Path) -> None:
        """Load the data into `place`. Raises LoadstoneError."""
        provision = Provision(save_to=place, port=self.port, sized=self.sized)
        request = replace(
            self.request, out=self.folder / "template", provision=provision, part=self.parts.loading
        )
        refuse_failed(self.arm, execute(request, self.listener))

    def trial(self, template: Path, number: int, kind: Kind, rate: float | None, seconds: float) -> Trial:
        """Drive a load on a fresh copy of the data. Raises LoadstoneError, or InterruptedRun for a signal.

        A server that could not follow is an answer: its run may have failed, but its counts are there.
        """
        name = f"trials/{number:03d}"
        out = self.folder / name
        request = replace(
            self.request, out=out, provision=Provision(copy_of=template, port=self.port, sized=self.sized),
            part=Paced(self.parts, rate, seconds, self.request.seed + number), seed=self.request.seed,
        )  # fmt: skip
        outcome = execute(request, self.listener)
        drives = sorted(out.glob("targets/*/phases/*/drive.json"))
        counted = [path for path in drives if exists(path.with_name("latency.hlog"))]
        if outcome.exit_code is not ExitCode.FAILED or not counted:
            refuse_failed(self.arm, outcome)
        seen, histogram = observed(counted[-1], self.limits)
        phase = _phase(out)
        trial = Trial(
            number=number, kind=kind, rate=rate, seconds=seconds, folder=name, should=seen.should,
            in_time=list(seen.in_time), failed=seen.failed,
            misses=seen.misses(self.limits, self.errors) if rate is not None else [],
            done_per_s=round(histogram.count / seconds, 3),
            note=outcome.trouble.message if outcome.trouble else None,
        )  # fmt: skip
        trial.p50_ms, trial.p99_ms, trial.p999_ms = (_ms(histogram, one) for one in _PERCENTILES)
        if phase and phase.usage:
            trial.cpu_server, trial.cpu_client = phase.usage.cpu_server, phase.usage.cpu_client
        return trial


def observed(drive: Path, limits: tuple[Limit, ...]) -> tuple[Observed, Histogram]:
    """Return what a drive counted, and its response times; a bucket counts as in time if all of it is."""
    counts = read_document(drive, Drive).counts
    histogram = Histogram()
    for line in read_log(drive.with_name("latency.hlog")):
        if line.tag == "response":
            histogram.add(line.first, line.counts)
    in_time = tuple(_within(histogram, one.ns) for one in limits)
    failed = counts.failed + counts.skipped + counts.dropped
    should = counts.scheduled + (counts.carried or 0)
    return Observed(should, in_time, failed), histogram


def _within(histogram: Histogram, ns: int) -> int:
    last = 0
    while last < len(histogram.counts) and bucket_top_ns(last) <= ns:
        last += 1
    return int(histogram.counts[:last].sum())


def _ms(histogram: Histogram, percentile: float) -> float | None:
    found = histogram.percentile_ns(percentile) if histogram.supports(percentile) else None
    return None if found is None else found / 1e6


def _phase(folder: Path) -> PhaseFigures | None:
    phases = [one for one in write_summary(folder).phases if one.drive and one.kind == "script"]
    return phases[-1] if phases else None
