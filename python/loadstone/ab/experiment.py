"""Blocks of trials until the answer is known: templates, orders, looks, limits, and any way of ending."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from loadstone.ab import statistics, texts
from loadstone.ab.analysis import Findings, Rules, analyse
from loadstone.ab.documents import NAME
from loadstone.ab.documents import Experiment as Document
from loadstone.ab.order import orders
from loadstone.ab.outcome import finished
from loadstone.errors import RunFailedError
from loadstone.experiment.experiment import Experiment as AnyExperiment
from loadstone.private_server import PrivateFolder
from loadstone.private_server.provision import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from loadstone.ab.trial import Bench, Measured
    from loadstone.experiment.arms import Arm
    from loadstone.plan.model import Plan
    from loadstone.signals import Signals

_SPARE_BYTES = 256 << 20
"""Beside the copy of the data: WAL of the trial."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When an experiment ends at the latest."""

    looks: Sequence[int] = statistics.LOOKS
    """Blocks after which it may end; the last is the largest number of blocks."""
    seconds: float | None = None


def looks_until(blocks: int) -> tuple[int, ...]:
    """Return the usual looks up to so many blocks, and one at the last."""
    return (*(look for look in statistics.LOOKS if look < blocks), blocks)


@dataclass
class Experiment(AnyExperiment[Document]):
    """Blocks of one trial of each arm, until all is decided."""

    NAME: ClassVar[str] = NAME
    bench: Bench
    arms: Sequence[Arm]
    limits: Limits
    plan: Plan
    """What a trial runs, of arm A."""
    trial_s: float
    """Estimated seconds of a trial."""
    noise: float | None = None
    """Spread of ln(A'/A) between blocks, of the history."""
    blocks: list[Mapping[str, Measured]] = field(default_factory=list, init=False)
    findings: Findings = field(default_factory=Findings, init=False)
    _begin_s: float = field(default_factory=monotonic, init=False)
    _trials: int = field(default=0, init=False)

    @property
    def folder(self) -> Path:
        """Where everything is written."""
        return self.bench.folder

    @property
    def matters(self) -> float:
        """Differences smaller than this do not matter."""
        return float(self.document.matters)

    @property
    def has_measured(self) -> bool:
        """Whether a block is complete."""
        return bool(self.blocks)

    def before(self) -> Iterator[str]:
        """Yield what is going to happen, and what it could find."""
        return texts.before(self)

    def perform(self, signals: Signals) -> None:
        """Run blocks until all is decided, or a limit is reached. Raises LoadstoneError, InterruptedRun."""
        with PrivateFolder(self.bench.request.storage) as place:
            self._run_blocks(self._make_templates(place.path), signals)

    def settle(self) -> None:
        """Put checks, controls and the comparison into the document."""
        self.document.checks, self.document.controls = self.findings.checks, self.findings.controls
        self.document.comparison = finished(self) if self.blocks else None

    def _make_templates(self, place: Path) -> dict[str, Path]:
        found = {}
        for arm, document in zip(self.arms, self.document.arms, strict=True):
            self.say(f"loading the data of {arm.name} ({arm.label}) …")
            found[arm.name] = place / arm.slug
            document.template_s = round(self.bench.make_template(arm, found[arm.name]), 3)
            document.template_bytes = size_of(found[arm.name])
        _refuse_without_room(place, max(one.template_bytes or 0 for one in self.document.arms))
        self.write()
        return found

    def _run_blocks(self, templates: Mapping[str, Path], signals: Signals) -> None:
        names = [arm.name for arm in self.arms]
        order = orders(names, self.limits.looks[-1], self.bench.request.seed)
        for number, names_in_turn in enumerate(order, 1):
            if self._is_too_late():
                self.say(texts.time_is_up(self))
                self.findings = self._analyse(final=True)
                return
            begin = monotonic()
            self.blocks.append(self._block(number, names_in_turn, templates, signals))
            self.trial_s = (monotonic() - begin) / len(names)
            self.document.orders.append(list(names_in_turn))  # type: ignore[arg-type]
            self.findings = self._analyse(final=False)
            self.after(*texts.after_block(self))
            if self.findings.done:
                return

    def _block(
        self, number: int, order: Sequence[str], templates: Mapping[str, Path], signals: Signals
    ) -> dict[str, Measured]:
        arms = {arm.name: arm for arm in self.arms}
        block = {}
        for name in order:
            signals.check()
            self._trials += 1
            block[name] = self.bench.trial(arms[name], templates[name], self._trials, number)
            self.document.trials.append(block[name].document)
        return block

    def _is_too_late(self) -> bool:
        """Return whether another block would probably end after the time allowed."""
        limit = self.limits.seconds
        return limit is not None and self.elapsed_s + self.trial_s * len(self.arms) > limit

    @property
    def elapsed_s(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self._begin_s

    def _analyse(self, *, final: bool) -> Findings:
        return analyse(self.blocks, Rules(self.limits.looks, self.matters), final=final)


def _refuse_without_room(place: Path, data_bytes: int) -> None:
    free = shutil.disk_usage(place).free
    if free < data_bytes + _SPARE_BYTES:
        raise RunFailedError(
            f"{free:,} bytes are free for copies of the data, but a trial needs about "
            f"{data_bytes + _SPARE_BYTES:,}",
            "Free some space, use a folder with more space with --storage, or a smaller --size.",
        )
