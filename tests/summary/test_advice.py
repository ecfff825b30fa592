"""Advice from loads in steps: a size that people choose, DDL that runs, and a second run that follows it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from support.summaries import part, plain, summarise
from support.table_load_folders import index_import

from loadstone import _core, advice
from loadstone.cli.group import loadstone
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.results.documents.drive import PlainTable
from loadstone.results.documents.run import PlannedLoad
from loadstone.results.documents.summary import StepsFigures
from loadstone.results.folder import RunFolder
from loadstone.run import Outcome, Request
from loadstone.scenario.scenario import load_scenario
from loadstone.summary.advice import Loaded, advise, judge_flat, round_below
from loadstone.summary.steps import knee_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import psycopg
    from support.sandbox import Database

    from loadstone.run import Listener

STEP_ROWS = 100_000
STEPS = 40
DATA = {"kind": "rows", "set": "import", "seed": 1, "first": 0, "rows": STEPS * STEP_ROWS, "options": {}}
SCENARIO = """
id = "mine"
title = "Mine"
version = "1"
why = "To see."
parameters.partition_rows = { type = "integer", default = 0, minimum = 0, help = "Rows of a partition" }

[[phase]]
id = "import"
kind = "load"
title = "Import"
data = { set = "import", rows = 1000 }
table = { name = "test", partition_column = "l", partition_rows = "{{ partition_rows }}" }
step_rows = 100
knee = true
"""


def import_table() -> dict[str, Any]:
    tables = json.loads(_core.DataStream(json.dumps(DATA)).dataset())["tables"]
    table: dict[str, Any] = tables[0]
    return table


def steps(slower: Sequence[float], *, scatter: float = 0.03) -> dict[str, Any]:
    """Steps of 2 s and what each takes longer, with a little noise."""
    noise = np.exp(np.random.default_rng(4).normal(0, scatter, len(slower)))
    points = [
        {
            "step": at,
            "rows_before": at * STEP_ROWS,
            "rows": STEP_ROWS,
            "seconds": 2 * times * float(off),
            "state": "complete",
        }
        for at, (times, off) in enumerate(zip(slower, noise, strict=True))
    ]
    found = part(StepsFigures, {"step_rows": STEP_ROWS, "points": points})
    knee = knee_of(found.points, STEP_ROWS)
    whole: dict[str, Any] = plain(structs.replace(found, knee=knee))
    return whole


def knee_at(step: int) -> dict[str, Any]:
    return steps([1 if at < step else 1.15 ** (at - step) for at in range(STEPS)])


def loaded(indexes: str = "3", **table: Any) -> Loaded:
    options = {"name": "test", "indexes": indexes, **table}
    bulk = {"rows": {"set": "import", "rows": STEPS * STEP_ROWS, "first": 0}, "table": options}
    return Loaded("postgres", "18.6", part(PlannedLoad, bulk), part(PlainTable, dict(import_table())))


def advised(found: dict[str, Any], known: Loaded) -> dict[str, Any]:
    advice = advise(part(StepsFigures, found), known)
    assert advice is not None
    words: dict[str, Any] = plain(advice)
    return words


@pytest.mark.parametrize(
    ("rows", "size"),
    [
        (0.5, None),
        (1, 1),
        (1.9, 1),
        (2, 2),
        (4_999, 2_000),
        (5_000, 5_000),
        (63.8e6, 50_000_000),
        (2e7, 20_000_000),
    ],
)
def test_sizes_are_those_that_a_person_would_choose(rows: float, size: int | None) -> None:
    assert round_below(rows) == size


@given(st.floats(1, 1e15))
def test_a_size_lies_below_and_not_far_below(rows: float) -> None:
    size = round_below(rows)
    assert size is not None
    assert rows / 2.5 <= size <= rows


def test_a_partition_stays_below_the_low_end_and_its_rate_is_that_before_the_knee() -> None:
    found = knee_at(22)
    advice = advised(found, loaded())
    assert found["knee"]["found"]
    assert 0.4 * found["knee"]["low"] <= advice["partition_rows"] <= found["knee"]["low"]
    rate = advice["rows_per_s"]
    assert rate["low"] < rate["value"] < rate["high"]
    assert rate["value"] == pytest.approx(STEP_ROWS / 2, rel=0.03)
    assert (advice["column"], advice["by"]) == ("l", "time")
    words = " ".join(advice["sentences"])
    for words_of_it in ("starts to slow down at", "95 % interval", "rows per second", "in the order of 'l'"):
        assert words_of_it in words


def test_the_ddl_runs_on_a_server_and_routes_rows_to_their_partitions(database: Database) -> None:
    advice = advised(knee_at(12), loaded("a, b, (f,l), l:brin"))
    table = import_table()
    step = table["sequence_step"] * advice["partition_rows"]
    with database.connect() as connection:
        for statement in advice["ddl"].split(";\n"):
            connection.execute(statement.rstrip(";").encode())
        assert ask(connection, "select count(*) from pg_inherits where inhparent = 'test'::regclass") == str(
            advice["partitions"] + 2
        ), "and one before and one after"
        assert ask(connection, "select count(*) from pg_indexes where tablename = 'test_p0000'") == "4"
        for partition in (0, 1):
            at = table["sequence_first"] + step * partition + 1_000_000
            insert = f"insert into test (l) values (timestamp '1970-01-01' + {at} * interval '1 microsecond')"
            assert ask(connection, f"{insert} returning tableoid::regclass::text") == f"test_p{partition:04}"


def ask(connection: psycopg.Connection, sql: str) -> str:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return str(row[0])


def test_without_a_knee_no_partition_is_advised_and_what_was_not_measured_is_said() -> None:
    advice = advised(steps([1.0] * STEPS), loaded("0"))
    assert advice["partition_rows"] is None
    assert advice["ddl"] == ""
    words = " ".join(advice["sentences"])
    assert "Import needs no partitions up to 3.9 M rows" in words
    assert "not measured" in words
    assert advice["rows_per_s"]["low"] < advice["rows_per_s"]["high"]


def test_steady_growth_gets_the_size_that_is_read_off_the_steps() -> None:
    found = steps([1.05**at for at in range(STEPS)])
    assert found["knee"]["outcome"] == "steady"
    advice = advised(found, loaded())
    assert advice["partition_rows"] in (200_000, 500_000)
    assert "No size stays flat" in " ".join(advice["sentences"])


def test_a_knee_of_limited_memory_says_so() -> None:
    found = knee_at(22) | {"memory_limit_bytes": 96 * 2**20}
    assert "limited to 96 MiB" in " ".join(advised(found, loaded())["sentences"])


def test_what_stands_against_ddl_is_said() -> None:
    for known, said in (
        (replace(loaded(), table=None), "there is no DDL"),
        (
            replace(loaded(), table=part(PlainTable, {**import_table(), "sequence": None})),
            "No column is known to grow",
        ),
        (loaded(primary_key="a"), "There is no DDL: the primary key"),
    ):
        advice = advised(knee_at(22), known)
        assert advice["ddl"] == ""
        assert advice["partition_rows"]
        assert said in " ".join(advice["sentences"])


def test_where_steps_scatter_nothing_is_advised() -> None:
    scattered = [0.53, 1.1, 0.71, 0.92, 1.29, 1.63, 1.96, 1.6, 1.54, 1.17, 0.97, 0.75, 1.07, 1.12, 1.08, 1.15]
    found = steps([*scattered, 1.17, 1.21, 1.23, 1.22, 2.35, 2.74, 2.32, 2.78], scatter=0)
    assert found["knee"]["outcome"] == "unclear"
    advice = advised(found, loaded())
    assert advice["partition_rows"] is None
    assert "No advice" in " ".join(advice["sentences"])
    assert judge_flat(part(StepsFigures, found))[0] is not True


def test_a_load_into_partitions_is_judged_and_gets_no_other_advice() -> None:
    advice = advised(steps([1.0] * STEPS), loaded(partition_column="l", partition_rows=500_000))
    assert advice["partition_rows"] is None
    assert advice["sentences"][0].startswith("It stays flat: no knee")


def test_flat_and_not_flat_are_told_with_figures() -> None:
    flat, words = judge_flat(part(StepsFigures, steps([1.0] * STEPS)))
    assert flat is True
    assert "last third of 40 steps takes" in words
    assert "95 % interval" in words
    flat, words = judge_flat(part(StepsFigures, knee_at(20)))
    assert flat is False
    assert "starts to slow down" in words
    flat, words = judge_flat(part(StepsFigures, steps([1.0, 1.0, 4.0, 4.0, 1.0, 1.0, 4.0, 4.0] * 2)))
    assert flat is None
    assert "scatter too much" in words
    flat, words = judge_flat(part(StepsFigures, steps([1.0] * 5)))
    assert flat is None
    assert "5 steps are too few" in words


def call(*arguments: object) -> Result:
    return CliRunner().invoke(loadstone, [str(argument) for argument in arguments])


def test_the_command_prints_sql_with_its_reasons_as_comments(tmp_path: Path) -> None:
    folder = index_import(tmp_path / "run")
    shown = call("advise", folder)
    assert shown.exit_code == 0, shown.output
    lines = [line for line in shown.stdout.splitlines() if line]
    assert all(line.startswith("--") or line.endswith(";") for line in lines)
    assert shown.stdout.count("partition by range") == 3, "all but the one without an index"
    one = call("advise", folder, "--variant", "indexes=3").stdout
    assert one.count("partition by range") == 1
    assert one in shown.stdout
    wrong = call("advise", folder, "--variant", "indexes=9")
    assert wrong.exit_code == ExitCode.BAD_INPUT
    assert "indexes=0 on pg18; indexes=1" in wrong.stderr


class Quiet:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def said(self, message: str) -> None:
        self.words.append(message)

    def planned(self, plan: object) -> None: ...
    def began(self, target: str, phase: object) -> None: ...
    def progressed(self, target: str, phase: object, progress: object) -> None: ...
    def ended(self, target: str, document: object) -> None: ...


def request(tmp_path: Path, **more: Any) -> Request:
    home = tmp_path / "mine"
    home.mkdir(exist_ok=True)
    (home / "scenario.toml").write_text(SCENARIO)
    return Request(scenarios=[load_scenario(home)], targets=["pg"], **more)


def test_verifying_runs_the_same_with_the_least_advised_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = index_import(tmp_path / "run")
    asked: list[Request] = []

    def execute(again: Request, _: Listener) -> Outcome:
        asked.append(again)
        assert again.out is not None
        return Outcome(RunFolder.open(index_import(again.out, flat=True)), ExitCode.OK, None, ["bye"])

    monkeypatch.setattr(advice, "execute", execute)
    listener = Quiet()
    first = Outcome(RunFolder.open(folder), ExitCode.OK, None, ["hello"])
    both = advice.verify(request(tmp_path, overrides={"x": "1"}), first, listener)
    (again,) = asked
    least = min(p["steps"]["advice"]["partition_rows"] or 10**9 for p in summarise(folder)["phases"])
    assert again.overrides == {"x": "1", "partition_rows": str(least)}
    assert again.out == folder / "verify"
    assert (both.folder.path, both.exit_code, both.farewells) == (folder, ExitCode.OK, ["hello", "bye"])
    assert "into partitions of 500,000 rows" in listener.words[-1]
    verification = summarise(folder)["verification"]
    assert [phase["flat"] for phase in verification["phases"]] == [True] * 4
    advice.verify(request(tmp_path), first, listener)
    assert len(asked) == 1, "what has been verified is not verified again"


def test_a_second_run_that_cannot_begin_leaves_the_first_one_s_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = index_import(tmp_path / "run")

    def execute(_: Request, __: Listener) -> Outcome:
        raise LoadstoneError("there is no room", "Make some.")

    monkeypatch.setattr(advice, "execute", execute)
    first = Outcome(RunFolder.open(folder), ExitCode.OK)
    both = advice.verify(request(tmp_path), first, Quiet())
    assert (both.folder.path, both.exit_code) == (folder, ExitCode.BAD_INPUT)
    assert both.trouble is not None
    assert both.trouble.message == "there is no room"


def test_nothing_is_verified_where_nothing_is_advised_or_the_run_failed(tmp_path: Path) -> None:
    listener = Quiet()
    flat = Outcome(RunFolder.open(index_import(tmp_path / "flat", flat=True)), ExitCode.OK)
    assert advice.verify(request(tmp_path), flat, listener) is flat
    assert "nothing to verify" in listener.words[-1]
    failed = replace(flat, exit_code=ExitCode.FAILED)
    assert advice.verify(request(tmp_path), failed, listener) is failed
    assert "not verified" in listener.words[-1]


def test_verifying_is_refused_before_the_run_where_it_cannot_be(tmp_path: Path) -> None:
    shown = call("run", "iot-feed", "--verify", "--out", tmp_path / "out")
    assert shown.exit_code == ExitCode.BAD_INPUT
    assert "parameter 'partition_rows'" in shown.stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(LoadstoneError, match="sets 'partition_rows'"):
        advice.refuse_unverifiable(request(tmp_path, overrides={"partition_rows": "5"}))
    advice.refuse_unverifiable(request(tmp_path))
