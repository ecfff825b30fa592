"""Run folders opened by programs: tables, exports, and the documented examples."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from pyarrow import csv, parquet
from support.run_folders import Phase, Run, Target, build, kill, write

import loadstone
from loadstone.cli.export import TABLES as OFFERED
from loadstone.cli.group import loadstone as command
from loadstone.errors import LoadstoneError
from loadstone.summary.document import summarise
from loadstone.tables.results import TABLES

FIXTURE = Path(__file__).parents[1] / "fixtures" / "run-0.1.0"
PAGE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.fixture
def run(tmp_path: Path) -> loadstone.RunResults:
    """A run of two phases on two targets."""
    phases = (Phase(id="insert", seconds=6, warmup=2), Phase(id="select", seconds=6, warmup=2, tps=900.0))
    targets = (Target(), Target(id="pg17", label="PostgreSQL 17.11 (embedded)", speed=0.5))
    return loadstone.open_run(build(tmp_path / "run", Run(phases=phases, targets=targets)))


def export(*arguments: object) -> Result:
    return CliRunner().invoke(command, ["export", *map(str, arguments)])


def test_phases_say_what_the_summary_says(run: loadstone.RunResults) -> None:
    rows = run.phases.to_pylist()
    assert [(row["target"], row["id"]) for row in rows] == [
        ("pg18", "insert"), ("pg18", "select"), ("pg17", "insert"), ("pg17", "select"),
    ]  # fmt: skip
    for row, phase in zip(rows, summarise(run.folder).phases, strict=True):
        assert phase.drive is not None
        assert row["rate"] == pytest.approx(phase.drive.tps.value)
        assert row["done"] == phase.drive.counts.done
        p99 = next(p.value_ns for p in phase.drive.response.percentiles if p.percentile == 99)
        assert row["response_p99_ns"] == p99


def test_seconds_and_histograms_add_up_to_the_counts(run: loadstone.RunResults) -> None:
    for row in run.phases.to_pylist():
        same = [
            r for r in run.intervals.to_pylist() if (r["target"], r["phase"]) == (row["target"], row["phase"])
        ]
        assert sum(r["done"] for r in same if not r["warmup"]) == row["done"]
        assert sum(r["warmup"] for r in same) == 2
        assert same[0]["start_s"] >= row["start_s"]
        buckets = [
            r
            for r in run.latencies.to_pylist()
            if (r["target"], r["phase"], r["tag"]) == (row["target"], row["phase"], "response")
        ]
        assert sum(r["count"] for r in buckets) == row["done"]
        assert all(r["floor_ns"] <= r["top_ns"] for r in buckets)
        cumulated = np.cumsum([r["count"] for r in buckets])
        median = buckets[int(np.searchsorted(cumulated, cumulated[-1] / 2))]
        assert median["top_ns"] == row["response_p50_ns"]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_of_every_kind_of_phase_has_the_same_columns(
    name: str, run: loadstone.RunResults
) -> None:
    old = loadstone.open_run(FIXTURE).table(name)
    assert old.schema == run.table(name).schema
    assert old.num_rows > 0
    whole = BytesIO()
    parquet.write_table(old, whole)
    assert parquet.read_table(whole).equals(old)


def test_queries_one_by_one_and_beside_a_load() -> None:
    old = loadstone.open_run(FIXTURE)
    assert {row["query"] for row in old.queries.to_pylist()} >= {"Count"}
    assert any(str(phase).endswith("/queries") for phase in old.intervals["phase"].to_pylist())


def test_a_killed_run_is_read_and_left_alone(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(id="insert", seconds=8),)))
    kill(folder, "001-insert", 4)
    before = sorted(path.name for path in folder.rglob("*"))
    run = loadstone.open_run(folder)
    assert run.summary.run.state == "killed"
    assert run.phases["state"].to_pylist() == ["running"]
    assert run.intervals.num_rows == 4
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_what_is_no_run_is_refused(tmp_path: Path, run: loadstone.RunResults) -> None:
    with pytest.raises(LoadstoneError):
        loadstone.open_run(tmp_path)
    with pytest.raises(KeyError):
        run.table("phase")
    with pytest.raises(AttributeError, match="open_runs"):
        loadstone.open_runs  # noqa: B018 - it must not be there


def test_the_command_offers_every_table() -> None:
    assert OFFERED == TABLES


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_hold_the_tables(form: str, run: loadstone.RunResults, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    result = export(run.folder, "--format", form, "--out", out)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == sorted(f"{name}.{form}" for name in TABLES)
    for name in TABLES:
        path, table = out / f"{name}.{form}", run.table(name)
        if form == "parquet":
            assert parquet.read_table(path).equals(table)
        elif table.num_rows:
            options = csv.ConvertOptions(column_types=table.schema, strings_can_be_null=True)
            read: pa.Table = csv.read_csv(path, convert_options=options)
            assert read.num_rows == table.num_rows
            assert read["target"].equals(table["target"])


def test_one_table_goes_to_standard_output(run: loadstone.RunResults) -> None:
    result = export(run.folder, "--format", "csv", "--table", "phases")
    assert result.exit_code == 0
    assert csv.read_csv(BytesIO(result.stdout_bytes)).num_rows == 4


def test_wrong_options(run: loadstone.RunResults, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for arguments in (
        ("--format", "parquet", "--table", "phases"),
        ("--format", "csv"),
        ("--format", "csv", "--out", tmp_path / "file"),
        ("--format", "openmetrics", "--table", "phases"),
    ):
        result = export(run.folder, *arguments)
        assert result.exit_code == 1
        assert "Traceback" not in result.output
    assert (tmp_path / "file").read_text() == "mine"
    assert export(tmp_path / "nothing", "--format", "csv", "--out", tmp_path / "out").exit_code == 1
    assert not (tmp_path / "out").exists()


def samples_of(folder: Path) -> dict[str, list[Any]]:
    result = export(folder, "--format", "openmetrics")
    assert result.exit_code == 0, result.output
    found: dict[str, list[Any]] = {}
    for family in text_string_to_metric_families(result.stdout):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def test_openmetrics_is_what_its_own_parser_reads(run: loadstone.RunResults) -> None:
    samples = samples_of(run.folder)
    rates = [s for s in samples["loadstone_phase_rate"] if s.labels["bound"] == "value"]
    assert [s.value for s in rates] == pytest.approx(run.phases["rate"].to_pylist())
    done = [s for s in samples["loadstone_phase_transactions_total"] if s.labels["outcome"] == "done"]
    assert [s.value for s in done] == run.phases["done"].to_pylist()
    p99 = [
        s.value * 1e9 for s in samples["loadstone_phase_response_seconds"] if s.labels["quantile"] == "0.99"
    ]
    assert p99 == pytest.approx(run.phases["response_p99_ns"].to_pylist())
    queries = samples_of(FIXTURE)["loadstone_query_seconds"]
    assert {s.labels["query"] for s in queries} >= {"Count"}


def test_openmetrics_takes_any_text_of_a_label(tmp_path: Path) -> None:
    title = {"key": 'a "quoted" \\ value\nof two lines'}
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=4),)))
    path = next(folder.rglob("phase.json"))
    write(path, json.loads(path.read_text()) | {"variant": title})
    sample = samples_of(folder)["loadstone_phase_rate"][0]
    assert json.loads(sample.labels["variant"]) == title
