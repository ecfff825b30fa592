"""The plan: scenarios x targets as pure data, made before anything is touched; same inputs, same bytes."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from loadstone._core import ScriptError, check_script
from loadstone.errors import LoadstoneError
from loadstone.model import LOAD_FILES, SIZES, TargetName, Value
from loadstone.plan.model import (
    Plan,
    PlannedFinding,
    PlannedPhase,
    PlannedScenario,
    PlannedTarget,
    ScriptWorkload,
)
from loadstone.plan.phase import planned_phase
from loadstone.plan.workloads import measured_seconds, needs_of
from loadstone.results import documents
from loadstone.results.labels import distinct_labels
from loadstone.results.older import renamed
from loadstone.results.redact import is_secret_name, learn
from loadstone.scenario.dialects import DIALECTS, in_dialect
from loadstone.scenario.parameter import nearest
from loadstone.scenario.private_server import private_server_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.model import Drive
    from loadstone.scenario.scenario import Phase, Scenario

FORMAT = 3
_READ = (2, FORMAT)
_AUTOMATIC_VARIABLES = ("client_id", "default_seed", "random_seed", "scale")
_NOT_IN_A_KEY = re.compile(r"[^a-z0-9._]+")
_LONGEST_KEY = 120
"""Keys become folder names: 255 bytes is the limit of common file systems."""


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """What the plan must know of a target; `url` is without password.

    `capabilities` and `server_version` (of PostgreSQL) are None while unknown: then nothing is skipped for
    their sake. `wire` is false where PostgreSQL's wire protocol, and so pgbench's scripts, cannot go.
    Capabilities are names such as `plpgsql`, `brin`, or `extension:pg_prewarm` for one that can be created.
    `does not have` are those that it cannot have, whatever its server will say.
    """

    id: str
    engine_name: str
    url: str
    capabilities: frozenset[str] | None = None
    server_version: str | None = None
    wire: bool = True
    lacks: frozenset[str] = frozenset()
    dialect: str = ""
    """Whose files of a scenario it runs, where there are some (scenario/dialects.py)."""
    name: TargetName | None = None


@dataclass(frozen=True, slots=True)
class _Settings:
    """The values of one scenario's parameters, and the sweeps that the user replaced."""

    values: Mapping[str, Value]
    sweeps: Mapping[str, tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class _Variant:
    """One phase of the list that every target runs, with what it needs of a target."""

    phase: PlannedPhase
    capabilities: tuple[str, ...]
    versions: tuple[str, ...]


def make_plan(
    scenarios: Sequence[Scenario],
    targets: Sequence[PlanTarget],
    size: str,
    overrides: Mapping[str, str] | None = None,
    seed: int = 1,
    repeats: int = 1,
) -> Plan:
    """Work out every phase on every target.

    `overrides` maps `name` or `scenario.name` to the user's text. For a parameter that phases sweep, the text
    may be a list (`none,btree`) and replaces the sweep. With `repeats`, each scenario's list of phases runs
    again with the seed raised by one. Raises LoadstoneError for anything that cannot be run as asked.
    """
    _check_request(scenarios, targets, size, repeats)
    settings = _settings(scenarios, size, overrides or {})
    known: list[dict[str, Value]] = [
        {"size": size, "seed": seed + repeat - 1, "repeat": repeat} for repeat in range(1, repeats + 1)
    ]
    numbered = {
        dialect: _numbered([in_dialect(scenario, dialect) for scenario in scenarios], settings, known)
        for dialect in dict.fromkeys(target.dialect for target in targets)
    }
    plan = Plan(
        size=size,
        seed=seed,
        repeats=repeats,
        scenarios=tuple(
            _planned_scenario(scenario, settings[scenario.id], {"size": size, "seed": seed, "repeat": 1})
            for scenario in scenarios
        ),
        targets=tuple(
            _planned_target(target, label, numbered[target.dialect])
            for target, label in zip(targets, _labels(targets), strict=True)
        ),
    )
    learn(msgspec.to_builtins(plan, enc_hook=_encode))  # the values of parameters are filled in only now
    return plan


def estimated_seconds(plan: Plan) -> float:
    """Return about how long the plan runs: warm-up, duration, loads and the authors' estimates of set-ups.

    A phase that ends by a number of transactions or queries counts by its rate, and with 0 when it has none.
    A load counts by its rows: at its rate, or else cautiously (`series`, `bulkphase`); queries that are
    asked one by one count cautiously too (`questionphase`).
    """
    phases = (phase for target in plan.targets for phase in target.phases if phase.skip is None)
    return sum(phase.setup_estimate_s + measured_seconds(phase.workload) for phase in phases)


def plan_to_json(plan: Plan) -> str:
    """Return the plan as the text of plan.json."""
    body = msgspec.to_builtins(plan, enc_hook=_encode)
    return json.dumps({"format": FORMAT} | body, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def plan_from_json(text: str) -> Plan:
    """Read plan.json; raises LoadstoneError when the text is no plan of a format that is read."""
    try:
        document = msgspec.json.decode(text)
        found = document.pop("format") if isinstance(document, dict) and "format" in document else None
        if found in _READ:
            return msgspec.convert(renamed(document, documents.Plan), Plan, dec_hook=_decode)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise LoadstoneError(
            f"this is not a plan: {error}", "Use a plan.json that Loadstone wrote."
        ) from error
    raise LoadstoneError(
        f"this plan has format {found!r}, but this Loadstone reads format {FORMAT}",
        "Use the version of Loadstone that wrote it (run.json names it).",
    )


def _encode(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(type(value))


def _decode(wanted: type, value: object) -> object:
    if issubclass(wanted, Path) and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(wanted)


def _check_request(
    scenarios: Sequence[Scenario], targets: Sequence[PlanTarget], size: str, repeats: int
) -> None:
    if not scenarios or not targets:
        raise LoadstoneError("a plan needs a scenario and a target", "See `loadstone scenarios`.")
    if size not in SIZES:
        raise LoadstoneError(
            f"there is no size '{size}'", f"{nearest(size, SIZES)}Sizes: {', '.join(SIZES)}."
        )
    if repeats < 1:
        raise LoadstoneError(f"{repeats} is not a number of repeats", "Use 1 or more.")
    for what, ids in (("scenario", [s.id for s in scenarios]), ("target", [t.id for t in targets])):
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise LoadstoneError(f"the {what} '{twice[0]}' is there twice", "Name each once; see --repeat.")


def _settings(scenarios: Sequence[Scenario], size: str, overrides: Mapping[str, str]) -> dict[str, _Settings]:
    """Parameter values by scenario: default, then size, then the user's."""
    values: dict[str, dict[str, Value]] = {}
    sweeps: dict[str, dict[str, tuple[Value, ...]]] = {}
    for scenario in scenarios:
        given = scenario.sizes.get(size, {})
        lists = {name: value for name, value in given.items() if isinstance(value, tuple)}
        single = {name: value for name, value in given.items() if not isinstance(value, tuple)}
        defaults = {name: parameter.default for name, parameter in scenario.parameters.items()}
        values[scenario.id] = defaults | single | {name: several[0] for name, several in lists.items()}
        sweeps[scenario.id] = lists
    # A scoped value beats one for all scenarios, whatever the order they were given in.
    for asked, text in sorted(overrides.items(), key=lambda item: "." in item[0]):
        for scenario, name in _addressed(scenarios, asked):
            parameter = scenario.parameters[name]
            if name not in _swept(scenario):
                values[scenario.id][name] = parameter.parse(text)
                continue
            several = tuple(parameter.parse(part) for part in _parts(text))
            values[scenario.id][name] = several[0]
            sweeps[scenario.id][name] = tuple(dict.fromkeys(several))
    return {s.id: _Settings(values[s.id], sweeps[s.id]) for s in scenarios}


def _parts(text: str) -> list[str]:
    """Split the user's list: at semicolons where there are some, for values may hold commas."""
    if ";" in text:
        return [part.strip() for part in text.removesuffix(";").split(";")]
    return text.split(",")


def _swept(scenario: Scenario) -> frozenset[str]:
    return frozenset(name for phase in scenario.phases for variant in phase.sweep for name in variant)


def _addressed(scenarios: Sequence[Scenario], asked: str) -> list[tuple[Scenario, str]]:
    """Return the scenarios that have the parameter `name` or `scenario.name`."""
    scope, _, name = asked.rpartition(".")
    chosen = [scenario for scenario in scenarios if scope in ("", scenario.id)]
    found = [(scenario, name) for scenario in chosen if name in scenario.parameters]
    if found:
        return found
    if not chosen:
        ids = [scenario.id for scenario in scenarios]
        raise LoadstoneError(
            f"'{asked}': no scenario '{scope}' is run", f"{nearest(scope, ids)}Scenarios: {', '.join(ids)}."
        )
    known = sorted({name for scenario in chosen for name in scenario.parameters})
    raise LoadstoneError(
        f"there is no parameter '{name}'" + (f" in '{scope}'" if scope else ""),
        f"{nearest(name, known)}Parameters: {', '.join(known)}.",
    )


def _numbered(
    scenarios: Sequence[Scenario],
    settings: Mapping[str, _Settings],
    repeats: Sequence[Mapping[str, Value]],
) -> list[_Variant]:
    """Return all phases in all variants, with their keys: the same in every dialect."""
    variants = (
        variant
        for scenario in scenarios
        for known in repeats
        for variant in _variants(scenario, settings[scenario.id], known)
    )
    return [
        dataclasses.replace(
            variant, phase=dataclasses.replace(variant.phase, key=_key(number, variant.phase))
        )
        for number, variant in enumerate(variants, 1)
    ]


def _variants(scenario: Scenario, settings: _Settings, known: Mapping[str, Value]) -> Iterator[_Variant]:
    """Yield the scenario's phases once, each in all its variants."""
    seed = int(known["seed"])
    for phase in scenario.phases:
        for variant in _sweep(phase, settings):
            values = {**settings.values, **variant, **known}
            planned, table = planned_phase(scenario, phase, values, seed)
            if isinstance(planned.workload, ScriptWorkload):
                _check_scripts(scenario, planned.workload.drive)
            planned = dataclasses.replace(planned, variant=variant, repeat=int(known["repeat"]))
            versions = (scenario.min_server_version, table.get("min_server_version"))
            yield _Variant(
                planned,
                (*scenario.capabilities, *table.get("requires", ()), *needs_of(planned.workload)),
                tuple(version for version in versions if version),
            )


def _sweep(phase: Phase, settings: _Settings) -> list[dict[str, Value]]:
    """Return the variants of a phase, with the user's own values in place of the author's."""
    if not phase.sweep:
        return [{}]
    for name in {name for variant in phase.sweep for name in variant if is_secret_name(name)}:
        raise LoadstoneError(
            f"phase {phase.id}: the parameter '{name}' cannot be swept",
            "By its name its values are secrets, and they would be in the names of folders. Choose "
            "another name.",
        )
    choices = [
        [
            {**variant, **dict(zip(replaced, values, strict=True))}
            for values in itertools.product(*replaced.values())
        ]
        for variant in phase.sweep
        for replaced in [{name: settings.sweeps[name] for name in variant if name in settings.sweeps}]
    ]
    unique: dict[tuple[tuple[str, Value], ...], dict[str, Value]] = {}
    for variant in itertools.chain.from_iterable(choices):
        unique.setdefault(tuple(variant.items()), variant)
    return list(unique.values())


def _key(number: int, phase: PlannedPhase) -> str:
    """Return `003-one-table-single-index-brin-r2`: the number alone makes it unique."""
    parts = [phase.id, *(part for item in phase.variant.items() for part in map(_in_key, item))]
    tail = f"-r{phase.repeat}" if phase.repeat > 1 else ""
    return f"{number:03d}-" + "-".join(part for part in parts if part)[:_LONGEST_KEY] + tail


def _in_key(value: Value) -> str:
    return _NOT_IN_A_KEY.sub("-", str(value).lower()).strip("-.")


def _planned_scenario(scenario: Scenario, settings: _Settings, known: Mapping[str, Value]) -> PlannedScenario:
    return PlannedScenario(
        id=scenario.id,
        version=scenario.version,
        title=scenario.title,
        why=scenario.why,
        source=scenario.source,
        parameters=dict(settings.values),
        folder=scenario.folder,
        findings=tuple(
            PlannedFinding(finding.question, finding.compare, finding.parameter, finding.phases)
            for finding in scenario.findings
        ),
        private_server=private_server_of(scenario, str(known["size"]), {**settings.values, **known}),
    )


def _labels(targets: Sequence[PlanTarget]) -> list[str]:
    return distinct_labels([target.name or TargetName(target.id) for target in targets])


def _planned_target(target: PlanTarget, label: str, variants: Sequence[_Variant]) -> PlannedTarget:
    phases = tuple(dataclasses.replace(variant.phase, skip=_why_not(target, variant)) for variant in variants)
    return PlannedTarget(target.id, target.engine_name, target.url, phases, label)


def _why_not(target: PlanTarget, variant: _Variant) -> str | None:
    """Say in words why a target cannot run a phase; None when it can, or when that is not known."""
    if isinstance(variant.phase.workload, ScriptWorkload) and not target.wire:
        return f"{target.engine_name} does not use PostgreSQL's wire protocol, which pgbench's scripts need"
    if target.server_version is not None:
        for version in variant.versions:
            if _version(target.server_version) < _version(version):
                return f"needs server version {version} or newer; this server has {target.server_version}"
    known = target.capabilities
    missing = [
        name
        for name in variant.capabilities
        if (name in target.lacks if known is None else known.isdisjoint(name.split("|")))
    ]
    words = " and ".join(dict.fromkeys(_capability(name) for name in missing))
    where = " on this server" if known is not None and target.wire else ""
    return f"{target.engine_name} does not support {words}{where}" if missing else None


def _capability(name: str) -> str:
    if name == LOAD_FILES:
        return "import of CSV, text or binary files"
    # A dialect is no feature: an engine whose dialect is another one needs what stands beside it.
    parts = name.split("|")
    words = (part.rpartition(":") for part in parts if part not in DIALECTS or len(parts) == 1)
    return " or ".join(f"{kind} {what}" if kind else what for kind, _, what in words)


def _version(text: str) -> tuple[int, ...]:
    """Read the leading numbers of `10`, `9.6.24` or `18beta1`."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def parsed_scripts(folder: Path, drive: Drive) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the path of each script with its commands and warnings; LoadstoneError for a broken one."""
    known = sorted({*drive.variables, *_AUTOMATIC_VARIABLES})
    for script in drive.scripts:
        where = str(folder / script.name)
        try:
            yield where, json.loads(check_script(where, script.text, drive.mode, known))
        except ScriptError as error:
            message, file, line, column, hint = error.args
            raise LoadstoneError(f"{file}, line {line}, column {column}: {message}", hint or "") from error


def _check_scripts(scenario: Scenario, drive: Drive) -> None:
    """Refuse a broken script before anything is touched."""
    for where, found in parsed_scripts(scenario.folder, drive):
        warnings = found.get("warnings", [])
        if warnings:
            line, message = warnings[0]["line"], warnings[0]["message"]
            raise LoadstoneError(
                f"{where}, line {line}: {message}",
                "A scenario's scripts must have no warnings: correct the script.",
            )
