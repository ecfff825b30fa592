"""The results of a run: sysbench's blocks, then what was asked for beyond them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.personalities.sysbench.figures import totals_of
from loadstone.personalities.sysbench.statistics import block, histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loadstone.personalities.sysbench.limits import Limits
    from loadstone.personalities.sysbench.log import Log

    Write = Callable[[str], object]
    Account = Mapping[str, Any]


def print_results(limits: Limits, account: Account, log: Log) -> None:
    """Print what sysbench prints."""
    if limits.histogram:
        log.text("Latency histogram (values are in milliseconds)")
        log.plain(histogram(account.get("buckets") or []))
        log.text(" ")
    for text in block(totals_of(account), limits.percentile):
        log.text(text)


def print_beyond(limits: Limits, account: Account, log: Log, err: Write) -> None:
    """Print percentiles that were asked for, and on standard error what went wrong without ending the run."""
    for percentile in limits.percentiles:
        value_ns = account["details"]["response_ns"].get(f"{percentile:g}")
        value = "-" if value_ns is None else f"{value_ns / 1e6:.3f}"
        log.text(f"p{percentile:g} (ms): {value:>37}")
    dropped = account["counts"]["dropped"]
    if dropped and limits.rate_per_s:
        err(
            f"sysbench: {dropped} events were due and did not begin before the end: "
            f"the rate is more than {limits.threads} clients can keep up with\n"
        )
