"""summary.json as a whole."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from loadstone.results.documents.run import PlannedFinding, PlannedSource, Run
from loadstone.results.documents.summary.loads import StepsFigures
from loadstone.results.documents.summary.machine import Resources
from loadstone.results.documents.summary.phases import Grid, Group, PhaseFigures, ScalingFigures, Sweep
from loadstone.results.documents.summary.queries import Concurrency, Imports, PlainQueriesFigures, TargetCost
from loadstone.results.documents.summary.units import Figures, Value, Variant
from loadstone.results.documents.target import Target

FORMAT = 7
"""Of summary.json."""

Level = Literal["info", "warning", "error"]


class PlanFigures(Figures, kw_only=True):
    """The options of the run."""

    size: Value
    seed: Value
    repeats: Value


class ScenarioFigures(Figures, kw_only=True):
    """A scenario of the run."""

    id: str | None
    version: Value
    title: Value
    why: Value
    source: PlannedSource | None
    parameters: Annotated[dict[str, object], Meta(description="values by name")]
    findings: list[PlannedFinding] = msgspec.field(default_factory=list)


class TargetFigures(Target, kw_only=True, frozen=True):
    """A target: its target.json, and what its machine did."""

    short_label: Annotated[str, Meta(description="as short as tells it from the others")]
    resources: Resources


class Warning(Figures, kw_only=True):
    """Something the reader must know before believing a figure; an error: a figure must not be used."""

    kind: str
    level: Level
    message: Annotated[str, Meta(description="what is the case, with its figures")]
    hint: Annotated[str, Meta(description="what to do")]
    target: str | None
    phase: Annotated[str | None, Meta(description="the phase's folder")]


class Skipped(Figures, kw_only=True):
    """A phase that did not run."""

    target: str | None
    phase: str | None
    title: Value
    variant: Variant
    reason: str


class Verdict(Figures, kw_only=True):
    """The answer to one of the four questions that decide whether the figures may be used."""

    question: str
    level: Annotated[str, Meta(description="good, warning, bad or unknown")]
    answer: str
    detail: str


class VerifiedPhase(Figures, kw_only=True):
    """A load in steps of the run that verified an advice."""

    title: str | None
    id: str | None
    scenario: str | None
    target: str
    variant: Variant
    state: str
    steps: StepsFigures
    flat: Annotated[bool | None, Meta(description="whether it stayed as fast as it began")]
    sentence: str


class Verification(Figures, kw_only=True):
    """The run that verified an advice."""

    id: str | None
    state: str
    phases: list[VerifiedPhase]


class SummaryRun(Run, kw_only=True, frozen=True):
    """run.json, with `killed` as one more state."""

    state: str | None = None  # type: ignore[assignment]


class Summary(Figures, kw_only=True):
    """summary.json: what the report says, computed from the run folder alone."""

    format: int
    run: SummaryRun
    plan: PlanFigures
    scenarios: list[ScenarioFigures]
    environment: Annotated[dict[str, object], Meta(description="environment.json as it was recorded")]
    cores: int | None
    targets: list[TargetFigures]
    phases: list[PhaseFigures]
    groups: list[Group]
    sweeps: list[Sweep]
    grids: list[Grid]
    scaling: list[ScalingFigures]
    plain_queries: list[PlainQueriesFigures]
    concurrency: list[Concurrency]
    imports: list[Imports]
    costs: list[TargetCost]
    verification: Verification | None
    warnings: list[Warning]
    skipped: list[Skipped]
    verdict: list[Verdict]
