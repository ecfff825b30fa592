"""A line of history.jsonl: one target of one run (meaning: docs/history.md)."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, field

from loadstone.results.documents.base import Count, Struct, Words

FORMAT = 1
LARGEST = 1e20
"""Figures above it are damage, or of no use."""

Measured = Annotated[float, Meta(gt=0, le=LARGEST)]
Spread = Annotated[float, Meta(ge=0, le=LARGEST)]
End = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]


class MetricLine(Struct, frozen=True, kw_only=True):
    """A metric of a phase."""

    name: str
    unit: str
    better: Literal["higher", "lower"]
    primary: Annotated[bool, Meta(description="the metric that decides; at most one a phase")] = False
    value: Annotated[Measured, Meta(description="geometric mean of the repeats")]
    n: Annotated[Count, Meta(description="repeats, or intervals of the one run (`basis`)")]
    low: Annotated[End | None, Meta(description="95 % interval")] = None
    high: End | None = None
    basis: Annotated[
        Literal["repeats", "within"] | None,
        Meta(description="the interval is over repeats, or within one run: too narrow to compare runs"),
    ] = None
    values: Annotated[list[Measured], Meta(min_length=1, description="one a repeat")]
    aa_spread: Annotated[
        Spread | None, Meta(description="of `loadstone ab`: standard deviation of ln(A'/A) over blocks")
    ] = None


class PhaseLine(Struct, frozen=True, kw_only=True):
    """A phase and variant."""

    scenario: str | None = None
    id: str | None = None
    title: str
    variant: dict[str, Words] = field(default_factory=dict)
    plan: Annotated[str | None, Meta(description="digest of all that decides what the phase does")] = None
    missing: Annotated[str | None, Meta(description="why metrics, or some repeats, are missing")] = None
    metrics: list[MetricLine]


class Machine(Struct, frozen=True, kw_only=True):
    """The machine that Loadstone ran on."""

    host: Words = None
    cpu: Words = None
    cores: Words = None
    memory_bytes: Words = None
    kernel: Words = None


class TargetLine(Struct, frozen=True, kw_only=True):
    """What was measured."""

    id: str
    label: str
    engine: str | None = None
    version: str | None = None
    build: str | None = None
    settings: Annotated[dict[str, Words], Meta(description="those that are not at their defaults")] = field(
        default_factory=dict
    )


class HistoryLine(Struct, frozen=True, kw_only=True):
    """One target of one run."""

    format: Annotated[int, Meta(ge=1, le=FORMAT)]
    loadstone: Annotated[str | None, Meta(description="version that measured")] = None
    run: str
    time: Annotated[str, Meta(description="start of the run, ISO 8601 with its zone")]
    commit: str | None = None
    size: Words = None
    seed: Words = None
    machine: Machine
    target: TargetLine
    phases: list[PhaseLine]

    def check(self) -> None:
        """Raise ValueError where the time is none."""
        self.at()

    def at(self) -> datetime:
        """Return the start of the run."""
        found = datetime.fromisoformat(self.time)
        if found.tzinfo is None:
            message = f"the time {self.time!r} has no zone"
            raise ValueError(message)
        return found

    @property
    def key(self) -> tuple[str, str, Words, str]:
        """What names the run and target; run ids alone may be equal on two machines."""
        return self.run, self.time, self.machine.host, self.target.id
