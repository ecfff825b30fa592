"""What a run says before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.personalities.sysbench.limits import Limits


def banner(limits: Limits) -> Iterator[str]:
    """Messages about the run's options."""
    yield "Running the test with following options:"
    yield f"Number of threads: {limits.threads}"
    if limits.rate_per_s:
        yield f"Target transaction rate: {limits.rate_per_s:.15g}/sec"
    if limits.report_interval_s:
        yield f"Report intermediate results every {limits.report_interval_s} second(s)"
    if limits.checkpoints_s:
        yield f"Report checkpoint(s) at {', '.join(map(str, limits.checkpoints_s))} seconds"
    if limits.debug:
        yield "Debug mode enabled.\n"
    if limits.validate:
        yield "Validation checks: on.\n"
    source = f"seed ({limits.seed}).\n" if limits.seed else "current time\n"
    yield f"Initializing random number generator from {source}"
    if limits.grace_s is not None:
        yield f"Forcing shutdown in {limits.time_s + limits.grace_s} seconds"
    yield ""
