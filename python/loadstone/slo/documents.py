"""The types of slo.json (meaning: docs/highest-load.md)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from loadstone.experiment.documents import PhaseHead
from loadstone.results.documents.summary.units import Figure, Share

FORMAT = 1
NAME = "slo.json"

Kind = Literal["closed loop", "short", "whole"]


class Trial(Struct, kw_only=True):
    """A server driven at one load; `restored` of slo.json says what it had before."""

    number: int
    kind: Annotated[Kind, Meta(description="only whole ones decide")]
    started_at: Annotated[str | None, Meta(description="UTC")] = None
    rate: Annotated[Figure | None, Meta(description="transactions per second, Poisson; null: closed loop")]
    seconds: Annotated[Figure, Meta(description="measured window")]
    folder: Annotated[
        str,
        Meta(description="its run folder, below that of slo.json; empty: not kept"),
    ]
    should: Annotated[int, Meta(description="transactions that should have begun in the window")]
    in_time: Annotated[list[int], Meta(description="those done within each limit")]
    failed: int
    misses: Annotated[list[str], Meta(description="limits that were not kept, the worst first")]
    done_per_s: Figure
    p50_ms: Figure | None = None
    p99_ms: Figure | None = None
    p999_ms: Figure | None = None
    cpu_server: Annotated[Share | None, Meta(description="of all cores")] = None
    cpu_client: Share | None = None
    ceiling_per_s: Annotated[
        Figure | None,
        Meta(description="closed loop: rate of the driver against a server that answers at once"),
    ] = None
    client_late: Annotated[
        bool,
        Meta(description="the limits may have been missed because Loadstone's own threads were late"),
    ] = False
    counted: Annotated[
        bool, Meta(description="false: `client_late`, and made again; it moved nothing and decided nothing")
    ] = True
    note: str | None = None


class Changed(Struct, kw_only=True):
    """Trials that show that the server became slower during the search."""

    before: Annotated[
        list[int], Meta(description="trials that kept the limits, or had over half of the share in time")
    ]
    before_at: Annotated[str | None, Meta(description="UTC, when the last of them began")]
    since: Annotated[
        list[int],
        Meta(description="later trials at no higher load that had less than half of the share in time"),
    ]
    since_at: Annotated[str | None, Meta(description="UTC, when the first of them began")]


class Slo(PhaseHead, kw_only=True):
    """slo.json: every trial, and the bounds that they give; replaced as a whole after each trial."""

    limits: list[str]
    errors: Share | None
    restored: Annotated[
        bool,
        Meta(description="false: trials share one server, nothing is restored"),
    ] = True
    required: Annotated[Figure | None, Meta(description="`--require`, transactions per second")] = None
    capacity: Annotated[Figure | None, Meta(description="rate of the closed loop")] = None
    top: Annotated[
        Figure | None,
        Meta(description="highest load to try: twice `capacity`, or 80 % of `ceiling_per_s` if that is less"),
    ] = None
    found: Annotated[
        Literal["found", "all kept", "none kept", "not decided"], Meta(description="how far the bounds go")
    ] = "not decided"
    changed: Annotated[
        Changed | None, Meta(description="why it is not decided: the server became slower; no bounds then")
    ] = None
    lower: Annotated[Figure | None, Meta(description="highest load found to keep the limits")] = None
    upper: Annotated[Figure | None, Meta(description="next load, found not to keep them")] = None
    binds: Annotated[str | None, Meta(description="the limit that `upper` misses most")] = None
    irregular: Annotated[list[Figure], Meta(description="loads below `lower` that do not keep them")] = field(
        default_factory=list
    )
    trials: list[Trial] = field(default_factory=list)
