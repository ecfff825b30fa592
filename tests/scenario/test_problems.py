"""Every value of scenario.toml is checked against the type of its key, and all mistakes are said at once."""

from __future__ import annotations

import copy
import datetime as dt
import json
import math
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from loadstone.cli.group import loadstone
from loadstone.errors import LoadstoneError
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.scenario.builtin import SCENARIO_FILE, builtin_scenarios
from loadstone.scenario.problems import phase_problems, scenario_problems
from loadstone.scenario.scenario import load_scenario
from loadstone.scenario.schema import key_path, scenario_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOCUMENTS = [
    tomllib.loads((folder / SCENARIO_FILE).read_text(encoding="utf-8"))
    for folder in builtin_scenarios().values()
]
SCRIPT = {"scripts": ["a.pgbench"], "clients": 1, "duration_s": 1}
FILES = {"a.sql": "select {{ clients }}", "a.pgbench": "select 1;"}


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the key paths of all values that are neither tables nor lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))
    if not isinstance(value, (dict, list)):
        yield path


def put(document: Any, path: tuple[str | int, ...], value: object) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def toml(value: Any) -> str:
    """Write a value as TOML, tables in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value).replace("e+", "e")
    return value.isoformat() if isinstance(value, dt.date) else json.dumps(value)


@given(st.data())
def test_every_mistake_is_found_in_its_place_and_nothing_else(data: st.DataObject) -> None:
    document = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    wrong = data.draw(st.lists(st.sampled_from(list(places(document))), min_size=1, max_size=8, unique=True))
    for day, path in enumerate(wrong, 1):
        put(document, path, dt.date(2020, 1, day))  # no key of a scenario is a date
    found = scenario_problems(document)
    assert [problem.path for problem in found] == sorted(map(key_path, wrong))
    assert all("2020-01-0" in problem.message for problem in found)
    assert all(problem.hint.startswith("Use: ") for problem in found)


def test_the_scenarios_that_are_built_in_have_no_mistakes() -> None:
    assert [scenario_problems(document) for document in DOCUMENTS] == [[]] * len(DOCUMENTS)


KEYS = st.sampled_from(
    [
        "use_case",
        "set",
        "files",
        "start",
        "kinds",
        "statements",
        "name",
        "rows",
        "least",
        "most",
        "when",
        "file",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.dates()
    | st.sampled_from(["", "x", "a.sql", "a.pgbench", "iot", "{{ clients }}", "{% if", "sql", "{{ 'x' }}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: value is not None)
PHASE_KEYS = st.sampled_from(list(scenario_schema()["$defs"]["Phase"]["properties"]))


def without_none(value: Any) -> Any:
    """TOML has no null."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value if item is not None] if isinstance(value, list) else value


@given(st.dictionaries(PHASE_KEYS, VALUES, max_size=6))
def test_any_phase_has_problems_in_words_or_none(phase: dict[str, Any]) -> None:
    for problem in phase_problems(phase, 0):
        assert problem.path.startswith("phase[0]")
        assert problem.message
        assert problem.hint


@given(st.data())
def test_any_toml_is_a_scenario_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A scenario with any values anywhere is loaded and planned, or refused with a hint: nothing else."""
    document: dict[str, Any] = {
        "id": "mine",
        "title": "Mine",
        "version": "1",
        "why": "To see.",
        "parameters": {"clients": {"type": "integer", "default": 2, "help": "Connections"}},
        "phase": [
            {"id": "a", "kind": "sql", "title": "A", "setup": ["a.sql"]},
            {
                "id": "b",
                "kind": "script",
                "title": "B",
                "scripts": ["a.pgbench"],
                "clients": 1,
                "duration_s": 1,
            },
            {
                "id": "c",
                "kind": "load",
                "title": "C",
                "data": {"set": "import", "rows": 9},
                "table": {"name": "t"},
            },
            {
                "id": "d",
                "kind": "queries",
                "title": "D",
                "queries": {"statements": [{"name": "q", "sql": "a.sql"}]},
            },
        ],
    }
    for _ in range(data.draw(st.integers(0, 2))):
        phase = data.draw(st.sampled_from(document["phase"]))
        key = data.draw(PHASE_KEYS.filter(lambda name: name != "id"))
        phase[key] = without_none(data.draw(VALUES))
    for _ in range(data.draw(st.integers(0, 1))):
        put(document, data.draw(st.sampled_from(list(places(document)))), without_none(data.draw(VALUES)))
    folder = tmp_path_factory.mktemp("any", numbered=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / SCENARIO_FILE).write_text("\n".join(f"{key} = {toml(v)}" for key, v in document.items()))
    try:
        plan = make_plan([load_scenario(folder)], [PlanTarget("pg", "postgres", "u")], "tiny")
    except LoadstoneError as error:
        words, phases = error.hint, 4
    else:
        words, phases = "planned", len(plan.targets[0].phases)
    assert words
    assert phases >= 4


@pytest.mark.parametrize(
    ("key", "value", "path", "hint"),
    [
        ("kind", "scrpt", "phase[0].kind", "Did you mean 'script'? Use: One of sql"),
        ("pace", "poison", "phase[0].pace", "Did you mean 'poisson'?"),
        ("sweep", {"a": [1, 1]}, "phase[0].sweep.a", "Use: A list of values, each once."),
        ("sweep", [], "phase[0].sweep", "or a list of variants"),
        ("sweep", [{}], "phase[0].sweep[0]", "One variant"),
        ("variables", {"1": 1}, "phase[0].variables.1", "Use: A name of a script variable"),
        ("data", {"use_case": "iot"}, "phase[0].data.start", "First timestamp"),
        ("queries", {"kinds": []}, "phase[0].queries.kinds", "TSBS's names of query kinds"),
        ("scripts", ["x"], "phase[0].scripts[0]", "The name of a .pgbench file"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_right(key: str, value: object, path: str, hint: str) -> None:
    (found,) = phase_problems({"id": "d", "kind": "sql", "title": "d", key: value}, 0)
    assert found.path == path
    assert hint in found.hint


def test_tsbs_queries_are_of_a_time_series(tmp_path: Path) -> None:
    head = 'id = "mine"\ntitle = "Mine"\nversion = "1"\nwhy = "To see."\n[[phase]]\nid = "a"\ntitle = "A"\n'
    asked = 'kind = "queries"\nqueries = { kinds = ["last-loc"] }\ndata = { set = "import", rows = 1 }\n'
    (tmp_path / SCENARIO_FILE).write_text(head + asked)
    with pytest.raises(LoadstoneError, match=r"phase\[0\]\.data: TSBS's queries need a time series"):
        load_scenario(tmp_path)


def test_every_key_says_what_it_is() -> None:
    for name, table in scenario_schema()["$defs"].items():
        for key, described in table["properties"].items():
            assert "description" in described or "$ref" in described, f"{name}.{key}"


def test_the_schema_is_printed_for_editors() -> None:
    shown = CliRunner().invoke(loadstone, ["scenarios", "--schema"])
    schema = json.loads(shown.output)
    assert schema == scenario_schema()
    references = {part["$ref"] for part in tables_in(schema) if "$ref" in part}
    assert references == {f"#/$defs/{name}" for name in schema["$defs"]}


def tables_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from tables_in(item)
