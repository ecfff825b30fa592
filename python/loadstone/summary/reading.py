"""A run folder, parsed: also one that a killed run left, whose missing parts are empty here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.results.manifest import Findings
from loadstone.results.reading import exists
from loadstone.runfolder import PhaseFolder, RunFolder, TargetFolder, state_of

if TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PhaseFiles:
    """What one phase on one target left behind; `drive` is None when the driver never wrote its account.

    `beside` are the queries that ran while the phase loaded; `sent` and `probe` are the lines of sent.jsonl
    and probe.jsonl, empty where freshness was not measured. `steps` and `progress` are those of steps.jsonl
    and progress.jsonl, of loads in steps and of long transactions.
    """

    folder: PhaseFolder
    phase: Json
    drive: Json | None
    series: list[Json]
    beside: PhaseFiles | None = None
    sent: list[Json] = field(default_factory=list)
    probe: list[Json] = field(default_factory=list)
    steps: list[Json] = field(default_factory=list)
    progress: list[Json] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TargetFiles:
    """One target's folder."""

    target: Json
    monitor: list[Json]
    phases: list[PhaseFiles]
    folder: str = ""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A whole run folder except the histogram logs, which are read phase by phase.

    `state` is run.json's, or `killed` for a run that is marked running while its process is gone.
    """

    run: Json
    state: str
    plan: Json
    environment: Json
    calibration: Json
    events: list[Json]
    targets: list[TargetFiles] = field(default_factory=list)
    findings: Findings = field(default_factory=lambda: Findings(checked=False))
    """What the comparison with the manifest has found."""


def read_run(path: Path) -> RunFiles:
    """Parse the run folder at `path`. Raises LoadstoneError when it is none, is too new, or was changed."""
    folder = RunFolder.open(path)
    findings = folder.verify()
    return RunFiles(
        run=folder.run,
        state=state_of(folder),
        plan=folder.read_json("plan.json") or {},
        environment=folder.read_json("environment.json") or {},
        calibration=folder.read_json("calibration.json") or {},
        events=list(folder.read_events()),
        targets=[_read_target(target) for target in folder.targets()],
        findings=findings,
    )


def _read_target(folder: TargetFolder) -> TargetFiles:
    target = {"id": folder.id, "label": folder.id, **(folder.read_target() or {})}
    phases = [_read_phase(phase, folder.id) for phase in folder.phases()]
    return TargetFiles(target, list(folder.read_monitor()), phases, folder.id)


def _ascending(steps: list[Json], path: Path) -> list[Json]:
    """Return the steps. Raises LoadstoneError where one comes twice or too late."""
    for number, (before, step) in enumerate(pairwise(steps), start=2):
        if not (before["step"] < step["step"] and before["rows_before"] < step["rows_before"]):
            raise LoadstoneError(
                f"{path}, line {number}: step {step['step']} follows step {before['step']}.",
                "The file was changed after the run: use an untouched copy of the folder.",
            )
    return steps


def _read_phase(folder: PhaseFolder, target: str) -> PhaseFiles:
    """Read one phase; one killed before its phase.json is known by its folder's name."""
    number, _, name = folder.key.partition("-")
    phase: Json = {
        "number": int(number) if number.isdecimal() else 0,
        "id": name or folder.key,
        "key": folder.key,
        "title": name or folder.key,
        "kind": "sql",
        "state": "running",
        "target": target,
    }
    if exists(folder.path / "phase.json"):
        phase |= folder.read_phase()
    phase["variant"] = phase.get("variant") or {}
    phase["repeat"] = phase.get("repeat") or 1
    found = PhaseFiles(
        folder,
        phase,
        folder.read_drive(),
        list(folder.read_series()),
        steps=_ascending(list(folder.read_steps()), folder.path / "steps.jsonl"),
        progress=list(folder.read_progress()),
    )
    queries = folder.beside("queries", create=False)
    if not queries.path.is_dir():
        return found
    inside = PhaseFiles(
        queries, {**phase, "rows_per_transaction": None}, queries.read_drive(), list(queries.read_series())
    )
    probe = folder.beside("probe", create=False)
    return replace(
        found,
        beside=inside,
        sent=list(folder.read_sent()),
        probe=list(probe.read_probe()),
    )
