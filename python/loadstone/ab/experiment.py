"""Blocks of trials until the answer is known: templates, orders, looks, limits, and any way of ending."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from loadstone import __version__
from loadstone.ab import statistics, texts
from loadstone.ab.analysis import Findings, Rules, analyse
from loadstone.ab.documents import FORMAT, NAME, ArmDocument
from loadstone.ab.documents import Experiment as Document
from loadstone.ab.order import orders
from loadstone.ab.outcome import finished
from loadstone.errors import ExitCode, LoadstoneError, RunFailedError
from loadstone.host.environment import read_clocks
from loadstone.private_server import PrivateFolder
from loadstone.private_server.provision import size_of
from loadstone.results.json_files import to_json, write_atomic
from loadstone.results.redact import redact_command
from loadstone.signals import InterruptedRun, Signals
from loadstone.target.settings import shown_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from loadstone.ab.arms import Arm
    from loadstone.ab.trial import Bench, Measured
    from loadstone.plan.model import Plan

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


@dataclass(slots=True)
class Experiment:
    """One experiment; `run` performs it, `document` is ab.json as far as it came."""

    bench: Bench
    arms: Sequence[Arm]
    limits: Limits
    matters: float
    say: Callable[[str], None]
    plan: Plan
    """What a trial runs, of arm A."""
    trial_s: float
    """Estimated seconds of a trial."""
    noise: float | None = None
    """Spread of ln(A'/A) between blocks, of the history."""
    blocks: list[Mapping[str, Measured]] = field(default_factory=list)
    exit_code: ExitCode = ExitCode.OK
    trouble: LoadstoneError | None = None
    findings: Findings = field(default_factory=Findings)
    document: Document = field(init=False)
    _begin_s: float = field(init=False)
    _trials: int = 0

    def __post_init__(self) -> None:
        """Begin the document."""
        request = self.bench.request
        self._begin_s = monotonic()
        self.document = Document(
            format=FORMAT, loadstone=__version__, id=self.bench.folder.absolute().name, state="running",
            started_at=read_clocks().started_at, command=redact_command(list(request.command)),
            scenario=request.scenarios[0].id, size=request.size, seed=request.seed,
            parameters=shown_settings(request.overrides), settings=dict(shown_settings(request.settings)),
            matters=self.matters, looks=list(self.limits.looks), max_time_s=self.limits.seconds,
            arms=[ArmDocument(name=arm.name, label=arm.label, target=texts.target_text(arm),  # type: ignore[arg-type]
                              parameters=shown_settings(arm.parameters)) for arm in self.arms],
        )  # fmt: skip

    @property
    def folder(self) -> Path:
        """Where everything is written."""
        return self.bench.folder

    def run(self) -> None:
        """Run blocks until all is decided, a limit is reached, or something ends it; nothing is left running.

        Raises LoadstoneError where an option, a setting or a server cannot work: no folder is left then.
        """
        try:
            with Signals() as signals, PrivateFolder(self.bench.request.storage) as place:
                try:
                    for line in texts.before(self):
                        self.say(line)
                    self._write()
                    templates = self._make_templates(place.path)
                    self._run_blocks(templates, signals)
                except InterruptedRun as signalled:
                    self._interrupt(signalled)
                except LoadstoneError as error:
                    self._fail(error)
        except InterruptedRun as signalled:
            self._interrupt(signalled)
        self._end()

    def _interrupt(self, signalled: InterruptedRun) -> None:
        self.exit_code = signalled.exit_code
        self.document.state, self.document.reason = "interrupted", str(signalled)

    def _fail(self, error: LoadstoneError) -> None:
        if not self.blocks and error.exit_code is ExitCode.BAD_INPUT:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise error
        self.exit_code, self.trouble = error.exit_code, error
        self.document.state, self.document.reason = "failed", error.message

    def _make_templates(self, place: Path) -> dict[str, Path]:
        found = {}
        for arm, document in zip(self.arms, self.document.arms, strict=True):
            self.say(f"loading the data of {arm.name} ({arm.label}) …")
            found[arm.name] = place / arm.slug
            document.template_s = round(self.bench.make_template(arm, found[arm.name]), 3)
            document.template_bytes = size_of(found[arm.name])
        _refuse_without_room(place, max(one.template_bytes or 0 for one in self.document.arms))
        self._write()
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
            self._write()
            for line in texts.after_block(self):
                self.say(line)
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

    def _end(self) -> None:
        """Write what there is, however the experiment ended."""
        if self.document.state == "running":
            self.document.state = "complete"
        self.document.ended_at = read_clocks().started_at
        try:
            self._write()
        except LoadstoneError as error:
            self.exit_code, self.trouble = self.exit_code or error.exit_code, self.trouble or error

    def _write(self) -> None:
        import msgspec  # noqa: PLC0415 - only here

        self.document.checks, self.document.controls = self.findings.checks, self.findings.controls
        self.document.comparison = finished(self) if self.blocks else None
        write_atomic(self.folder / NAME, to_json(msgspec.to_builtins(self.document), indent=1) + "\n")


def _refuse_without_room(place: Path, data_bytes: int) -> None:
    free = shutil.disk_usage(place).free
    if free < data_bytes + _SPARE_BYTES:
        raise RunFailedError(
            f"{free:,} bytes are free for copies of the data, but a trial needs about "
            f"{data_bytes + _SPARE_BYTES:,}",
            "Free some space, use a folder with more space with --storage, or a smaller --size.",
        )
