"""The scenarios of imports, storage, grids and large transactions: whole, at their smallest size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.described import undescribed
from support.sandbox import read_json

if TYPE_CHECKING:
    from support.sandbox import Database, Ended, Sandbox

pytestmark = pytest.mark.slow


def variants(ended: Ended, id_: str) -> list[dict[str, Any]]:
    """Give the phases of this id from summary.json, in order."""
    return [phase for phase in ended.summary["phases"] if phase["id"] == id_]


def complete(ended: Ended) -> None:
    assert ended.code == 0, ended.err
    assert {phase["state"] for phase in ended.summary["phases"]} <= {"complete", "skipped"}
    checks = [check for phase in ended.summary["phases"] for check in phase["checks"]]
    assert checks
    assert all(check["passed"] for check in checks)


def test_index_import_times_every_step_of_every_variant(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure("index-import", "--target", database.url)
    complete(ended)
    assert undescribed(ended.folder) == []
    imports = variants(ended, "import")
    assert [phase["variant"]["indexes"] for phase in imports] == ["0", "1", "3", "5"]
    sizes = []
    for phase in imports:
        points = phase["steps"]["points"]
        assert [point["rows_before"] for point in points] == list(range(0, 16000, 1000))
        assert all(point["seconds"] > 0 and point["state"] == "complete" for point in points)
        assert phase["steps"]["knee"] is not None
        sizes.append(points[-1]["index_bytes"])
    assert sizes[0] == 0
    assert sizes == sorted(set(sizes))
    assert [len(phase["steps"]["curves"]) for phase in imports] == [1, 1, 2, 2]
    assert "published, one disk" in ended.report


def test_index_import_makes_the_indexes_that_are_asked_for(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure(
        "index-import", "--target", database.url, "--set", "indexes=a,b:hash;l:brin,(f,l);"
    )  # fmt: skip
    complete(ended)
    paths = ended.folder.glob("targets/*/phases/*-import-*/phase.json")
    texts = [str(read_json(path)["statements"]).lower() for path in sorted(paths)]
    assert ["using hash" in text for text in texts] == [True, False]
    assert ["using brin" in text for text in texts] == [False, True]
    lists = ["a,b:hash", "l:brin,(f,l)"]
    assert [phase["variant"]["indexes"] for phase in variants(ended, "indexes-after")] == lists


def test_index_import_reads_files_that_generate_wrote(sandbox: Sandbox, database: Database) -> None:
    made = sandbox.run(
        "generate", "import", "--rows", 3000, "--step-rows", 1500, "--format", "csv", "--header",
        "--out", sandbox.work / "rows", out="rows",
    )  # fmt: skip
    assert made.code == 0, made.err
    files = sorted(path for path in (sandbox.work / "rows").iterdir())
    assert len(files) == 2
    paths = ",".join(map(str, files))
    ended = sandbox.measure(
        "index-import", "--target", database.url, "--set", f"files={paths}", "--set", "format=csv",
        "--set", "header=true", "--set", "indexes=1", "--set", "step_rows=200", "--set", "batch_rows=200",
    )  # fmt: skip
    complete(ended)
    (phase,) = variants(ended, "import")
    assert sum(point["rows"] for point in phase["steps"]["points"]) == 3000


def test_storage_types_accounts_for_every_table_before_and_after_vacuum(
    sandbox: Sandbox, database: Database
) -> None:
    ended = sandbox.measure("storage-types", "--target", database.url, "--set", "rows=2000")
    complete(ended)
    assert undescribed(ended.folder) == []
    heaviest = {}
    for phase in variants(ended, "types"):
        looks = phase["storage"]["looks"]
        assert looks[0]["when"] == "after the load"
        assert "vacuum" in looks[-1]["when"]
        (table,) = looks[-1]["tables"]
        assert table["rows"] == 2000
        assert table["logical_bytes"] > 0
        kept = table["heap_bytes"] + table["toast_bytes"]
        heaviest[phase["variant"]["table"], phase["variant"]["distribution"]] = kept
    assert heaviest["text", "compressible"] < 0.8 * heaviest["text", "random"]
    assert heaviest["bigint", "compressible"] == pytest.approx(heaviest["bigint", "random"], rel=0.2)
    reasons = [entry["reason"] for entry in ended.summary["skipped"] if "columnar" in entry["phase"]]
    assert len(reasons) == 3
    assert all("form columnar" in reason for reason in reasons)


def test_big_transaction_commits_all_rows_and_notes_its_progress(
    sandbox: Sandbox, database: Database
) -> None:
    ended = sandbox.measure("big-transaction", "--target", database.url)
    complete(ended)
    assert undescribed(ended.folder) == []
    phases = variants(ended, "inserts")
    assert [phase["variant"]["pipeline"] for phase in phases] == [False, True]
    for phase in phases:
        transactions = phase["transactions"]["transactions"]
        assert [(each["state"], each["rows"]) for each in transactions] == [("committed", 500)] * 3
        assert [mark["rows"] for mark in transactions[0]["marks"]][:3] == [0, 100, 200]


def test_count_loop_counts_what_was_loaded(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure("count-loop", "--target", database.url)
    complete(ended)
    for phase in variants(ended, "count"):
        assert phase["drive"]["counts"]["done"] == 10
        assert phase["published"]
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_pgbench_grid_ends_in_a_grid(sandbox: Sandbox, database: Database) -> None:
    ended = sandbox.measure("pgbench-grid", "--target", database.url)
    complete(ended)
    grid = next(grid for grid in ended.summary["grids"] if grid["id"] == "grid")
    assert len(grid["cells"]) == 8
    assert all(cell["tps"]["value"] > 0 for cell in grid["cells"])
    assert {entry["fixed"]["workload"] for entry in ended.summary["scaling"]} == {"tpcb-like", "select-only"}
