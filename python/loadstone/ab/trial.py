"""One trial: a fresh server on a fresh copy of its arm's data, run as any scenario, and its figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

from loadstone.ab.control import measure
from loadstone.ab.documents import Trial
from loadstone.compare.metrics import identity, values_of
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.experiment.runs import refuse_failed
from loadstone.host.environment import read_clocks
from loadstone.live.figures import LiveTrial, announce
from loadstone.private_server import Provision
from loadstone.run import execute
from loadstone.summary.document import write_summary

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from loadstone.compare.metrics import PhaseValues
    from loadstone.experiment.arms import Arm
    from loadstone.experiment.parts import Parts
    from loadstone.results.documents.summary import Summary
    from loadstone.run import Listener, Request


@dataclass(frozen=True, slots=True)
class Measured:
    """What a trial measured."""

    document: Trial
    phases: Mapping[str, PhaseValues]
    """By an identity that both arms share: what differs between their parameters is left out."""


@dataclass(frozen=True, slots=True)
class Bench:
    """All that the trials of an experiment have in common."""

    request: Request
    parts: Parts
    folder: Path
    """The experiment's folder."""
    port: int
    sized: Mapping[str, str]
    ignored: Collection[str]
    """Parameters that arms have of their own."""
    listener: Listener

    def make_template(self, arm: Arm, place: Path) -> float:
        """Load an arm's data into `place`; returns the seconds that it took. Raises LoadstoneError."""
        begin = monotonic()
        out = self.folder / "templates" / arm.slug
        provision = Provision(save_to=place, port=self.port, sized=self.sized)
        self._run(arm, replace(self.request, out=out, provision=provision, part=self.parts.loading))
        if not place.is_dir():
            raise RunFailedError(
                f"arm {arm.name}: the server did not stop in order, so its data cannot be used",
                f"Look at {out}/report.html and the server's settings.",
            )
        return monotonic() - begin

    def trial(self, arm: Arm, template: Path, number: int, block: int) -> Measured:
        """Measure an arm once. Raises LoadstoneError, or InterruptedRun for a signal."""
        announce(self.listener, LiveTrial(number, arm=arm.name, block=block))
        began, begin = read_clocks().started_at, monotonic()
        control = measure(template.parent)
        name = f"trials/{number:03d}-{arm.slug}"
        provision = Provision(copy_of=template, port=self.port, sized=self.sized)
        out = self.folder / name
        self._run(arm, replace(self.request, out=out, provision=provision, part=self.parts.measuring))
        summary = write_summary(out)
        phases = dict(_shared(values_of(summary, summary.targets[0].id), self.ignored))
        document = Trial(
            number=number, block=block, arm=arm.name, folder=name, started_at=began,  # type: ignore[arg-type]
            seconds=round(monotonic() - begin, 3), cpu_us=round(control.cpu_us, 4),
            fsync_us=round(control.fsync_us, 3), checkpoints=_checkpoints(summary),
            notes=[warning.message for warning in summary.warnings if warning.level == "error"],
            values={key: _plain(phase) for key, phase in phases.items()},
        )  # fmt: skip
        return Measured(document, phases)

    def _run(self, arm: Arm, request: Request) -> None:
        asked = replace(
            request, targets=[arm.target], overrides={**request.overrides, **arm.parameters}, calibrate=False
        )
        try:
            outcome = execute(asked, self.listener)
        except LoadstoneError as error:
            error.message = f"arm {arm.name}: {error.message}"
            raise
        refuse_failed(f"arm {arm.name}", outcome)


def _shared(found: Mapping[str, PhaseValues], ignored: Collection[str]) -> dict[str, PhaseValues]:
    shared = {}
    for phase in found.values():
        phase.variant = {name: value for name, value in phase.variant.items() if name not in ignored}
        shared[identity(phase.scenario, phase.id, phase.variant)] = phase
    return shared


def _plain(phase: PhaseValues) -> dict[str, float]:
    return {name: one for name, series in phase.series.items() for one in series.by_repeat().values()}


def _checkpoints(summary: Summary) -> int:
    return sum(phase.usage.checkpoints for phase in summary.phases if phase.drive and phase.usage)
