"""Plain queries asked one by one, cold and warm: the rounds of all targets put together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from loadstone.model import ROUND
from loadstone.summary.gpuuse import energy_j, mark
from loadstone.summary.medians import middle, ratio_of_medians
from loadstone.summary.resources import usage_between
from loadstone.summary.scanning import Table, limits_of, scan, widths_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.summary.gpuuse import Span
    from loadstone.summary.reading import Json, PhaseFiles, RunFiles, TargetFiles
    from loadstone.summary.scanning import Limits

KINDS = ("cold", "warm")


@dataclass(frozen=True, slots=True)
class _Round:
    """One phase of questions on one target: one turn of the measurement."""

    files: PhaseFiles
    target: TargetFiles

    @property
    def phase(self) -> Json:
        """The phase's own document."""
        return self.files.phase

    @property
    def drive(self) -> Json:
        """The account of its end."""
        return self.files.drive or {}

    @property
    def asking(self) -> Json:
        """What was asked, and every run of it."""
        found: Json = self.drive["asking"]
        return found

    @property
    def number(self) -> int:
        """Which round: by the swept parameter, else by the repeat."""
        return int(self.phase.get(ROUND) or self.phase.get("repeat") or 1)


def asked_in_turn(files: PhaseFiles) -> bool:
    """Say whether a phase asked questions one by one, each of them by itself."""
    return "runs" in ((files.drive or {}).get("asking") or {})


def without_round(variant: Json) -> Json:
    """Return a variant as the rounds of a measurement share it."""
    return {name: value for name, value in variant.items() if name != ROUND}


def summarise_asked(files: RunFiles) -> list[Json]:
    """Return an entry for each phase of questions and variant, with every target that asked them."""
    found: dict[str, dict[str, list[_Round]]] = {}
    for target in files.targets:
        for phase in target.phases:
            if asked_in_turn(phase):
                targets = found.setdefault(_identity(phase.phase), {})
                targets.setdefault(target.target["id"], []).append(_Round(phase, target))
    limits = limits_of(files.environment)
    return [_entry(targets, limits) for targets in found.values()]


def _identity(phase: Json) -> str:
    variant = without_round(phase["variant"])
    return json.dumps([phase.get("scenario"), phase.get("id"), variant], sort_keys=True)


def _entry(targets: dict[str, list[_Round]], limits: Limits) -> Json:
    every = [turn for rounds in targets.values() for turn in rounds]
    head = every[0].phase
    names = list(dict.fromkeys(name for turn in every for name in _names(turn)))
    entry: Json = {
        **{name: head.get(name) for name in ("scenario", "id", "title", "why")},
        "variant": without_round(head["variant"]),
        "rounds": len({turn.number for turn in every}),
        "cold": any(turn.asking.get("cold") for turn in every),
        "table": next((turn.asking["table"] for turn in every if turn.asking.get("table")), None),
        "questions": names,
        "first": every[0].target.target["id"],
        "targets": [_target(rounds, names, limits) for rounds in targets.values()],
        "published": head.get("published") or [],
    }
    _compare(entry["targets"])
    return entry


def _names(turn: _Round) -> list[str]:
    asking = turn.asking
    return [q["name"] for q in asking.get("questions") or []] + [r["question"] for r in asking["runs"]]


def _target(rounds: Sequence[_Round], names: Sequence[str], limits: Limits) -> Json:
    first = rounds[0]
    known = [turn.asking for turn in rounds]
    size = {name: _last([asking.get(name) for asking in known]) for name in ("rows", "table_bytes")}
    in_process = bool(first.target.target.get("in_process"))
    caches = _caches([asking.get("caches") for asking in known])
    is_cold = bool(caches and caches["emptied"]) if any(asking.get("cold") for asking in known) else None
    table = Table(size["rows"], size["table_bytes"], widths_of(first.target))
    return {
        "target": first.target.target["id"],
        "in_process": in_process,
        **size,
        "phases": [turn.files.folder.key for turn in rounds],
        "incomplete": [_ending(turn) for turn in rounds if turn.phase.get("state") != "complete"],
        "caches": caches,
        "is_cold": is_cold,
        "cold_words": {True: "cold", False: "first run, not cold", None: ""}[is_cold],
        "notes": list(dict.fromkeys(note for asking in known for note in asking.get("notes") or [])),
        "client_share": None if in_process else _client_share(rounds),
        "questions": [
            _scanned(_question(name, rounds), table, limits, is_cold=bool(is_cold)) for name in names
        ],
    }


def _ending(turn: _Round) -> str:
    reason = turn.phase.get("reason") or turn.drive.get("reason")
    return f"round {turn.number} {turn.phase.get('state')}{f': {reason}' if reason else ''}"


def _caches(found: Sequence[Json | None]) -> Json | None:
    """Return how the caches were emptied; None where that was not asked for. One failure counts for all."""
    known = [caches for caches in found if caches is not None]
    if not known:
        return None
    worst = next((caches for caches in known if not caches.get("emptied")), known[-1])
    return {"emptied": bool(worst.get("emptied")), "note": str(worst.get("note") or "")}


def _client_share(rounds: Sequence[_Round]) -> float | None:
    """Return our share of the CPU time that server and Loadstone used while questions were asked."""
    used = []
    for turn in rounds:
        start_ns, end_ns = (int(turn.drive.get(name) or 0) for name in ("start_ns", "end_ns"))
        usage = usage_between(turn.target.monitor, start_ns, end_ns) if start_ns and end_ns else None
        if usage and usage["cpu_server"] is not None and usage["cpu_client"] is not None:
            seconds = end_ns - start_ns
            used.append((usage["cpu_client"] * seconds, usage["cpu_server"] * seconds))
    ours, servers = (sum(column) for column in zip(*used, strict=True)) if used else (0.0, 0.0)
    return ours / (ours + servers) if ours + servers else None


def _scanned(question: Json, table: Table, limits: Limits, *, is_cold: bool) -> Json:
    """Add how fast the query went through the table; a first run with warm caches tells nothing of a disk."""
    times = (question["warm"]["median_s"], question["cold"]["median_s"] if is_cold else None)
    return {**question, **scan(table, limits, question["sql"], times)}


def _question(name: str, rounds: Sequence[_Round]) -> Json:
    runs = [_run(run, turn) for turn in rounds for run in turn.asking["runs"] if run["question"] == name]
    told = [q for turn in rounds for q in turn.asking.get("questions") or [] if q["name"] == name]
    times = {
        kind: [r["seconds"] for r in runs if r["kind"] == kind and r["state"] == "done"] for kind in KINDS
    }
    monitor = rounds[0].target.monitor
    done = [run for run in runs if run["state"] == "done" and run["span"]]
    spans = [run["span"] for run in done]
    plan_says = _last([q.get("gpu") for q in told])
    return {
        "name": name,
        **{kind: _times(values) for kind, values in times.items()},
        "ratio_to_first": None,
        "cold_ratio_to_first": None,
        "failed": _failed(runs),
        "wrong": _last([q.get("wrong") for q in told]),
        "plan_says_gpu": plan_says,
        "gpu": mark(monitor, spans, plan_says=plan_says),
        "energy_j": _energy(monitor, [run["span"] for run in done if run["kind"] == "warm"]),
        "sql": _last([q.get("sql") for q in told]),
        "plan": _last([q.get("plan") for q in told]),
        "runs": [{key: value for key, value in run.items() if key != "span"} for run in runs],
    }


def _run(run: Json, turn: _Round) -> Json:
    start_ns, end_ns = run.get("start_ns"), run.get("end_ns")
    span: Span | None = (start_ns, end_ns) if start_ns is not None and end_ns is not None else None
    names = ("kind", "number", "seconds", "state", "reason")
    return {ROUND: turn.number, **{name: run.get(name) for name in names}, "span": span}


def _times(values: Sequence[float]) -> Json:
    found = middle(values)
    if found is None:
        return {
            **dict.fromkeys(("median_s", "low_s", "high_s", "coverage")),
            "n": 0,
            "whole_range": False,
            "runs": [],
        }
    return {**found.document(), "runs": list(values)}


def _failed(runs: Sequence[Json]) -> str | None:
    """Say how many runs failed, and why the first of them did; None where none did."""
    broken = [run for run in runs if run["state"] == "failed"]
    if not broken:
        return None
    tried = len([run for run in runs if run["state"] != "skipped"])
    reason = next((str(run["reason"]) for run in broken if run["reason"]), "no reason was recorded")
    return f"{len(broken)} of {tried} runs failed: {reason}"


def _energy(monitor: Sequence[Json], spans: Sequence[Span]) -> float | None:
    known = [joules for span in spans if (joules := energy_j(monitor, span)) is not None]
    return float(median(known)) if known else None


def _compare(targets: Sequence[Json]) -> None:
    """Give each right answer of a later target its ratio to the first target's, of cold and of warm runs.

    Cold runs compare with cold ones only: a first run on a server that kept its caches has no ratio.
    """
    first = {question["name"]: question for question in targets[0]["questions"]}
    for target in targets[1:]:
        both_cold = target["is_cold"] and targets[0]["is_cold"]
        kinds = (("warm", "ratio_to_first"), *((("cold", "cold_ratio_to_first"),) if both_cold else ()))
        for question in target["questions"]:
            base = first.get(question["name"])
            if base is not None and not (question["wrong"] or base["wrong"]):
                for kind, name in kinds:
                    question[name] = ratio_of_medians(question[kind]["runs"], base[kind]["runs"])


def _last(values: Sequence[Any]) -> Any:
    return next((value for value in reversed(values) if value is not None), None)
