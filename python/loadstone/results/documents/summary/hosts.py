"""The load hosts of a drive, in summary.json."""

from typing import Annotated

from msgspec import Meta

from loadstone.results.documents.summary.units import Figures, Nanoseconds, PerSecond, Share


class HostFigures(Figures, kw_only=True):
    """One load host."""

    name: str
    state: str | None
    reason: str | None
    clients: int | None
    tps: PerSecond | None
    p50_ns: Nanoseconds | None
    p99_ns: Nanoseconds | None
    p99_low_ns: Annotated[Nanoseconds | None, Meta(description="lower quartile over the intervals")]
    p99_high_ns: Annotated[Nanoseconds | None, Meta(description="upper quartile")]
    cpu: Annotated[Share | None, Meta(description="of the wall time of its driver threads")]
    loop_lag_p99_ns: Nanoseconds | None
    ceiling_tps: PerSecond | None
    clock_error_ns: Nanoseconds | None
    began_after_go_ns: Nanoseconds | None
    agent_cpu: Annotated[
        Share | None, Meta(description="of a core, what its agent needed beside the driver")
    ] = None
    agent_bytes_per_s: Annotated[PerSecond | None, Meta(description="the agent's questions and answers")] = (
        None
    )


class HostsFigures(Figures, kw_only=True):
    """All load hosts of a drive."""

    start_skew_ns: Nanoseconds | None
    start_skew_limit_ns: Nanoseconds | None
    hosts: list[HostFigures]
