"""A phase of a scenario with its templates filled in: [[phase]] → PlannedPhase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from loadstone.model import Published
from loadstone.plan.model import PlannedPhase
from loadstone.plan.workloads import FilledPhase, workload_of
from loadstone.scenario import tables
from loadstone.scenario.builtin import SCENARIO_FILE
from loadstone.scenario.load import bulk_clashes, curves_of, is_bulk
from loadstone.scenario.problems import form_of, phase_problems, plain, type_of
from loadstone.scenario.queries import is_plain, query_clashes
from loadstone.scenario.scenario import NOT_TEMPLATES, Phase, Scenario, key_problems
from loadstone.scenario.schema import Problem, key_path, raise_problems
from loadstone.scenario.template import render
from loadstone.scenario.texts import one_statement, statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.model import Value


def fill_phase(scenario: Scenario, phase: Phase, values: Mapping[str, Value]) -> dict[str, Any]:
    """Fill in the templates of a phase's table; what comes out empty counts as left out.

    Raises LoadstoneError with the key path when a value is not possible.
    """
    where = f"{scenario.folder / SCENARIO_FILE}: {key_path(('phase', phase.index))}"
    table = {key: value for key, value in phase.body.items() if key not in NOT_TEMPLATES}
    filled: dict[str, Any] = {key: phase.body[key] for key in ("id", "kind")}
    filled |= _fill(table, values, where, type_of(tables.Phase))
    path = ("phase", phase.index)
    problems = phase_problems(filled, phase.index) or list(key_problems(filled, path))
    raise_problems(str(scenario.folder / SCENARIO_FILE), problems or list(_clashes(filled, path)))
    return filled


def planned_phase(
    scenario: Scenario, phase: Phase, values: Mapping[str, Value], seed: int
) -> tuple[PlannedPhase, dict[str, Any]]:
    """Return the phase ready to run, but for key, repeat and skip, and the table that it was made of."""
    table = fill_phase(scenario, phase, values)
    workload = workload_of(FilledPhase(scenario, phase, table, values, seed))
    planned = PlannedPhase(
        key="",
        id=phase.id,
        scenario=scenario.id,
        title=table["title"],
        workload=workload,
        why=table.get("why", "").strip(),
        setup=statements(scenario, table.get("setup", ()), values),
        checks=tuple(
            (check["name"], one_statement(scenario, check["sql"], values), check["expected"])
            for check in table.get("checks", ())
        ),
        headline=table.get("headline", workload.headline),
        rows_per_transaction=table.get("rows_per_transaction"),
        published=tuple(_published(phase, values)),
        curves=tuple(curves_of(phase.body, values)),
        knee=table.get("knee", False),
        optional=table.get("optional", False),
        setup_estimate_s=float(table.get("setup_estimate_s", 0)),
    )
    return planned, table


def _fill(value: Any, values: Mapping[str, Value], where: str, kind: inspect.Type | None) -> Any:
    """Fill in a tree; its type says where a number is meant."""
    if isinstance(value, str):
        return _convert(render(value, values, where), kind) if "{" in value else value
    form = form_of(kind, value) if kind else None
    if isinstance(value, dict):
        found = {
            key: _fill(item, values, f"{where}.{key}", _type_of_key(form, key)) for key, item in value.items()
        }
        return {key: item for key, item in found.items() if item != "" or value[key] == ""}
    if isinstance(value, list):
        items = form.item_type if isinstance(form, inspect.ListType) else None
        filled = [_fill(item, values, f"{where}[{place}]", items) for place, item in enumerate(value)]
        return [item for item in filled if item != ""]
    return value


def _type_of_key(form: inspect.Type | None, key: str) -> inspect.Type | None:
    if isinstance(form, inspect.StructType):
        return next((field.type for field in form.fields if field.encode_name == key), None)
    return form.value_type if isinstance(form, inspect.DictType) else None


def _convert(text: str, kind: inspect.Type | None) -> Value:
    """Read a filled-in text as the type that the key is to have; what does not fit is refused later."""
    found = plain(kind) if kind else None
    if not isinstance(found, inspect.UnionType):
        return text
    choices = [plain(choice) for choice in found.types]
    text = text.strip()
    if any(isinstance(choice, inspect.BoolType) for choice in choices):
        return {"true": True, "false": False}.get(text, text)
    try:
        if any(isinstance(choice, inspect.IntType) for choice in choices):
            return int(text)
        return float(text) if any(isinstance(choice, inspect.FloatType) for choice in choices) else text
    except ValueError:
        return text


def _clashes(table: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Yield keys that cannot stand together."""
    if "duration_s" in table and "transactions_per_client" in table:
        where = key_path((*path, "transactions_per_client"))
        yield Problem(
            where, "the phase ends either by time or by count, not by both", "Let one of the two be empty."
        )
    if is_plain(table):
        yield from query_clashes(table["queries"], table["kind"], (*path, "queries"))
    for inside, paced in ((path, table), ((*path, "queries"), table.get("queries", {}))):
        if (paced.get("pace", "closed") != "closed") != ("rate_per_s" in paced):
            where = key_path((*inside, "rate_per_s"))
            yield Problem(
                where,
                "a rate needs pace fixed or poisson, and such a pace needs a rate",
                "Set both, or neither.",
            )
    if is_bulk(table):
        yield from bulk_clashes(table, path)
        return
    data = table.get("data")
    if data is not None and ("end" in data) == ("span_s" in data):
        yield Problem(
            key_path((*path, "data")),
            "the data ends either by `end` or by `span_s`, not by both",
            "Set one of them.",
        )
    scripts = table.get("scripts", ())
    if scripts and not any(isinstance(script, str) or script.get("weight", 1) for script in scripts):
        yield Problem(key_path((*path, "scripts")), "no script has a weight above 0", "Raise one weight.")


def _published(phase: Phase, values: Mapping[str, Value]) -> Iterator[Published]:
    for figure in phase.body.get("published", ()):
        when = figure.get("when", {})
        if all(values[name] == value for name, value in when.items()):
            words = {key: figure[key] for key in ("note", "system", "query") if key in figure}
            yield Published(figure["metric"], figure["value"], figure["unit"], **words)
