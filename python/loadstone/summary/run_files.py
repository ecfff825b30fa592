"""A run folder, parsed: also one that a killed run left, whose missing parts are empty here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from loadstone.errors import LoadstoneError
from loadstone.results.document_reader import exists
from loadstone.results.documents import (
    Calibration,
    Drive,
    Environment,
    Event,
    Hosts,
    Interval,
    Phase,
    Plan,
    Probed,
    Progress,
    QueriesInTurnDrive,
    Run,
    Sample,
    Sent,
    Step,
    Target,
)
from loadstone.results.folder import RunFolder, TargetFolder, state_of
from loadstone.results.manifest import Findings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from loadstone.results.documents.summary import Variant
    from loadstone.results.phase_folder import PhaseFolder


@dataclass(frozen=True, slots=True)
class PhaseFiles:
    """What one phase on one target left behind; `drive` is None when the driver never wrote its account.

    `mixed` are the queries that ran while the phase loaded; `sent` and `probe` are the lines of sent.jsonl
    and probe.jsonl, empty where freshness was not measured. `steps` and `progress` are those of steps.jsonl
    and progress.jsonl, of loads in steps and of long transactions. `in_turn` is drive.json of a phase whose
    queries ran one by one; it has no `drive` then.
    """

    folder: PhaseFolder
    phase: Phase
    drive: Drive | None
    series: list[Interval]
    in_turn: QueriesInTurnDrive | None = None
    mixed: PhaseFiles | None = None
    sent: list[Sent] = field(default_factory=list)
    probe: list[Probed] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    hosts: HostsFiles | None = None

    @property
    def variant(self) -> Variant:
        """Values of the parameters that the phase is swept over."""
        return self.phase.variant or {}

    @property
    def repeat(self) -> int:
        """Which repeat it is, from 1."""
        return self.phase.repeat or 1

    @property
    def state(self) -> str:
        """How it ended; `running` where nobody wrote that down."""
        return self.phase.state or "running"


@dataclass(frozen=True, slots=True)
class HostsFiles:
    """hosts.json of a drive on several load hosts, and what each of them left behind, by its name."""

    document: Hosts
    files: dict[str, PhaseFiles]


@dataclass(frozen=True, slots=True)
class TargetFiles:
    """One target's folder."""

    target: Target
    monitor: list[Sample]
    phases: list[PhaseFiles]
    folder: str = ""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A whole run folder except the histogram logs, which are read phase by phase.

    `state` is run.json's, or `killed` for a run that is marked running while its process is gone.
    """

    run: Run
    state: str
    plan: Plan
    environment: Environment
    calibration: Calibration
    events: list[Event]
    targets: list[TargetFiles] = field(default_factory=list)
    findings: Findings = field(default_factory=lambda: Findings(checked=False))
    """What the comparison with the manifest has found."""
    recorded: Mapping[str, object] = field(default_factory=dict)
    """environment.json as it was recorded: the report shows all of it, whatever it is."""


def read_run(path: Path) -> RunFiles:
    """Parse the run folder at `path`. Raises LoadstoneError when it is none, is too new, or was changed."""
    folder = RunFolder.open(path)
    findings = folder.verify()
    plan = folder.read_plan()
    recorded = folder.read_json("environment.json") or {}
    return RunFiles(
        run=msgspec.convert(folder.run, Run),
        state=state_of(folder),
        plan=plan,
        environment=msgspec.convert(recorded, Environment),
        calibration=msgspec.convert(folder.read_json("calibration.json") or {}, Calibration),
        events=list(folder.read_events()),
        targets=[_read_target(target) for target in folder.targets()],
        findings=findings,
        recorded=recorded,
    )


def _read_target(folder: TargetFolder) -> TargetFiles:
    found = folder.read_target() or Target()
    target = msgspec.structs.replace(found, id=found.id or folder.id, label=found.label or folder.id)
    phases = [_read_phase(phase, folder.id) for phase in folder.phases()]
    return TargetFiles(target, list(folder.read_monitor()), phases, folder.id)


def _ascending(steps: list[Step], path: Path) -> list[Step]:
    """Return the steps. Raises LoadstoneError where one comes twice or too late."""
    for number, (before, step) in enumerate(pairwise(steps), start=2):
        if not (before.step < step.step and before.rows_before < step.rows_before):
            raise LoadstoneError(
                f"{path}, line {number}: step {step.step} follows step {before.step}",
                "The file was changed after the run: use an untouched copy of the folder.",
            )
    return steps


def _read_phase(folder: PhaseFolder, target: str) -> PhaseFiles:
    """Read one phase; one killed before its phase.json is known by its folder's name."""
    phase = _known(folder, target)
    drive = folder.read_drive()
    found = PhaseFiles(
        folder,
        phase,
        drive if isinstance(drive, Drive) else None,
        list(folder.read_series()),
        in_turn=drive if isinstance(drive, QueriesInTurnDrive) else None,
        steps=_ascending(list(folder.read_steps()), folder.path / "steps.jsonl"),
        progress=list(folder.read_progress()),
        hosts=_read_hosts(folder, phase),
    )
    queries = folder.subfolder("queries", create=False)
    if not queries.path.is_dir():
        return found
    mixed = queries.read_drive()
    inside = PhaseFiles(
        queries,
        msgspec.structs.replace(phase, rows_per_transaction=None),
        mixed if isinstance(mixed, Drive) else None,
        list(queries.read_series()),
        in_turn=mixed if isinstance(mixed, QueriesInTurnDrive) else None,
    )
    probe = folder.subfolder("probe", create=False)
    return replace(
        found,
        mixed=inside,
        sent=list(folder.read_sent()),
        probe=list(probe.read_probe()),
    )


def _read_hosts(folder: PhaseFolder, phase: Phase) -> HostsFiles | None:
    document = folder.read_hosts()
    if document is None:
        return None
    files = {}
    for host in document.hosts:
        own = folder.subfolder("hosts", create=False).subfolder(host.name, create=False)
        drive = own.read_drive()
        if isinstance(drive, Drive):
            files[host.name] = PhaseFiles(own, phase, drive, list(own.read_series()))
    return HostsFiles(document, files)


def _known(folder: PhaseFolder, target: str) -> Phase:
    """Return phase.json; what it does not say is told by the folder's name."""
    number, _, name = folder.key.partition("-")
    told: dict[str, object] = {
        "number": int(number) if number.isdecimal() else 0,
        "id": name or folder.key,
        "key": folder.key,
        "title": name or folder.key,
        "kind": "sql",
        "state": "running",
        "target": target,
    }
    if not exists(folder.path / "phase.json"):
        return msgspec.convert(told, Phase)
    return msgspec.convert(told | folder.written_phase(), Phase)
