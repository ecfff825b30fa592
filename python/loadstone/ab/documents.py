"""The types of ab.json (meaning: docs/is-it-slower.md)."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from loadstone.compare.documents import Comparison
from loadstone.experiment.documents import TrialsHead
from loadstone.results.documents.summary.units import Figure, Share

FORMAT = 1
NAME = "ab.json"

ArmName = Literal["A", "B", "A'"]


class ArmDocument(Struct, kw_only=True):
    """One arm."""

    name: ArmName
    label: str
    target: Annotated[str, Meta(description="as `--target` takes it, with its settings, without secrets")]
    parameters: Annotated[dict[str, str], Meta(description="of the scenario, for this arm alone")]
    template_bytes: Annotated[int | None, Meta(description="size of the loaded data directory")] = None
    template_s: Annotated[Figure | None, Meta(description="how long loading it took")] = None


class Trial(Struct, kw_only=True):
    """A fresh server on a fresh copy of an arm's template, measured once."""

    number: int
    block: int
    arm: ArmName
    folder: Annotated[str, Meta(description="its run folder, below that of ab.json")]
    started_at: str
    seconds: Annotated[Figure, Meta(description="with copy, control, start and stop")]
    cpu_us: Annotated[Figure, Meta(description="control: median of one piece of work on a core")]
    fsync_us: Annotated[Figure, Meta(description="control: median of writing and syncing 8 kB")]
    checkpoints: Annotated[int, Meta(description="that began in the measured windows")]
    notes: list[str] = field(default_factory=list)
    values: Annotated[
        dict[str, dict[str, Figure]], Meta(description="by phase (scenario, id, variant as JSON) and metric")
    ]


class ControlCheck(Struct, kw_only=True):
    """Whether the machine itself differed between A and B."""

    name: Literal["CPU", "fsync"]
    ratio: Annotated[Figure, Meta(description="time in trials of B over that in trials of A")]
    low: Annotated[Figure | None, Meta(description="lower end of its 95 % interval")] = None
    high: Figure | None = None
    p_value: Share
    moved: Annotated[bool, Meta(description="p is so small that the machine did differ")]


class PhaseCheck(Struct, kw_only=True):
    """What is known of the deciding metric of a phase beside its row in `comparison`."""

    phase: str
    metric: str
    decided_at: Annotated[int | None, Meta(description="blocks after which the verdict was reached")]
    sign_flip_p: Annotated[Share | None, Meta(description="exact permutation test")]
    hodges_lehmann: Annotated[Figure | None, Meta(description="B over A")]
    aa_ratio: Annotated[Figure | None, Meta(description="A' over A; null without A'")] = None
    aa_p_value: Share | None = None
    aa_spread: Annotated[
        Figure | None, Meta(description="standard deviation of ln(A'/A) over blocks: the noise floor")
    ] = None
    slot_effect: Annotated[
        Figure | None, Meta(description="how much larger figures are for what runs later in a block")
    ] = None
    slot_p_value: Share | None = None


class Experiment(TrialsHead, kw_only=True):
    """ab.json: arms, every trial, and what they say; replaced as a whole after each block."""

    matters: Share
    looks: list[int]
    max_time_s: Figure | None = None
    arms: list[ArmDocument]
    orders: Annotated[list[list[ArmName]], Meta(description="of the blocks that were complete")] = field(
        default_factory=list
    )
    trials: list[Trial] = field(default_factory=list)
    controls: list[ControlCheck] = field(default_factory=list)
    checks: list[PhaseCheck] = field(default_factory=list)
    comparison: Annotated[Comparison | None, Meta(description="as `loadstone compare` has it")] = None
