"""What TSBS prints while and after queries run, from the histograms that the driver writes as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from loadstone.personalities.tsbs.go_json import indented
from loadstone.personalities.tsbs.query_figures import ALL, COLD, WARM, Group, block, merged, plain, quantiles
from loadstone.summary.histograms import Histogram, read_more

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    Write = Callable[[str], object]

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_RESPONSE = "response"
_STATEMENT = "statement-"
_WARMUP = "warmup-"
WARM_MARK = "\0warm"
"""Behind a label: the second of two runs of one query."""


@dataclass(slots=True)
class Samples:
    """The latencies of one or several drives over the same labels."""

    labels: Sequence[str]
    by_label: dict[str, Histogram] = field(default_factory=dict)
    response: Histogram = field(default_factory=Histogram)
    burnt: int = 0
    """Samples of the warm-up."""
    elapsed_s: float = 0.0
    """From the drive's beginning to the end of the last interval that was read."""
    _offsets: dict[Path, int] = field(default_factory=dict)

    def read(self, logs: Sequence[Path]) -> None:
        """Take in what the logs have gained."""
        for log in logs:
            for _ in self.each(log):
                pass

    def each(self, log: Path) -> Iterator[None]:
        """Take in what a log has gained, one interval after the other."""
        lines, self._offsets[log] = read_more(log, self._offsets.get(log, 0))
        for _, interval in groupby(lines, key=lambda line: line.start_s):
            for line in interval:
                self._take(line.tag, line.first, line.counts)
                self.elapsed_s = max(self.elapsed_s, line.start_s + line.length_s)
            yield

    def _take(self, tag: str, first: int, counts: Any) -> None:
        plain_tag = tag.removeprefix(_WARMUP)
        if plain_tag == _RESPONSE and tag == plain_tag:
            self.response.add(first, counts)
        if not plain_tag.startswith(_STATEMENT):
            return
        if tag != plain_tag:
            self.burnt += int(counts.sum())
            return
        number = int(plain_tag.removeprefix(_STATEMENT).partition(".")[0])
        self.by_label.setdefault(self.labels[number], Histogram()).add(first, counts)

    @property
    def count(self) -> int:
        """Queries that count: of two runs of one query, the first."""
        return sum(h.count for label, h in self.by_label.items() if not label.endswith(WARM_MARK))

    @property
    def all_count(self) -> int:
        """All queries that were answered."""
        return self.burnt + sum(histogram.count for histogram in self.by_label.values())

    def histograms(self, *, prewarmed: bool) -> dict[str, Histogram]:
        """Return TSBS's groups: one a label, one of all, and those of cold and warm queries."""
        found: dict[str, list[Histogram]] = {ALL: []}
        if prewarmed:
            found |= {COLD: [], WARM: []}
        for label, histogram in self.by_label.items():
            found[ALL].append(histogram)
            found.setdefault(label.removesuffix(WARM_MARK), []).append(histogram)
            if prewarmed:
                found[WARM if label.endswith(WARM_MARK) else COLD].append(histogram)
        return {label: merged(parts) for label, parts in found.items()}


class IntervalLines:
    """TSBS's report on standard error after every so many queries."""

    def __init__(
        self, samples: Samples, logs: Sequence[Path], asked: Mapping[str, int], *, prewarmed: bool, err: Write
    ) -> None:
        """Take where the samples come from; `asked` holds `interval`, `workers`, `burn_in` and `most`."""
        self._samples, self._logs, self._asked = samples, logs, asked
        self._prewarmed, self._err = prewarmed, err
        self._previous_s = 0.0
        self._previous = self._reported = 0
        self._burning = asked["burn_in"] > 0

    def show(self, progress: Mapping[str, Any] | None = None) -> None:
        """Print what is due while the queries run."""
        is_over = progress is not None and progress.get("over")
        if is_over or not (self._asked["interval"] or self._burning):
            return
        self._samples.read(self._logs)
        self._tell()

    def replay(self) -> None:
        """Print what was due while a drive went on that has ended."""
        for log in self._logs:
            for _ in self._samples.each(log):
                self._tell()

    def _tell(self) -> None:
        interval = self._asked["interval"]
        self.tell_burn_in()
        count, most = self._samples.count, self._asked["most"]
        # The very last report is the one on standard output.
        if interval and count // interval > self._reported and not (most and count >= most):
            self._reported = count // interval
            self._report(count)

    def tell_burn_in(self) -> None:
        """Say once that the burn-in is over, when samples beyond it have been read."""
        if self._burning and self._samples.count:
            self._burning = False
            done, workers = self._asked["burn_in"], self._asked["workers"]
            self._err(f"burn-in complete after {done} queries with {workers} workers\n")

    def _report(self, count: int) -> None:
        now_s, everything = self._samples.elapsed_s, self._samples.all_count
        recent = (everything - self._previous) / max(now_s - self._previous_s, 1e-9)
        overall = everything / max(now_s, 1e-9)
        groups = self._samples.histograms(prewarmed=self._prewarmed)
        self._err(
            f"After {count} queries with {self._asked['workers']} workers:\n"
            f"Interval query rate: {recent:.2f} queries/sec\tOverall query rate: {overall:.2f} queries/sec\n"
            + block({label: Group.of(found) for label, found in groups.items()})
            + "\n"
        )
        self._previous, self._previous_s = everything, now_s


def final_block(samples: Samples, seconds: float, workers: int, *, prewarmed: bool) -> str:
    """Return TSBS's closing report, without its wall clock time."""
    rate = samples.all_count / max(seconds, 1e-9)
    groups = samples.histograms(prewarmed=prewarmed)
    return (
        f"Run complete after {samples.count} queries with {workers} workers "
        f"(Overall query rate {rate:.2f} queries/sec):\n"
        + block({label: Group.of(found) for label, found in groups.items()})
    )


def results_json(
    samples: Samples, settings: Mapping[str, Any], times: tuple[int, int, float], *, prewarmed: bool
) -> str:
    """Return TSBS's results file; `times` are begin and end as Unix seconds, and the seconds between them."""
    begun, ended, seconds = times
    groups = samples.histograms(prewarmed=prewarmed)
    rates = {plain(label): found.count / max(seconds, 1e-9) for label, found in groups.items()}
    document = {
        "ResultFormatVersion": "0.1",
        "RunnerConfig": dict(settings),
        "StartTime": begun * 1000,
        "EndTime": ended * 1000,
        "DurationMillis": int(seconds * 1000),
        "Totals": {
            "burnIn": settings["BurnIn"],
            "limit": settings["Limit"],
            "overallQuantiles": {plain(label): quantiles(found) for label, found in groups.items()},
            "overallQueryRates": rates,
            "prewarmQueries": prewarmed,
        },
    }
    return indented(document, " ")


def percentile_line(name: str, histogram: Histogram) -> str:
    """Return the percentiles that the samples support, in one line."""
    supported = [p for p in PERCENTILES if histogram.supports(p)]
    figures = ", ".join(f"p{p:g} = {(histogram.percentile_ns(p) or 0) / 1e6:.3f} ms" for p in supported)
    missing = ", ".join(f"p{p:g}" for p in PERCENTILES if p not in supported)
    left_out = f"too few samples ({histogram.count}) for {missing}" if missing else ""
    return f" - {name}: {'; '.join(filter(None, [figures, left_out]))}\n"
