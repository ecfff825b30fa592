import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario, load_scenario

SOUND = """
id = "mine"
title = "Mine"
version = "1"
why = "To see."

[parameters.clients]
type = "integer"
default = 2
minimum = 1
help = "Connections"

[parameters.index]
type = "enum"
values = ["none", "brin"]
default = "brin"
help = "Index"

[sizes.tiny]
clients = 1

[[phase]]
id = "prepare"
kind = "sql"
title = "Prepared"
setup = ["a.sql"]

[[phase]]
id = "go"
kind = "script"
title = "Go, {{ index }}"
sweep = { index = ["none", "brin"] }
scripts = ["a.pgbench"]
clients = "{{ clients }}"
duration_s = 1
published = [{ metric = "tps", value = 10, unit = "1/s", when = { index = "brin" } }]
"""


def _finding(keys: str) -> tuple[str, str, str]:
    table = f'[[finding]]\nquestion = "Which?"\n{keys}\n\n[[phase]]\nid = "prepare"'
    return '[[phase]]\nid = "prepare"', table, ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.sql").write_text("create table t{{ clients }} (a int);")
    (tmp_path / "a.pgbench").write_text("select 1;")
    return tmp_path


def write(folder: Path, text: str) -> Path:
    (folder / "scenario.toml").write_text(text)
    return folder


def test_a_sound_folder(folder: Path) -> None:
    scenario = load_scenario(write(folder, SOUND))
    assert (scenario.id, scenario.source, scenario.sizes) == ("mine", None, {"tiny": {"clients": 1}})
    assert scenario.phases[1].sweep == ({"index": "none"}, {"index": "brin"})
    assert scenario.files == {"a.sql": "create table t{{ clients }} (a int);", "a.pgbench": "select 1;"}


def test_a_scenario_is_found_by_folder_by_file_and_by_name(folder: Path) -> None:
    write(folder, SOUND)
    assert find_scenario(str(folder)) == load_scenario(folder)
    assert find_scenario(str(folder / "scenario.toml")) == load_scenario(folder)
    assert find_scenario("iot-feed").folder == builtin_scenarios()["iot-feed"]
    with pytest.raises(LoadstoneError, match="Did you mean 'iot-feed'"):
        find_scenario("iot-fed")
    with pytest.raises(LoadstoneError, match="cannot be read"):
        find_scenario("./no-such-folder")


def test_variants_may_be_listed(folder: Path) -> None:
    text = SOUND.replace('{ index = ["none", "brin"] }', '[{ index = "none", clients = 1 }, { clients = 3 }]')
    assert load_scenario(write(folder, text)).phases[1].sweep == (
        {"index": "none", "clients": 1},
        {"clients": 3},
    )


BROKEN = [
    ("id = 'mine'\nid = 'x'\n", None, "", "is not TOML", "line 2, column"),
    ('title = "Mine"', "", "", "title: this key is missing", "title of one line"),
    (
        'title = "Mine"',
        'titel = "Mine"\ntitle = "x"',
        "",
        "titel: there is no such key",
        "Did you mean 'title'",
    ),
    ('id = "mine"', 'id = "Mine!"', "", 'id: "Mine!" is not possible', "joined by hyphens"),
    (
        "duration_s = 1",
        "durations = 1\nduration_s = 1",
        "",
        "phase[1].durations: there is no",
        "'duration_s'",
    ),
    ("duration_s = 1", "duration_s = 0", "", "phase[1].duration_s: 0 is not", "more than 0"),
    ("duration_s = 1", "", "", "phase[1].duration_s: nothing says when", "transactions_per_client"),
    ('clients = "{{ clients }}"', "clients = 1.5", "", "phase[1].clients: 1.5 is not", "whole number from 1"),
    ('clients = "{{ clients }}"', 'clients = "two"', "", 'phase[1].clients: "two" is not', "template"),
    (
        'clients = "{{ clients }}"',
        'clients = "{{ client }}"',
        "",
        "there is no parameter 'client'",
        "'clients'",
    ),
    ('clients = "{{ clients }}"', 'clients = "{{ clients"', "", "phase[1].clients, line 1: broken", "raw"),
    ('clients = "{{ clients }}"', "", "", "phase[1].clients: a phase of kind script needs", "Add"),
    ('id = "go"', 'id = "prepare"', "", "phase[1].id: phase[0] already has the id 'prepare'", "another id"),
    ('["none", "brin"] }', '["none", "bri"] }', "", "phase[1].sweep.index: the parameter 'index'", "'brin'"),
    ("sweep = { index", "sweep = { indx", "", "phase[1].sweep.indx: there is no parameter", "'index'"),
    ("when = { index", "when = { indx", "", "phase[1].published[0].when.indx: there is no", "'index'"),
    (
        "[sizes.tiny]\nclients = 1",
        "[sizes.tiny]\nclient = 1",
        "",
        "sizes.tiny.client: there is no",
        "'clients'",
    ),
    (
        "[sizes.tiny]\nclients = 1",
        "[sizes.tiny]\nclients = 0",
        "",
        "sizes.tiny.clients: the parameter",
        "from 1",
    ),
    ("[sizes.tiny]", "[sizes.huge]", "", "sizes.huge: there is no such key", "tiny, small, full"),
    ("default = 2", "default = 0", "", "parameters.clients.default: the parameter", "from 1"),
    ("default = 2", 'default = 2\nvalues = ["a"]', "", "parameters.clients.values: an enum has", "values"),
    ("[parameters.clients]", "[parameters.seed]", "", "parameters.seed: this cannot be a name", "taken"),
    ('"a.sql"', '"b.sql"', "", "phase[0].setup[0]: there is no file b.sql", "Files there: a.sql"),
    ('"a.sql"', '"../a.sql"', "", "phase[0].setup[0]: ../a.sql is outside", "into the folder"),
    ('"a.pgbench"', '{ fil = "a.pgbench" }', "", "phase[1].scripts[0].fil: there is no", "'file'"),
    (
        'setup = ["a.sql"]',
        'setup = ["a.sql"]\nclients = 3',
        "",
        "phase[0].clients: a phase of kind sql",
        "script",
    ),
    ('kind = "sql"', 'kind = "sq"', "", 'phase[0].kind: "sq" is not', "One of sql"),
    ("", "", "create table {{ tabel }} ()", "there is no parameter 'tabel'", "Parameters"),
    (*_finding('compare = "rates"\nparameter = "clients"'), "finding[0].parameter: no phase sweeps", "index"),
    (*_finding('compare = "rates"'), "finding[0].parameter: only", "Add it"),
    (*_finding('compare = "knee"\nparameter = "index"'), "finding[0].parameter: only", "remove it"),
    (*_finding('compare = "phases"\nphases = ["prepare"]'), "finding[0].phases: compare", "prepare, go"),
    (*_finding('compare = "rate"'), 'finding[0].compare: "rate" is not', "rates, sizes: of the values"),
    (
        *_finding('compare = "knee"\nphases = ["gone"]'),
        "finding[0].phases[0]: there is no phase",
        "prepare, go",
    ),
]


@pytest.mark.parametrize(("old", "new", "sql", "message", "hint"), BROKEN)
def test_what_is_wrong_is_said_with_file_key_and_mend(
    folder: Path, old: str, new: str | None, sql: str, message: str, hint: str
) -> None:
    if sql:
        (folder / "a.sql").write_text(sql)
    if new is None:
        write(folder, old)
    else:
        assert old in SOUND
        write(folder, SOUND.replace(old, new, 1))
    with pytest.raises(LoadstoneError) as caught:
        load_scenario(folder)
    assert message in caught.value.message
    assert hint in str(caught.value)
    assert str(folder) in caught.value.message


def test_all_problems_are_told_at_once(folder: Path) -> None:
    write(folder, SOUND.replace('title = "Mine"', "").replace("duration_s = 1", 'duration_s = "x"'))
    with pytest.raises(LoadstoneError, match="has 2 problems") as caught:
        load_scenario(folder)
    assert "title: this key is missing" in caught.value.message
    assert "phase[1].duration_s" in caught.value.message


def test_files_must_be_utf8(folder: Path) -> None:
    (folder / "a.sql").write_bytes(b"select '\xff'")
    with pytest.raises(LoadstoneError, match=r"a\.sql is not UTF-8 text \(byte 8\)"):
        load_scenario(write(folder, SOUND))


KEYS = [
    "id",
    "kind",
    "title",
    "setup",
    "sweep",
    "scripts",
    "clients",
    "checks",
    "published",
    "requires",
    "variables",
]
VALUES = st.one_of(
    st.integers(),
    st.booleans(),
    st.sampled_from(["", "a.sql", "drive", "check", "{{ clients }}", "{{", "x"]),
    st.lists(st.sampled_from(["a.sql", "{% x", "a.pgbench"]), max_size=2),
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_any_phase_is_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("scenario", numbered=True)
    (folder / "a.sql").write_text("select 1")
    (folder / "a.pgbench").write_text("select 1")
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    write(folder, SOUND.partition("[[phase]]")[0] + "[[phase]]\n" + "\n".join(lines))
    try:
        assert load_scenario(folder).phases[0].id == table["id"]
    except LoadstoneError as error:
        refusal = error
    else:
        return
    assert "scenario.toml" in refusal.message
    assert refusal.hint


def test_the_documented_scenario_is_sound(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "write-a-scenario.md").read_text()
    sql, script, toml = re.findall(r"```(?:sql|toml)?\n((?:drop |\\set|id =).*?)```", page, re.DOTALL)
    (tmp_path / "tables.sql").write_text(sql)
    (tmp_path / "order.pgbench").write_text(script)
    scenario = load_scenario(write(tmp_path, toml))
    plan = make_plan([scenario], [PlanTarget("pg", "postgres", "postgres://x/y")], "tiny")
    assert [phase.key for phase in plan.targets[0].phases] == ["001-orders-key-false", "002-orders-key-true"]
    assert "primary key" in plan.targets[0].phases[1].setup[1]


def test_a_size_may_give_several_values_of_what_is_swept(folder: Path) -> None:
    text = SOUND.replace("clients = 1\n", 'clients = 1\nindex = ["brin"]\n', 1)
    write(folder, text)
    target = [PlanTarget("pg", "postgres", "u")]

    def swept(size: str, **overrides: str) -> tuple[object, ...]:
        plan = make_plan([load_scenario(folder)], target, size, overrides)
        return tuple(phase.variant.get("index") for phase in plan.targets[0].phases)[1:]

    assert swept("small") == ("none", "brin")
    assert swept("tiny") == ("brin",)
    assert swept("tiny", index="none,brin") == ("none", "brin")
    for value in ("[1, 2]", "[1]"):
        with pytest.raises(LoadstoneError, match=r"sizes\.tiny\.clients: no phase sweeps this parameter"):
            load_scenario(write(folder, SOUND.replace("clients = 1\n", f"clients = {value}\n", 1)))
