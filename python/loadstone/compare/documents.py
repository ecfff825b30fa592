"""The types of what `loadstone compare --format json` prints (meaning: docs/compare-runs.md)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from loadstone.results.documents.summary.units import Figure, Share, Value, Variant

FORMAT = 1

VerdictName = Literal[
    "worse", "better", "small", "same", "undecided", "indicative", "missing", "not comparable", "invalid"
]
Basis = Literal["repeats", "rounds", "within", "blocks"]
Unit = Literal["repeats", "blocks"]


class Side(Struct, kw_only=True):
    """One target of one run folder."""

    name: Annotated[str, Meta(description="A, B, …")]
    label: Annotated[str, Meta(description="the target's name for people")]
    folder: str
    target: str
    run: str | None
    started_at: str | None
    state: str
    repeats: int


class Difference(Struct, kw_only=True):
    """Something in which the sides differ, or that a reader must know of one of them."""

    kind: Annotated[str, Meta(description="plan, data, run, machine, server, setting, loadstone or order")]
    what: str
    a: Value
    b: Value
    blocks: Annotated[bool, Meta(description="the figures cannot be compared")] = False


class Row(Struct, kw_only=True):
    """One metric of one phase."""

    scenario: str | None
    phase: str | None
    title: str
    variant: Variant
    metric: str
    unit: str
    better: Literal["higher", "lower"]
    primary: Annotated[bool, Meta(description="decides about the exit code; one a phase")]
    a: Annotated[Figure | None, Meta(description="geometric mean of the repeats")] = None
    b: Figure | None = None
    ratio: Annotated[Figure | None, Meta(description="B over A")] = None
    low: Annotated[Figure | None, Meta(description="95 % interval of the ratio")] = None
    high: Figure | None = None
    basis: Annotated[Basis | None, Meta(description="what the interval comes from")] = None
    paired: bool = False
    noise: Annotated[
        Share | None, Meta(description="standard deviation between values of one side, relative")
    ] = None
    smallest_effect: Annotated[
        Share | None, Meta(description="difference that would have been found four times in five")
    ] = None
    repeats_a: int = 0
    repeats_b: int = 0
    needed: Annotated[int | None, Meta(description="repeats that would decide; null: over 1,000")] = None
    p_value: Share | None = None
    adjusted: Annotated[
        Share | None,
        Meta(description="p by Holm among primary metrics, q by Benjamini-Hochberg among others"),
    ] = None
    verdict: VerdictName = "undecided"
    leaning: Annotated[Literal["worse", "better"] | None, Meta(description="of an indicative verdict")] = None
    reason: Annotated[
        str | None, Meta(description="why something is missing; of blocks: how it was decided")
    ] = None
    accepted: Annotated[str | None, Meta(description="by which entry of the accept list")] = None


class Overall(Struct, kw_only=True):
    """The geometric mean over the speeds of all phases; above 1: B is faster."""

    ratio: Figure
    low: Figure | None
    high: Figure | None
    phases: int
    repeats: int


class Comparison(Struct, kw_only=True):
    """B against A."""

    a: Side
    b: Side
    comparable: bool
    paired: bool
    unit: Annotated[Unit, Meta(description="what figures are the means of; blocks: of `loadstone ab`")] = (
        "repeats"
    )
    differences: list[Difference]
    notes: list[str]
    rows: list[Row]
    overall: Overall | None
    advice: Annotated[str | None, Meta(description="the command that would decide what is open")]


class Document(Struct, kw_only=True):
    """All comparisons of one call."""

    format: int
    loadstone: str
    matters: Annotated[Share, Meta(description="differences inside ± this do not matter")]
    comparisons: list[Comparison]
