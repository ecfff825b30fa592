"""Scenarios: folders that hold one load test as data (docs/scenario-format.md)."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.model import PhaseKind, Source, Value
from loadstone.results.redact import learn
from loadstone.scenario.builtin import SCENARIO_FILE, builtin_scenarios
from loadstone.scenario.crash import crash_problems
from loadstone.scenario.dialects import dialect_files
from loadstone.scenario.load import BULK_ONLY, SERIES_ONLY, is_bulk
from loadstone.scenario.parameter import Parameter, nearest, unknown_parameter
from loadstone.scenario.problems import scenario_problems
from loadstone.scenario.queries import is_plain, published_problems, query_problems
from loadstone.scenario.schema import Problem, key_path, raise_problems
from loadstone.scenario.template import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

TEMPLATE_NAMES = ("size", "seed", "repeat")
"""What templates know besides the parameters."""

NOT_TEMPLATES = ("id", "kind", "sweep", "published", "curves")
"""Keys of a phase whose texts stay as they are written."""

_NEEDED = {
    "sql": ("setup",),
    "script": ("scripts", "clients"),
    "load": ("data",),
    "queries": ("queries",),
    "size": (),
    "check": ("checks",),
}
_MEASURED = frozenset({"timeout_s", "headline"})
_SERIES = frozenset({"data", "queries"})
_ONLY = {
    "script": _MEASURED
    | {"scripts", "mode", "clients", "threads", "duration_s", "transactions_per_client", "warmup_s", "pace"}
    | {"rate_per_s", "latency_limit_ms", "reconnect", "variables", "rows_per_transaction", "row_check"},
    "load": _MEASURED
    | _SERIES
    | BULK_ONLY
    | {"tables", "method", "batch_rows", "workers", "hash_workers", "pace", "rate_per_s"},
    "queries": _MEASURED | _SERIES,
}
"""Keys that only phases of some kinds can have, by kind."""

_OF_VALUES = ("rates", "sizes")
"""What a finding compares between the values of a parameter."""
_OF_PHASES = "phases"


@dataclass(frozen=True, slots=True)
class Phase:
    """One [[phase]]: the table as written, its templates not yet filled in."""

    id: str
    kind: PhaseKind
    index: int
    """Place in scenario.toml, from 0, for key paths in errors."""
    body: Mapping[str, Any]
    sweep: tuple[Mapping[str, Value], ...]
    """The variants: values of the swept parameters; empty when nothing is swept."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A question that the report answers as sentences, from comparisons of one kind."""

    question: str
    compare: str
    parameter: str | None = None
    phases: tuple[str, ...] = ()
    """Those that count; empty: all."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario folder, read whole and checked."""

    id: str
    title: str
    version: str
    why: str
    source: Source | None
    capabilities: tuple[str, ...]
    min_server_version: str | None
    parameters: Mapping[str, Parameter]
    sizes: Mapping[str, Mapping[str, Value | tuple[Value, ...]]]
    """Values of parameters by size; several of one that phases sweep are swept in place of theirs."""
    private_server: Mapping[str, Any]
    """The table [private_server] as written, its templates not yet filled in."""
    crash: Mapping[str, Any]
    """The table [crash] as written."""
    phases: tuple[Phase, ...]
    findings: tuple[Finding, ...]
    folder: Path
    files: Mapping[str, str]
    """Texts of the SQL files and scripts that phases name; those of a dialect by `dialect/name`."""


def find_scenario(name: str) -> Scenario:
    """Load a built-in scenario by name, or the folder that `name` is the path of.

    Raises LoadstoneError when there is neither, or when the scenario is not sound.
    """
    builtin = builtin_scenarios()
    if name in builtin:
        return load_scenario(builtin[name])
    if "://" in name:
        # As text: a path would lose a slash, and look like a file that is missing.
        raise LoadstoneError(f"'{name}' is a target, not a scenario", "Write --target before it.")
    folder = Path(name).expanduser()
    if folder.name == SCENARIO_FILE:
        folder = folder.parent
    if folder.is_dir() or "/" in name:
        return load_scenario(folder)
    raise LoadstoneError(
        f"there is no scenario '{name}'",
        f"{nearest(name, builtin)}Built in: {', '.join(builtin)}; or use the path of a scenario's folder.",
    )


def load_scenario(folder: Path) -> Scenario:
    """Read and check a scenario's folder; LoadstoneError names file and key, and says how to mend it."""
    path = folder / SCENARIO_FILE
    document = _read_toml(path)
    learn(document)
    raise_problems(str(path), scenario_problems(document))
    parameters = {
        name: Parameter(name=name, **(table | {"values": tuple(table.get("values", ()))}))
        for name, table in document.get("parameters", {}).items()
    }
    raise_problems(str(path), list(_parameter_problems(document, parameters)))
    raise_problems(str(path), list(_phase_problems(document, parameters)))
    raise_problems(str(path), list(_finding_problems(document)))
    ids = [table["id"] for table in document["phase"]]
    raise_problems(str(path), list(crash_problems(document.get("crash", {}), parameters, ids)))
    phases = tuple(_phase(index, table, parameters) for index, table in enumerate(document["phase"]))
    files = _read_files(folder, phases)
    texts = [*_private_texts(document), *(found for phase in phases for found in templates_in(phase))]
    raise_problems(str(path), list(_name_problems(path, texts, parameters)))
    _check_file_names(folder, files, parameters)
    requires = document.get("requires", {})
    return Scenario(
        id=document["id"],
        title=document["title"],
        version=document["version"],
        why=document["why"].strip(),
        source=Source(**document["source"]) if "source" in document else None,
        capabilities=tuple(requires.get("capabilities", ())),
        min_server_version=requires.get("min_server_version"),
        parameters=parameters,
        sizes={
            size: {name: _size_value(value, parameters[name]) for name, value in values.items()}
            for size, values in document.get("sizes", {}).items()
        },
        private_server=document.get("private_server", {}),
        crash=document.get("crash", {}),
        phases=phases,
        findings=tuple(
            Finding(**table | {"phases": tuple(table.get("phases", ()))})
            for table in document.get("finding", ())
        ),
        folder=folder,
        files=files,
    )


def file_named(value: str, suffix: str) -> str | None:
    """Return `value` when it is the name of a file in the scenario's folder rather than text itself."""
    return value if value.endswith(suffix) and len(value.split()) == 1 else None


def texts_in(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every text in a tree of tables and lists, with its key path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_in(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts_in(item, (*path, index))


def templates_in(phase: Phase) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the texts of a phase that may be templates, with their key paths."""
    body = {key: value for key, value in phase.body.items() if key not in NOT_TEMPLATES}
    return texts_in(body, ("phase", phase.index))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise LoadstoneError(
            f"{path} is not TOML: {error}", "Correct that line; https://toml.io has the rules."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    except (RecursionError, ValueError) as error:
        what = (
            "is nested too deeply" if isinstance(error, RecursionError) else "has a number that is too long"
        )
        raise LoadstoneError(f"{path} {what}", "Write it as docs/scenario-format.md shows.") from error


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> LoadstoneError:
    if isinstance(error, UnicodeDecodeError):
        return LoadstoneError(f"{path} is not UTF-8 text (byte {error.start})", "Save the file as UTF-8.")
    return LoadstoneError(
        f"{path} cannot be read: {error.strerror}",
        f"A scenario is a folder with {SCENARIO_FILE} and the files that it names.",
    )


def _value_problems(
    values: Mapping[str, Any], parameters: Mapping[str, Parameter], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with a table of parameter values."""
    for name, value in values.items():
        where = key_path((*path, name))
        if name not in parameters:
            yield unknown_parameter(name, parameters, where)
            continue
        for single in value if isinstance(value, list) else [value]:
            try:
                parameters[name].check(single)
            except LoadstoneError as error:
                yield Problem(where, error.message, error.hint)


def _parameter_problems(
    document: Mapping[str, Any], parameters: Mapping[str, Parameter]
) -> Iterator[Problem]:
    for name, parameter in parameters.items():
        if (parameter.type == "enum") != bool(parameter.values):
            where = key_path(("parameters", name, "values"))
            yield Problem(where, "an enum has `values`, other types have none", "Add or remove `values`.")
        if parameter.type not in ("integer", "number") and (parameter.minimum, parameter.maximum) != (
            None,
            None,
        ):
            where = key_path(("parameters", name))
            yield Problem(where, "only numbers have `minimum` and `maximum`", "Remove them.")
        yield from (
            Problem(f"parameters.{name}.default", problem.message, problem.hint)
            for problem in _value_problems({name: parameter.default}, parameters, ())
        )
    swept = {name for table in document["phase"] for name in _swept_names(table)}
    for size, values in document.get("sizes", {}).items():
        yield from _value_problems(values, parameters, ("sizes", size))
        for name, value in values.items():
            if isinstance(value, list) and name not in swept:
                where = key_path(("sizes", size, name))
                yield Problem(where, "no phase sweeps this parameter", "Set one value, or sweep it.")


def _phase_problems(document: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> Iterator[Problem]:
    """Yield what no schema can say: duplicates, keys that do not go together, values of parameters."""
    seen: dict[str, int] = {}
    for index, table in enumerate(document["phase"]):
        path = ("phase", index)
        first = seen.setdefault(table["id"], index)
        if first != index:
            where = key_path((*path, "id"))
            yield Problem(where, f"phase[{first}] already has the id '{table['id']}'", "Choose another id.")
        yield from key_problems(table, path)
        yield from published_problems(table, path)
        sweep = table.get("sweep", {})
        for place, variant in enumerate(sweep) if isinstance(sweep, list) else [(None, sweep)]:
            inside = (*path, "sweep") if place is None else (*path, "sweep", place)
            yield from _value_problems(variant, parameters, inside)
        for key in ("published", "curves"):
            for place, figure in enumerate(table.get(key, ())):
                yield from _value_problems(figure.get("when", {}), parameters, (*path, key, place, "when"))


def _finding_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    ids = [table["id"] for table in document["phase"]]
    swept = {name for table in document["phase"] for name in _swept_names(table)}
    for index, finding in enumerate(document.get("finding", ())):
        where, parameter = key_path(("finding", index, "parameter")), finding.get("parameter")
        of_values = finding["compare"] in _OF_VALUES
        if of_values != (parameter is not None):
            having = " and ".join(f'compare = "{kind}"' for kind in _OF_VALUES)
            yield Problem(where, f"only {having} have a parameter", "Add it, or remove it.")
        elif of_values and parameter not in swept:
            known = ", ".join(sorted(swept)) or "none"
            yield Problem(where, f"no phase sweeps '{parameter}'", f"Swept: {known}.")
        if finding["compare"] == _OF_PHASES and len(finding.get("phases", ())) < 2:  # noqa: PLR2004 - one and another
            where = key_path(("finding", index, "phases"))
            yield Problem(
                where, f'compare = "{_OF_PHASES}" needs two phases or more', f"Phases: {', '.join(ids)}."
            )
        for place, phase in enumerate(finding.get("phases", ())):
            if phase not in ids:
                at = key_path(("finding", index, "phases", place))
                yield Problem(at, f"there is no phase '{phase}'", f"Phases: {', '.join(ids)}.")


def key_problems(table: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield keys that a phase of this kind lacks, or cannot have."""
    kind = table["kind"]
    for key in _NEEDED[kind]:
        if key not in table:
            yield Problem(key_path((*path, key)), f"a phase of kind {kind} needs this key", "Add it.")
    for key in table:
        having = [other for other, keys in _ONLY.items() if key in keys]
        if having and kind not in having:
            kinds = " or ".join(f'kind = "{other}"' for other in having)
            where = key_path((*path, key))
            yield Problem(where, f"a phase of kind {kind} has no such key", f"Remove it, or set {kinds}.")
    if kind == "script":
        yield from _script_problems(table, path)
    if kind == "load" and "data" in table:
        yield from _load_problems(table, path)
    if kind == "queries" and "queries" in table:
        yield from query_problems(table, path)


def _script_problems(table: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Problem]:
    if "duration_s" not in table and "transactions_per_client" not in table:
        where = key_path((*path, "duration_s"))
        yield Problem(where, "nothing says when the phase ends", "Add duration_s or transactions_per_client.")
    if "row_check" in table and "rows_per_transaction" not in table:
        where = key_path((*path, "rows_per_transaction"))
        yield Problem(
            where, "row_check needs this key", "Set it to the number of rows that one transaction adds."
        )


def _load_problems(table: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield keys of the one kind of load that stand in the other."""
    bulk = is_bulk(table)
    for key in sorted((SERIES_ONLY if bulk else BULK_ONLY) & table.keys()):
        what = "a time series (data.use_case)" if bulk else "plain rows (data.set or data.files)"
        yield Problem(key_path((*path, key)), f"only a load of {what} has this key", "Remove it.")
    if bulk and not {"set", "files"} & table["data"].keys():
        words = "rows come from a `set`, or from `files`, which may have a set's columns."
        hint = "Give { set = …, rows = … } or { files = … }; { use_case = … } is a time series."
        yield Problem(key_path((*path, "data")), words, hint)
    if bulk and "table" not in table:
        where = key_path((*path, "table"))
        yield Problem(where, "a load of plain rows needs this key", 'Add table = { name = "…" }.')
    if "queries" in table and is_plain(table) != bulk:
        where = key_path((*path, "queries"))
        has, rows = ("statements", "plain rows") if bulk else ("kinds", "a time series")
        yield Problem(where, f"a load of {rows} runs queries with '{has}'", f"Set queries.{has}.")


def _phase(index: int, table: dict[str, Any], parameters: Mapping[str, Parameter]) -> Phase:
    sweep = table.get("sweep", {})
    if isinstance(sweep, dict):
        lists = [[(name, value) for value in values] for name, values in sweep.items()]
        sweep = [dict(choice) for choice in itertools.product(*lists)] if lists else []
    variants = tuple(_checked(variant, parameters) for variant in sweep)
    return Phase(table["id"], table["kind"], index, table, variants)


def _swept_names(table: Mapping[str, Any]) -> Iterator[str]:
    sweep = table.get("sweep", {})
    for variant in sweep if isinstance(sweep, list) else [sweep]:
        yield from variant


def _size_value(value: Any, parameter: Parameter) -> Value | tuple[Value, ...]:
    if isinstance(value, list):
        return tuple(dict.fromkeys(parameter.check(single) for single in value))
    return parameter.check(value)


def _checked(values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Value]:
    return {name: parameters[name].check(value) for name, value in values.items()}


def _named_files(phase: Phase) -> Iterator[tuple[str, str]]:
    """Yield (key path, file name) for each file that a phase names."""
    for path, text in texts_in(phase.body, ("phase", phase.index)):
        suffix = ".pgbench" if "scripts" in path else ".sql"
        is_text = path[-1] == "count" or path[-1] == "sql" or {"setup", "after", "scripts"} & set(path)
        if is_text and path[-1] != "weight" and file_named(text, suffix):
            yield key_path(path), text


def _read_files(folder: Path, phases: tuple[Phase, ...]) -> dict[str, str]:
    """Read every named file; a missing one is refused with the key that names it."""
    files: dict[str, str] = {}
    for where, name in (pair for phase in phases for pair in _named_files(phase)):
        path = folder / name
        if folder.resolve() not in path.resolve().parents:
            problem = Problem(
                where, f"{name} is outside the scenario's folder", "Move the file into the folder."
            )
            raise_problems(str(folder / SCENARIO_FILE), [problem])
        if not path.is_file():
            there = sorted(file.name for file in folder.glob(f"*{path.suffix}"))
            hint = f"{nearest(name, there)}Files there: {', '.join(there) or 'none'}."
            raise_problems(str(folder / SCENARIO_FILE), [Problem(where, f"there is no file {name}", hint)])
        files[name] = _text_of(path)
    return files | {name: _text_of(path) for name, path in dialect_files(folder, files).items()}


def _text_of(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    learn(text)
    return text


def _private_texts(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    return texts_in(document.get("private_server", {}), ("private_server",))


def _name_problems(
    file: Path,
    texts: Iterable[tuple[tuple[str | int, ...], str]],
    parameters: Mapping[str, Parameter],
) -> Iterator[Problem]:
    """Yield names in templates that are neither parameters nor known to every template."""
    for path, text in texts:
        where = key_path(path)
        for name in sorted(names_in(text, f"{file}: {where}") - set(parameters) - set(TEMPLATE_NAMES)):
            yield unknown_parameter(name, parameters, where)


def _check_file_names(folder: Path, files: Mapping[str, str], parameters: Mapping[str, Parameter]) -> None:
    for name, text in files.items():
        for unknown in sorted(names_in(text, str(folder / name)) - set(parameters) - set(TEMPLATE_NAMES)):
            problem = unknown_parameter(unknown, parameters, f"{{{{ {unknown} }}}}")
            raise_problems(str(folder / name), [problem])
