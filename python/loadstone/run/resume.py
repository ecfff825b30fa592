"""Going on with a run that was killed or interrupted: what must be as it was, and what is kept of it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.errors import LoadstoneError
from loadstone.plan.model import TableLoadWorkload
from loadstone.plan.plan import plan_from_json, plan_to_json
from loadstone.private_server.adoption import adopt
from loadstone.results.document_reader import exists, read_bytes
from loadstone.results.folder import RunFolder, state_of
from loadstone.results.json_files import redact_json
from loadstone.results.redact import redact_document
from loadstone.workload.load.tables import LEDGER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.model import BulkLoad
    from loadstone.plan.model import Plan, PlannedPhase, PlannedTarget
    from loadstone.private_server.adoption import Adoption
    from loadstone.results.json_files import Document
    from loadstone.run.request import Request
    from loadstone.run.server import Server
    from loadstone.target import Target


class ResumeState:
    """What the run has left: its plan, and phase.json of each phase that was begun."""

    def __init__(self, folder: RunFolder) -> None:
        """Read it; nothing is changed."""
        self.folder = folder
        self._owner = int(folder.run.get("pid") or 0), str(folder.run.get("process"))
        self._phases: dict[tuple[str, str], Document] = {
            (target.id, phase.key): phase.written_phase()
            for target in folder.targets()
            for phase in target.phases()
            if exists(phase.path / "phase.json")
        }

    def adopted(self, target: Target) -> Adoption | None:
        """Take over the data of a private server; None where there are none of ours.

        Raises LoadstoneError with why they cannot be had.
        """
        found = next((folder for folder in self.folder.targets() if folder.id == target.id), None)
        known = found.read_target() if found else None
        data = known.data_directory if known else None
        private = target.embedded is not None or (target.place is not None and target.place.needs_folder)
        return adopt(Path(data), *self._owner) if private and data else None

    def begun(self, target: str, phase: PlannedPhase) -> Document | None:
        """Return phase.json of a phase that was begun; None for others, skipped ones too."""
        found = self._phases.get((target, phase.key))
        return None if found is None or found.get("state") == "skipped" else found

    def kept(self, target: str, phases: Sequence[PlannedPhase], *, there: bool) -> frozenset[str]:
        """Return the keys of the phases that need not run again.

        Where what they had prepared is no longer `there`, on the server, phases that prepare run again for
        those after them that make no table of their own: SQL for all of these, loads for those that measure
        or look at what was loaded.
        """
        done = {p.key for p in phases if (self.begun(target, p) or {}).get("state") == "complete"}
        missing = [
            p
            for p in phases
            if p.skip is None
            and p.key not in done
            and not isinstance(p.workload, TableLoadWorkload)
            and not there
        ]
        needy = {
            "sql": {(p.scenario, p.repeat) for p in missing},
            "load": {(p.scenario, p.repeat) for p in missing if p.kind != "sql"},
        }
        return frozenset(
            p.key for p in phases if p.key in done and (p.scenario, p.repeat) not in needy.get(p.kind, ())
        )


def open_broken(path: Path, request: Request, plan: Plan, targets: Sequence[Target]) -> ResumeState:
    """Open the folder of a run to continue with.

    Raises LoadstoneError when there is nothing to continue with, or when it was asked for something else.
    """
    folder = RunFolder.open(path)
    state = state_of(folder)
    if state == "running":
        raise LoadstoneError(
            f"the run in '{path}' is still running, as process {folder.run['pid']}",
            "Wait until it ends, or stop it.",
        )
    if state == "complete":
        raise LoadstoneError(
            f"the run in '{path}' is complete: there is nothing to resume",
            "Remove --resume to measure again, into a new folder.",
        )
    if not folder.is_of_this_boot():
        raise LoadstoneError(
            f"the run in '{path}' was begun on another machine, or before this one was started",
            "Its times cannot be combined with new ones: measure again, into a new folder.",
        )
    if problems := folder.verify().problems:
        more = f", and {len(problems) - 1} more like it" if len(problems) > 1 else ""
        raise LoadstoneError(
            f"the run in '{path}' is damaged: {problems[0]}{more}",
            "Measure again, into a new folder, or resume an untouched copy of this one.",
        )
    found = list(_differences(folder, request, plan, targets))
    if found:
        more = f", and {len(found) - 1} more differ" if len(found) > 1 else ""
        begun = shlex.join(folder.run.get("command") or [])
        raise LoadstoneError(
            f"the run in '{path}' had other options: {found[0]}{more}",
            f"Remove them: they are read from the folder. It was begun with: {begun}",
        )
    return ResumeState(folder)


def options_of(request: Request, targets: Sequence[Target]) -> dict[str, Any]:
    """Return the options beside the plan's that must stay as they are, for run.json."""
    own = {target.id: dict(target.settings) for target in targets if target.settings}
    return {
        "storage": str(request.storage.absolute()) if request.storage else None,
        "settings": dict(request.settings),
        **({"target_settings": own} if own else {}),
        "io": request.io,
    }


def why_not_on(bulk: BulkLoad, server: Server) -> str | None:
    """Say why a bulk load cannot go on where it was interrupted; None when it can."""
    answers = server.engine.tables
    if not answers.ledger:
        return f"{server.engine.title} does not record which batches are committed"
    name = bulk.table.name
    there = answers.existing(server.control, [LEDGER, name])
    return None if {LEDGER, name} <= set(there) else "the server has no interrupted load of this phase"


def _differences(folder: RunFolder, request: Request, plan: Plan, targets: Sequence[Target]) -> Iterator[str]:
    """Yield in words what is not as it was."""
    path = folder.path / "plan.json"
    if folder.read_json(path.name) is None:
        raise LoadstoneError(f"'{folder.path}' has no plan: the run had hardly begun", "Start a new run.")
    # Secrets are in no folder: what both plans show is compared.
    old = as_asked(plan_from_json(redact_json(read_bytes(path).decode())), targets)
    plan = plan_from_json(redact_json(plan_to_json(plan)))
    yield from _changed("Loadstone", {"version": folder.run.get("loadstone")}, {"version": __version__})
    yield from _changed("the run's", _about(old), _about(plan))
    for before, now in zip(old.scenarios, plan.scenarios, strict=False):
        yield from _changed(f"{now.id}'s parameter", before.parameters, now.parameters)
    private = {target.id for target in targets if target.embedded is not None or target.place is not None}
    for was, new in zip(old.targets, plan.targets, strict=False):
        if new.id not in private:
            yield from _changed(f"{new.id}'s", {"URL": was.url}, {"URL": new.url})
        yield from _changed_phases(was, new)
    yield from _changed(
        "the option", folder.run.get("options") or {}, redact_document(options_of(request, targets))
    )


def as_asked(plan: Plan, targets: Sequence[Target]) -> Plan:
    """Return a run's plan with each installed build under the engine that was requested.

    Which engine such a build is, its server tells when it runs: the plan to compare with was made before.
    """
    asked = {target.id: target.engine for target in targets if target.embedded is not None}
    named = (replace(target, engine=asked.get(target.id, target.engine)) for target in plan.targets)
    return replace(plan, targets=tuple(named))


def _about(plan: Plan) -> dict[str, Any]:
    return {
        "scenarios": ", ".join(f"{scenario.id} {scenario.version}" for scenario in plan.scenarios),
        "targets": ", ".join(f"{target.id} ({target.engine})" for target in plan.targets),
        "size": plan.size,
        "seed": plan.seed,
        "repeats": plan.repeats,
    }


def _changed(what: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            yield f"{what} {name}: {before.get(name)!r} then, {now.get(name)!r} now"


def _changed_phases(before: PlannedTarget, now: PlannedTarget) -> Iterator[str]:
    """Yield phases that are not the same; why one is skipped is known only when the server has answered."""
    old = {phase.key: replace(phase, skip=None) for phase in before.phases}
    new = {phase.key: replace(phase, skip=None) for phase in now.phases}
    for key in dict.fromkeys((*old, *new)):
        if old.get(key) != new.get(key):
            yield f"the phase {key} has changed"
