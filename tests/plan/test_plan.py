import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.workloads import drive_of

from loadstone import model
from loadstone.errors import LoadstoneError
from loadstone.plan import model as planned
from loadstone.plan.plan import PlanTarget, estimated_seconds, make_plan, plan_from_json, plan_to_json
from loadstone.scenario.scenario import Scenario, load_scenario

SCENARIO = """
id = "mine"
title = "Mine"
version = "1"
why = "To see."
requires = { capabilities = ["plpgsql"] }
parameters.clients = { type = "integer", default = 2, minimum = 1, help = "Connections" }
parameters.threads = { type = "integer", default = 0, help = "Threads" }
parameters.seconds = { type = "number", default = 4, minimum = 0, unit = "s", help = "Time" }
parameters.index = { type = "enum", values = ["none", "brin", "btree"], default = "brin", help = "Index" }
sizes.tiny = { clients = 1, seconds = 0.5 }

[[phase]]
id = "prepare"
kind = "sql"
title = "Prepared"
setup = ["create table t (a int); insert into t values (1)"]
setup_estimate_s = 2

[[phase]]
id = "warm"
kind = "sql"
title = "Warm"
requires = ["extension:pg_prewarm"]
optional = true
setup = ["create extension pg_prewarm"]

[[phase]]
id = "go"
kind = "script"
title = "Index {{ index }}"
requires = ["{{ index if index == 'brin' else '' }}"]
min_server_version = "9.6"
sweep = { index = ["none", "brin"], clients = [1, 2] }
setup = ["a.sql"]
scripts = ["a.pgbench", { file = "b.pgbench", weight = "{{ clients * 2 }}" }]
clients = "{{ clients }}"
threads = "{{ threads or '' }}"
duration_s = "{{ seconds }}"
warmup_s = 1
variables = { scale = 7, seedling = "{{ seed }}" }
rows_per_transaction = 1
row_check = { count = "select count(*) from t" }
checks = [{ name = "clients", sql = "select 1", expected = "{{ clients }}" }]
published = [{ metric = "tps", value = 10, unit = "1/s", when = { index = "brin" } }]
"""
TARGET = PlanTarget("pg18", "postgres", "postgres://localhost/x")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "a.sql").write_text(
        "drop table t;\n{% if index != 'none' %}create index on t using {{ index }} (a);{% endif %}"
    )
    (tmp_path / "a.pgbench").write_text("select {{ clients }};")
    (tmp_path / "b.pgbench").write_text("select 2;")
    return tmp_path


@pytest.fixture
def scenario(folder: Path) -> Scenario:
    return load_scenario(folder)


def phases(plan: planned.Plan, target: int = 0) -> tuple[planned.PlannedPhase, ...]:
    return plan.targets[target].phases


def test_a_sweep_is_the_cross_product_and_keys_tell_the_variant(scenario: Scenario) -> None:
    plan = make_plan([scenario], [TARGET], "tiny", repeats=2)
    keys = [phase.key for phase in phases(plan)]
    assert keys[:4] == [
        "001-prepare",
        "002-warm",
        "003-go-index-none-clients-1",
        "004-go-index-none-clients-2",
    ]
    assert keys[-1] == "012-go-index-brin-clients-2-r2"
    assert len(set(keys)) == len(keys) == 12
    assert [phase.repeat for phase in phases(plan)] == [1] * 6 + [2] * 6


def test_every_template_is_filled_in(scenario: Scenario) -> None:
    go = phases(make_plan([scenario], [TARGET], "tiny", seed=5))[5]
    assert go.title == "Index brin"
    assert go.setup == ("drop table t", "create index on t using brin (a)")
    assert drive_of(go) == model.Drive(
        scripts=(model.Script("a.pgbench", "select 2;"), model.Script("b.pgbench", "select 2;", 4)),
        clients=2,
        duration_s=0.5,
        warmup_s=1,
        seed=5,
        variables={"scale": 7, "seedling": "5"},
    )
    assert isinstance(go.workload, planned.ScriptWorkload)
    assert go.workload.row_check == model.RowCheck("select count(*) from t", 1)
    assert go.checks == (("clients", "select 1", "2"),)
    assert go.published == (model.Published("tps", 10, "1/s"),)


def test_published_figures_stand_on_their_variant_alone(scenario: Scenario) -> None:
    found = [bool(phase.published) for phase in phases(make_plan([scenario], [TARGET], "tiny"))]
    assert found == [False, False, False, False, True, True]


def test_default_then_size_then_the_user(scenario: Scenario) -> None:
    def threads_and_duration(size: str, **overrides: str) -> tuple[int | None, float | None]:
        drive = drive_of(phases(make_plan([scenario], [TARGET], size, overrides))[2])
        return drive.threads, drive.duration_s

    assert threads_and_duration("full") == (None, 4)
    assert threads_and_duration("tiny") == (None, 0.5)
    assert threads_and_duration("tiny", threads="3", seconds="2 s") == (3, 2)


def test_a_user_replaces_a_sweep(scenario: Scenario) -> None:
    plan = make_plan(
        [scenario], [TARGET], "tiny", {"mine.index": "btree, none", "index": "brin", "clients": "8"}
    )
    assert [phase.variant for phase in phases(plan)[2:]] == [
        {"index": "btree", "clients": 8},
        {"index": "none", "clients": 8},
    ]
    assert plan.scenarios[0].parameters == {"clients": 8, "threads": 0, "seconds": 0.5, "index": "btree"}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"client": "1"}, "Did you mean 'clients'"),
        ({"clients": "0"}, "'clients' cannot be 0"),
        ({"clients": "two"}, "'clients' cannot be 'two'"),
        ({"seconds": "1,2"}, "'seconds' cannot be '1,2'"),
        ({"mien.clients": "1"}, "no scenario 'mien' is run"),
        ({"seconds": "0"}, r"phase\[2\].duration_s: 0.0 is not possible"),
    ],
)
def test_overrides_that_cannot_be(scenario: Scenario, overrides: dict[str, str], words: str) -> None:
    with pytest.raises(LoadstoneError, match=words):
        make_plan([scenario], [TARGET], "tiny", overrides)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": "tinny"}, "Did you mean 'tiny'"),
        ({"repeats": 0}, "of repeats"),
        ({"targets": []}, "needs a scenario and a target"),
        ({"targets": [TARGET, TARGET]}, "target 'pg18' is there twice"),
    ],
)
def test_requests_that_cannot_be(scenario: Scenario, arguments: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"scenarios": [scenario], "targets": [TARGET], "size": "tiny"}
    with pytest.raises(LoadstoneError, match=words):
        make_plan(**(asked | arguments))


def test_what_a_target_cannot_do_is_skipped_in_words(scenario: Scenario) -> None:
    able = dataclasses.replace(
        TARGET, id="able", capabilities=frozenset({"plpgsql", "brin"}), server_version="9.6.24 (x)"
    )
    old = dataclasses.replace(TARGET, id="old", capabilities=able.capabilities, server_version="9.5")
    poor = dataclasses.replace(TARGET, id="poor", capabilities=frozenset())
    plan = make_plan([scenario], [TARGET, able, old, poor], "tiny")
    assert [phase.skip for phase in phases(plan)] == [None] * 6
    no_prewarm = "postgres does not support extension pg_prewarm on this server"
    assert [phase.skip for phase in phases(plan, 1)] == [None, no_prewarm, None, None, None, None]
    too_old = "needs server version 9.6 or newer; this server has 9.5"
    assert [phase.skip for phase in phases(plan, 2)] == [None, no_prewarm] + [too_old] * 4
    assert phases(plan, 3)[5].skip == "postgres does not support plpgsql and brin on this server"
    assert [p.key for p in phases(plan, 3)] == [p.key for p in phases(plan)]


def test_the_estimate_counts_what_will_run(scenario: Scenario) -> None:
    assert estimated_seconds(make_plan([scenario], [TARGET], "tiny")) == 2 + 4 * 1.5
    poor = dataclasses.replace(TARGET, capabilities=frozenset())
    assert estimated_seconds(make_plan([scenario], [poor], "tiny", repeats=3)) == 0


def edited(folder: Path, old: str, new: str) -> Scenario:
    assert old in SCENARIO
    (folder / "scenario.toml").write_text(SCENARIO.replace(old, new))
    return load_scenario(folder)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("warmup_s = 1", 'transactions_per_client = "{{ clients }}"', "ends either by time or by count"),
        ("warmup_s = 1", 'pace = "fixed"', r"phase\[2\].rate_per_s: a rate needs"),
        ("warmup_s = 1", "rate_per_s = 3", r"phase\[2\].rate_per_s: a rate needs"),
        ("warmup_s = 1", "warmup_s = '{{ index }}'", r'phase\[2\].warmup_s: "none" is not possible'),
        (
            '"{{ clients }}"\nthreads',
            "\"{{ '' }}\"\nthreads",
            r"phase\[2\].clients: a phase of kind script needs",
        ),
        ("select count(*) from t", "select 1; select 2", "2 statements"),
        ('"{{ clients * 2 }}" }', '0 }, { file = "b.pgbench", weight = 0 }', None),
        ('"a.pgbench", {', '{ file = "a.pgbench", weight = 0 }, {', None),
        ('title = "Index {{ index }}"', "title = '{{ 1 / 0 }}'", "division by zero"),
    ],
)
def test_values_that_only_show_when_filled_in(folder: Path, old: str, new: str, words: str | None) -> None:
    found = edited(folder, old, new)
    if words is None:
        assert make_plan([found], [TARGET], "tiny")
        return
    with pytest.raises(LoadstoneError, match=words) as caught:
        make_plan([found], [TARGET], "tiny")
    assert caught.value.hint


def test_a_secret_is_not_swept_into_names_of_folders(folder: Path) -> None:
    text = SCENARIO.replace("index", "db_password")
    (folder / "scenario.toml").write_text(text)
    (folder / "a.sql").write_text("select 1")
    with pytest.raises(LoadstoneError, match="parameter 'db_password' cannot be swept"):
        make_plan([load_scenario(folder)], [TARGET], "tiny")


def test_a_mix_without_weight_is_refused(folder: Path) -> None:
    found = edited(
        folder,
        '["a.pgbench", { file = "b.pgbench", weight = "{{ clients * 2 }}" }]',
        '[{ file = "b.pgbench", weight = 0 }]',
    )
    with pytest.raises(LoadstoneError, match="no script has a weight above 0"):
        make_plan([found], [TARGET], "tiny")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("\\set a :scale\nselect 1;\n  \\nonsense x\n", "a.pgbench, line 3, column 4: invalid command"),
        ("select 1;\nselect :nosuch;\n", "a.pgbench, line 2: nothing in this script sets :nosuch"),
    ],
)
def test_broken_scripts_are_refused_before_anything_runs(folder: Path, script: str, words: str) -> None:
    (folder / "a.pgbench").write_text(script)
    with pytest.raises(LoadstoneError, match=words):
        make_plan([load_scenario(folder)], [TARGET], "tiny")


def test_same_inputs_same_bytes(scenario: Scenario) -> None:
    texts = {plan_to_json(make_plan([scenario], [TARGET], "small", {"clients": "3"})) for _ in range(3)}
    assert len(texts) == 1


names = st.text(max_size=8)
values = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), names
)
mappings = st.dictionaries(names, values, max_size=3)
st.register_type_strategy(Path, names.filter(lambda name: "\0" not in name).map(Path))
floats = st.floats(0, 1e9)
optional_floats = st.none() | floats
drives = st.builds(
    model.Drive,
    scripts=st.lists(st.builds(model.Script), max_size=2).map(tuple),
    duration_s=optional_floats,
    warmup_s=floats,
    pace=st.builds(model.Pace, kind=st.sampled_from(["closed", "fixed"]), rate_per_s=optional_floats),
    latency_limit_ms=optional_floats,
    timeout_s=floats,
    seed=st.integers(0, 2**63 - 1),
    variables=mappings,
)
row_checks = st.none() | st.builds(model.RowCheck, names, st.integers(0, 9))
series = st.builds(model.Series, slice=st.tuples(st.integers(0, 3), st.integers(1, 4)), interval_s=floats)
mixes = st.builds(model.QueryMix, series=series, duration_s=optional_floats, timeout_s=floats)
plain_queries = st.builds(model.PlainQueries, duration_s=optional_floats, timeout_s=floats)
loads = st.builds(model.Load, data=series, pace=st.just(model.Pace()), timeout_s=floats)
table_loads = st.builds(model.BulkLoad, rows=st.builds(model.Rows, options=mappings), timeout_s=floats)
workloads = st.one_of(
    st.sampled_from([planned.SqlWorkload(), planned.SizeWorkload(), planned.CheckWorkload()]),
    st.builds(planned.ScriptWorkload, drives, row_checks),
    st.builds(planned.TimeSeriesLoadWorkload, loads, st.none() | mixes),
    st.builds(planned.TableLoadWorkload, table_loads, st.none() | plain_queries),
    st.builds(planned.TimeSeriesQueriesWorkload, mixes),
    st.builds(planned.PlainQueriesWorkload, plain_queries),
)
planned_phases = st.builds(
    planned.PlannedPhase,
    workload=workloads,
    variant=mappings,
    setup=st.lists(names, max_size=2).map(tuple),
    checks=st.lists(st.tuples(names, names, names), max_size=2).map(tuple),
    published=st.lists(st.builds(model.Published, value=floats), max_size=2).map(tuple),
    setup_estimate_s=floats,
    skip=st.none() | names,
)
plans = st.builds(
    planned.Plan,
    size=names,
    seed=st.integers(0, 2**63 - 1),
    repeats=st.integers(1, 9),
    scenarios=st.lists(st.builds(planned.PlannedScenario, parameters=mappings), max_size=2).map(tuple),
    targets=st.lists(
        st.builds(planned.PlannedTarget, phases=st.lists(planned_phases, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
)


@given(plans)
def test_a_plan_survives_its_file(plan: planned.Plan) -> None:
    text = plan_to_json(plan)
    assert plan_from_json(text) == plan
    assert plan_to_json(plan_from_json(text)) == text


FORMAT_2 = Path(__file__).parents[1] / "fixtures" / "plan-format-2"
IN_FORMAT_2 = {
    "sql", "script", "timeseries-load", "table-load", "timeseries-queries", "plain-queries", "size", "check",
}  # fmt: skip
"""The workloads that there were."""


def test_a_plan_of_format_2_is_what_is_planned_now() -> None:
    """The fixture is what the same scenario was planned as when a phase had a key for each workload."""
    now = make_plan([load_scenario(FORMAT_2)], [TARGET], "tiny")
    now = dataclasses.replace(
        now, scenarios=tuple(dataclasses.replace(s, folder=Path(FORMAT_2.name)) for s in now.scenarios)
    )
    text = (FORMAT_2 / "plan.json").read_text()
    assert '"bulk"' in text
    assert plan_from_json(text) == now
    kinds = {type(phase.workload).__struct_config__.tag for phase in phases(now)}
    assert kinds == IN_FORMAT_2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{}",
        '{"format": 2}',
        '{"format": 3}',
        '{"format": 1}',
        '{"format": 1, "size": 3}',
        "\ud800",
    ],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError, match=r"not a plan|has format"):
        plan_from_json(text)
