"""What the documents of all experiments begin with, and their text."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from loadstone import __version__
from loadstone.results.documents.summary.units import Value
from loadstone.results.json_files import to_json
from loadstone.results.redact import redact_command

State = Literal["running", "complete", "failed", "interrupted"]


class Head(Struct, kw_only=True):
    """What the document of an experiment begins with."""

    format: Annotated[int, Meta(description="of this document")]
    loadstone: Annotated[str, Meta(description="version of Loadstone")]
    id: Annotated[str, Meta(description="name of the folder that was made for it")]
    state: State
    reason: Annotated[str | None, Meta(description="why it is not complete")] = None
    started_at: Annotated[str, Meta(description="UTC")]
    ended_at: str | None = None
    command: Annotated[list[str], Meta(description="without secrets")]
    scenario: str


class TrialsHead(Head, kw_only=True):
    """The same of an experiment whose trials run one size of a scenario with one set of parameters."""

    size: str
    seed: Annotated[int, Meta(description="of every random choice")]
    parameters: Annotated[dict[str, str], Meta(description="of the scenario, as they were given")]
    settings: Annotated[dict[str, Value], Meta(description="of every server, as they were given")]


class PhaseHead(TrialsHead, kw_only=True):
    """The same of an experiment with one phase on one target."""

    phase: Annotated[str, Meta(description="its id")]
    target: str


D = TypeVar("D", bound=Head)


def begun(kind: type[D], run_id: str, started_at: str, command: Sequence[str], **own: Any) -> D:
    """Return the document of an experiment that begins; `own` are the keys that only some documents have."""
    return kind(
        loadstone=__version__, id=run_id, state="running", started_at=started_at,
        command=redact_command(list(command)), **own,
    )  # fmt: skip


def text_of(document: Struct) -> str:
    """Return a document as its file has it."""
    return to_json(msgspec.to_builtins(document), indent=1) + "\n"
