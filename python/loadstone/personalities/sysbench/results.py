"""The results of a run: sysbench's blocks, then what was asked for beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.log import explains
from loadstone.personalities.sysbench.statistics import block, histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from loadstone.personalities.sysbench.limits import Limits
    from loadstone.personalities.sysbench.log import Log
    from loadstone.personalities.sysbench.statistics import Totals

    Write = Callable[[str], object]
    DriveResult = Mapping[str, Any]


def print_results(limits: Limits, totals: Totals, log: Log, folder: Path | None) -> None:
    """Print what sysbench prints; `folder` has the driver's files where a distribution is wanted."""
    if limits.histogram and folder is not None:
        from loadstone.personalities.sysbench.distribution import classes, responses  # noqa: PLC0415 - numpy

        log.text("Latency histogram (values are in milliseconds)")
        log.plain(histogram(classes(responses(folder))))
        log.text(" ")
    for text in block(totals, limits.percentile):
        log.text(text)


def print_beyond(limits: Limits, account: DriveResult, log: Log, err: Write, folder: Path | None) -> None:
    """Print percentiles that were asked for, and on standard error what went wrong without ending the run."""
    if limits.percentiles and folder is not None:
        from loadstone.personalities.sysbench.distribution import responses  # noqa: PLC0415 - numpy

        found = responses(folder)
        for percentile in limits.percentiles:
            value_ns = found.percentile_ns(percentile) if found.supports(percentile) else None
            value = "-" if value_ns is None else f"{value_ns / 1e6:.3f}"
            log.text(f"p{percentile:g} (ms): {value:>37}")
    if explains(limits.verbosity):
        for error in account["operations"]["ignored"]:
            said = error["message"].split("\n", 1)[0].rstrip()
            err(f"sysbench: ignored errors: {error['sqlstate']} (x {error['count']}): {said}\n")
    lost = account["lost_clients"]
    if lost["count"]:
        err(
            f"sysbench: {lost['count']} of {limits.threads} threads had lost their connection at the end: "
            f"{lost['message']}\n"
        )
    dropped = account["counts"]["dropped"]
    if dropped and limits.rate_per_s:
        err(
            f"sysbench: {dropped} events were due and did not begin before the end: "
            f"the rate is more than {limits.threads} clients can keep up with\n"
        )
