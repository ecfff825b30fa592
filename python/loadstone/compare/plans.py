"""Whether two runs did the same: their plans, and the data that they loaded."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from loadstone.compare.documents import Difference
from loadstone.compare.metrics import identity
from loadstone.model import ROUND
from loadstone.results.document_reader import exists, read_json
from loadstone.results.documents import Plan
from loadstone.results.older import renamed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadstone.compare.sides import RunSide
    from loadstone.results.documents.summary import PhaseFigures

    Json = dict[str, Any]

_WORDS_ONLY = frozenset(
    {"key", "title", "why", "published", "curves", "skip", "setup_estimate_s", "source", "folder"}
)
"""Keys of a planned phase or scenario that say nothing of what is done."""
_SEEDS = ("seed of the run", "drive.seed")
"""Repeats have seeds of their own anyway, and so have calls of pgbench. Seeds of data are not among them."""
_NUMBERS = ("number", "repeat", f"variant.{ROUND}")
"""Keys that say which of several equal phases one is."""
_LONGEST = 60
DIGITS = 12
"""Of a digest: enough for the plans of a history."""


def plan_differences(a: RunSide, b: RunSide) -> Iterator[Difference]:
    """Yield in which ways the plans differ; all but another seed of transactions block the comparison."""
    plans = [_plan(side.folder) for side in (a, b)]
    for what, key in (("size", "size"), ("seed of the run", "seed")):
        yield from _unequal(what, *(plan.get(key) for plan in plans))
    scenarios = [_by(plan.get("scenarios"), _scenario_name) for plan in plans]
    for name in [name for name in scenarios[0] if name in scenarios[1]]:
        ours, others = (_flat(one[name]) for one in scenarios)
        yield from _flat_unequal(name, ours, others)
    if plans[0].get("format") != plans[1].get("format"):
        return  # what the phases do has other names
    phases = [_planned_phases(plan, side.target.id) for plan, side in zip(plans, (a, b), strict=True)]
    for name in [name for name in phases[0] if name in phases[1]]:
        yield from _flat_unequal(name, _flat(phases[0][name]), _flat(phases[1][name]))


def data_differences(a: RunSide, b: RunSide) -> Iterator[Difference]:
    """Yield loads of the same phase that put other rows into the tables."""
    ours, others = (_loaded(side) for side in (a, b))
    for name in [name for name in ours if name in others]:
        for what, value in ours[name].items():
            if what in others[name] and others[name][what] != value:
                yield Difference(
                    kind="data", what=f"{name}: {what}", a=value, b=others[name][what], blocks=True
                )


def phase_digests(folder: Path, target: str) -> dict[str, str]:
    """Return a digest of all that decides what each phase of a target does, by its `metrics.identity`.

    Runs whose digests are equal can be compared; words, seeds of transactions and repeats do not count.
    """
    plan = _plan(folder)
    scenarios = _by(plan.get("scenarios"), _scenario_name)
    found: dict[str, str] = {}
    for phase in _phases_of(plan, target):
        variant = {name: value for name, value in (phase.get("variant") or {}).items() if name != ROUND}
        key = identity(phase.get("scenario"), phase.get("id"), variant)
        scenario = scenarios.get(str(phase.get("scenario")), {})
        whole = [plan.get("format"), plan.get("size"), _decisive(scenario), _decisive(phase)]
        text = json.dumps(whole, sort_keys=True)
        found.setdefault(key, hashlib.sha256(text.encode()).hexdigest()[:DIGITS])
    return found


def _decisive(document: Json) -> Json:
    flat = _flat(document)
    return {
        name: value
        for name, value in flat.items()
        if name not in _NUMBERS and not name.replace("_", " ").endswith(_SEEDS)
    }


def _plan(folder: Path) -> Json:
    path = folder / "plan.json"
    return renamed(read_json(path), Plan) if exists(path) else {}


def _scenario_name(scenario: Json) -> str:
    return str(scenario.get("id"))


def _phase_name(phase: Json) -> str:
    variant = ", ".join(f"{k} = {v}" for k, v in (phase.get("variant") or {}).items())
    repeat = phase.get("repeat") or 1
    return _named(phase.get("scenario"), str(phase.get("id")), variant, repeat)


def _named(scenario: str | None, phase: str, variant: str, repeat: int) -> str:
    """Name a phase; two scenarios of one run may have phases of the same name."""
    parts = [f"{scenario}: {phase}" if scenario else phase, variant, f"repeat {repeat}" if repeat > 1 else ""]
    return ", ".join(part for part in parts if part)


def _by(entries: object, name: Any) -> dict[str, Json]:
    known = entries if isinstance(entries, list) else []
    return {name(entry): entry for entry in known if isinstance(entry, dict)}


def _planned_phases(plan: Json, target: str) -> dict[str, Json]:
    return _by(_phases_of(plan, target), _phase_name)


def _phases_of(plan: Json, target: str) -> list[Json]:
    targets = [one for one in plan.get("targets") or [] if isinstance(one, dict)]
    own = next((one for one in targets if one.get("id") == target), targets[0] if targets else {})
    phases = own.get("phases")
    return [one for one in phases if isinstance(one, dict)] if isinstance(phases, list) else []


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested document by dotted names; a list is one value."""
    found: dict[str, Any] = {}
    for name, value in document.items():
        if not prefix and name in _WORDS_ONLY:
            continue
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _flat_unequal(where: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    for name in dict.fromkeys((*a, *b)):
        yield from _unequal(f"{where}: {name.replace('_', ' ')}", a.get(name), b.get(name))


def _unequal(what: str, a: object, b: object) -> Iterator[Difference]:
    if a != b:
        yield Difference(kind="plan", what=what, a=_words(a), b=_words(b), blocks=not what.endswith(_SEEDS))


def _words(value: object) -> str | int | float | bool | None:
    if isinstance(value, str | int | float) or value is None:
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return f"{text[:_LONGEST]}…" if isinstance(text, str) and len(text) > _LONGEST else text


def _loaded(side: RunSide) -> dict[str, dict[str, int | str]]:
    """Return what each complete load of a target put in, by its phase and repeat."""
    found: dict[str, dict[str, int | str]] = {}
    for phase in side.summary.phases:
        if phase.target == side.target.id and phase.load and phase.state == "complete":
            variant = ", ".join(f"{k} = {v}" for k, v in phase.variant.items())
            name = _named(phase.scenario, str(phase.id), variant, phase.repeat)
            found[name] = {"rows loaded": phase.load.rows, **_fingerprints(side, phase)}
    return found


def _fingerprints(side: RunSide, phase: PhaseFigures) -> dict[str, int | str]:
    """Return the fingerprints of time series, which drive.json keeps."""
    path = side.folder / "targets" / side.target.id / "phases" / phase.folder / "drive.json"
    load = read_json(path).get("load") if exists(path) else None
    tables = load.get("tables") if isinstance(load, dict) else None
    found: dict[str, int | str] = {}
    for table in tables if isinstance(tables, list) else []:
        kept = table.get("fingerprint") if isinstance(table, dict) else None
        if isinstance(kept, dict) and isinstance(kept.get("content"), str):
            found[f"fingerprint of {table.get('name')}"] = kept["content"]
    return found
