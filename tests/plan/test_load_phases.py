"""Phases that load plain rows in bulk: written in a scenario, planned, refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.workloads import table_load

from loadstone.errors import LoadstoneError
from loadstone.model import (
    FEWEST_STEPS,
    BulkLoad,
    LongTransactions,
    PlainTable,
    PrivateServer,
    PublishedCurve,
    Rows,
)
from loadstone.plan.plan import (
    PlanTarget,
    estimated_seconds,
    make_plan,
    plan_from_json,
    plan_to_json,
)
from loadstone.scenario.load import needs_of_bulk, seconds_of_bulk
from loadstone.scenario.private_server import common_private_server
from loadstone.scenario.scenario import load_scenario

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan, PlannedPhase

SCENARIO = """
id = "mine"
title = "Mine"
version = "1"
why = "To see."
parameters.rows = { type = "integer", default = 1000, minimum = 1, help = "Rows" }
parameters.step_rows = { type = "integer", default = 100, minimum = 0, help = "Rows of a step" }
parameters.indexes = { type = "string", default = "0", help = "Indexes" }
parameters.files = { type = "string", default = "", help = "Files" }
parameters.memory = { type = "string", default = "", help = "Memory" }
private_server.settings = { shared_buffers = "16MB", work_mem = "{{ memory }}" }
private_server.small = { memory = "{{ memory or '96 MB' }}", settings = { shared_buffers = "8MB" } }

[[phase]]
id = "import"
kind = "load"
title = "Import, {{ indexes }}"
sweep = { indexes = ["0", "1"] }
step_rows = "{{ step_rows }}"
workers = 3
knee = true
storage = true
settle = true
verify = "count"
after = ["vacuum (analyze) test; analyze", "{{ '' }}"]
curves = [
  { name = "RAID", step_rows = 10, seconds = [61, 79.5], note = "from 2018", when = { indexes = "1" } },
  { name = "SSD", step_rows = 10, seconds = [1] },
]

[phase.data]
set = "{{ '' if files else 'import' }}"
rows = "{{ rows }}"
seed = "{{ '' if files else seed + 4 }}"
files = "{{ files }}"

[phase.table]
name = "test"
indexes = "{{ indexes }}"
partition_column = "l"
"""
ALL = frozenset(
    {"load", "load:files", "load:insert", "load:copy_text", "parallel loads", "indexes", "brin", "hash"}
)


def plan_of(folder: Path, text: str = SCENARIO, size: str = "small", **overrides: str) -> Plan:
    (folder / "scenario.toml").write_text(text)
    target = PlanTarget("pg", "postgres", "postgres://x/y", ALL)
    plan = make_plan([load_scenario(folder)], [target], size, overrides)
    assert plan_from_json(plan_to_json(plan)) == plan
    return plan


def planned(folder: Path, text: str = SCENARIO, **overrides: str) -> list[PlannedPhase]:
    return list(plan_of(folder, text, **overrides).targets[0].phases)


def test_a_bulk_load_is_planned_in_each_variant(tmp_path: Path) -> None:
    first, second = planned(tmp_path)
    assert table_load(first) == BulkLoad(
        rows=Rows("import", 1000, seed=5),
        table=PlainTable("test", "0", partition_column="l"),
        step_rows=100,
        workers=3,
        after=("vacuum (analyze) test", "analyze"),
        storage=True,
        settle=True,
        verify="count",
    )
    assert table_load(second).table.indexes == "1"
    assert (first.headline, first.knee, first.workload.clients) == ("rows_per_s", True, 3)
    assert [curve.name for curve in first.curves] == ["SSD"]
    assert second.curves[0] == PublishedCurve("RAID", 10, (61.0, 79.5), "from 2018")


def test_rows_may_come_from_files(tmp_path: Path) -> None:
    text = SCENARIO.replace('rows = "{{ rows }}"', 'format = "csv"\nheader = true')
    (first, _) = planned(tmp_path, text, files="a.csv, b.csv")
    assert table_load(first).rows == Rows(files=("a.csv", "b.csv"), format="csv", header=True)
    listed = text.replace('files = "{{ files }}"', 'files = ["a,b.csv", "{{ files }}"]')
    (first, _) = planned(tmp_path, listed, files="c")
    assert table_load(first).rows.files == ("a,b.csv", "c")


def test_files_may_have_the_columns_of_a_set(tmp_path: Path) -> None:
    text = SCENARIO.replace('rows = "{{ rows }}"', 'format = "csv"').replace(
        "'' if files else 'import'", "'import'"
    )
    (first, _) = planned(tmp_path, text, files="a.csv")
    assert table_load(first).rows == Rows("import", files=("a.csv",), format="csv")
    seeded = text.replace("'' if files else seed + 4", "seed")
    with pytest.raises(LoadstoneError, match=r"data\.seed: only rows that are made can have this key"):
        planned(tmp_path, seeded, files="a.csv")


def test_a_list_of_indexes_that_holds_commas_is_one_variant(tmp_path: Path) -> None:
    phases = planned(tmp_path, indexes="a, b:brin; (f,l) ,l:hash")
    assert [table_load(phase).table.indexes for phase in phases] == [
        "a, b:brin",
        "(f,l) ,l:hash",
    ]
    (one,) = planned(tmp_path, indexes="a,b;")
    assert one.variant == {"indexes": "a,b"}
    assert len(planned(tmp_path, indexes="1,3,5")) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('name = "test"', ""), "phase[0].table.name: this key is missing"),
        (('name = "test"', 'name = "test"\nindex = "1"'), "Did you mean 'indexes'"),
        (('set = "{{', 'sett = "{{'), "phase[0].data.sett: there is no such key"),
        (("set = \"{{ '' if files else", "set = \"{{ '' if rows else"), "or { files = … }"),
        (("seed = \"{{ '' if files else seed + 4 }}\"", "header = true"), "only files can have this key"),
        (("workers = 3", 'pace = "fixed"\nrate_per_s = 3'), "only a load of a time series (data.use_case)"),
        (("workers = 3", "hash_workers = true"), "phase[0].hash_workers"),
        (("workers = 3", "clients = 3"), 'Remove it, or set kind = "script"'),
        (('"{{ step_rows }}"', "0"), "phase[0].step_rows: a knee is searched for in steps"),
        (("default = 100,", "default = 500,"), f"are 2 steps; a knee needs {FEWEST_STEPS}"),
        (("default = 100,", "default = 500,"), f"Load {FEWEST_STEPS * 500:,} rows or more, or use steps of"),
        (('rows = "{{ rows }}"', ""), "number of rows"),
        (('partition_column = "l"', "partition_rows = 5"), "phase[0].table.partition_column"),
        (("workers = 3", 'transactions = { rows = 5 }\nmethod = "copy_text"'), "single-row INSERTs"),
        (('when = { indexes = "1" }', "when = { index = 1 }"), "phase[0].curves[0].when.index"),
        (("[61, 79.5]", "[61, 0]"), "phase[0].curves[0].seconds[1]"),
        (("{{ memory or '96 MB' }}", "{{ memry }}"), "private_server.small.memory: there is no parameter"),
        (("{{ memory or '96 MB' }}", "96"), "private_server.memory: '96' is not an amount of memory"),
        (("private_server.small = ", "private_server.smal = "), "Did you mean 'small'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    assert change[0] in SCENARIO
    with pytest.raises(LoadstoneError) as caught:
        planned(tmp_path, SCENARIO.replace(*change))
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_keys_of_a_bulk_load_are_refused_for_a_time_series(tmp_path: Path) -> None:
    head, _, _ = SCENARIO.partition("[phase.data]")
    data = 'data = { use_case = "iot", start = "2016-01-01T00:00:00Z", span_s = 60 }\n'
    with pytest.raises(LoadstoneError) as caught:
        planned(tmp_path, head + data)
    for key in ("knee", "curves", "step_rows", "after", "storage", "verify"):
        assert f"phase[0].{key}: only a load of plain rows (data.set or data.files)" in caught.value.message


def test_files_are_sent_in_their_own_format(tmp_path: Path) -> None:
    text = SCENARIO.replace("workers = 3", 'method = "copy_binary"').replace('rows = "{{ rows }}"', "")
    with pytest.raises(LoadstoneError, match=r"phase\[0\].method: files are sent in their own format"):
        planned(tmp_path, text, files="a.txt")


@pytest.mark.parametrize(
    ("bulk", "needed"),
    [
        (BulkLoad(Rows("import", 9), PlainTable("t")), ["load"]),
        (BulkLoad(Rows(files=("a",)), PlainTable("t"), method="copy_text"), ["load:files", "load:copy_text"]),
        (BulkLoad(Rows("import", 9), PlainTable("t"), transactions=LongTransactions(5)), ["load:insert"]),
        (
            BulkLoad(
                Rows("import", 9),
                PlainTable("t", "a:BRIN, (b,c), d : gin(x_ops)", form="columnar", compression="lz4"),
            ),
            ["load", "form:columnar", "compression:lz4", "indexes", "brin", "gin"],
        ),
        (
            BulkLoad(Rows("import", 9), PlainTable("t", primary_key="a"), workers=2),
            ["load", "parallel loads", "primary keys"],
        ),
        (
            BulkLoad(Rows("import", 9), PlainTable("t", partition_rows=3, index_tablespace="fast")),
            ["load", "partitioning", "tablespace"],
        ),
    ],
)
def test_what_a_target_must_offer(bulk: BulkLoad, needed: list[str]) -> None:
    assert list(needs_of_bulk(bulk)) == needed


def test_a_target_that_lacks_an_index_method_skips_the_variant_in_words(tmp_path: Path) -> None:
    first, second = planned(tmp_path, indexes="a:gist,b:brin")
    assert first.skip == "postgres does not support gist on this server"
    assert second.skip is None


def test_the_time_that_a_bulk_load_takes_is_estimated(tmp_path: Path) -> None:
    rows = Rows("import", 200_000)
    assert seconds_of_bulk(BulkLoad(rows, PlainTable("t"))) == 1.0
    assert seconds_of_bulk(BulkLoad(rows, PlainTable("t", "3"))) == 4.0
    assert seconds_of_bulk(BulkLoad(rows, PlainTable("t", "a, (b,c), d:gin(x)"))) == 4.0
    assert seconds_of_bulk(BulkLoad(rows, PlainTable("t"), transactions=LongTransactions(5))) == 10.0
    plan = plan_of(tmp_path, rows="200000", step_rows="1000")
    assert estimated_seconds(plan) == 3.0


def test_wishes_for_a_private_server_go_by_size(tmp_path: Path) -> None:
    small = plan_of(tmp_path).scenarios[0].private_server
    assert small == PrivateServer(96 << 20, {"shared_buffers": "8MB"})
    full = plan_of(tmp_path, size="full", memory="4MB").scenarios[0].private_server
    assert full == PrivateServer(None, {"shared_buffers": "16MB", "work_mem": "4MB"})


def test_scenarios_of_one_run_must_wish_for_the_same_server() -> None:
    alike = PrivateServer(5)
    assert common_private_server({"a": alike, "b": PrivateServer(5)}) == alike
    with pytest.raises(LoadstoneError, match="the scenarios a and b need different private servers"):
        common_private_server({"a": alike, "b": PrivateServer()})


@given(rows=st.integers(1, 10**9), step_rows=st.integers(1, 10**9))
def test_a_knee_is_refused_exactly_when_the_steps_are_too_few(
    rows: int, step_rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("knee")
    steps = -(-rows // step_rows)
    if steps >= FEWEST_STEPS:
        assert planned(folder, rows=str(rows), step_rows=str(step_rows))[0].knee
    else:
        with pytest.raises(LoadstoneError, match=f"are {steps} steps"):
            planned(folder, rows=str(rows), step_rows=str(step_rows))
