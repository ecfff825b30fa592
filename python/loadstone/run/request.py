"""What a run is requested, who listens to it, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from loadstone.private_server.provision import EMPTY, Provision
from loadstone.watch.watchers import WatchOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.errors import ExitCode, LoadstoneError
    from loadstone.model import InOut
    from loadstone.plan.model import Plan, PlannedPhase
    from loadstone.results.folder import RunFolder
    from loadstone.scenario.scenario import Scenario
    from loadstone.workload.drive import Progress


@dataclass(frozen=True, slots=True)
class Request:
    """What the user requested."""

    scenarios: Sequence[Scenario]
    targets: Sequence[str]
    size: str = "small"
    overrides: Mapping[str, str] = field(default_factory=dict)
    seed: int = 1
    repeats: int = 1
    out: Path | None = None
    resume: Path | None = None
    """The folder of a broken run to continue with."""
    storage: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    prices: Sequence[str] = ()
    """`TARGET=2.50/h` each: what an hour of a target costs."""
    keep: bool = False
    replace: bool = False
    allow_shell: bool = False
    """Let scenarios that are not built in run commands on this machine."""
    ignore_space: bool = False
    """Begin bulk loads also where they are not expected to find room."""
    calibrate: bool = True
    verify: bool = False
    """Load once more into partitions of the advised size."""
    io: InOut = "auto"
    hosts: str | None = None
    """Where the load hosts are, as `--hosts` says it; None: the load comes from this process."""
    command: Sequence[str] = ()
    provision: Provision = EMPTY
    """Which data private servers start with, and where they go."""
    watch: WatchOptions = field(default_factory=WatchOptions)
    """What watches the machines of servers that are others."""
    part: Callable[[Plan], Plan] | None = None
    """Takes from the plan what is to be run; None: all of it."""


class Listener(Protocol):
    """Who wants to see the run go on: the terminal."""

    def said(self, message: str) -> None:
        """Keep what is being done."""

    def planned(self, plan: Plan) -> None:
        """Keep the final plan: the first phase is about to begin."""

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Note that a phase begins."""

    def progressed(self, target: str, phase: PlannedPhase, progress: Progress) -> None:
        """Keep a drive, about ten times a second while it is running."""

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Note that a phase has ended; `document` is its phase.json."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the results lie, and how the run ended."""

    folder: RunFolder
    exit_code: ExitCode
    trouble: LoadstoneError | None = None
    farewells: Sequence[str] = ()
    """How to reach the private servers that were asked to stay."""
