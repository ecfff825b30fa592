"""What report, summary and terminal say of loads in steps, storage, grids and long transactions."""

from __future__ import annotations

import json
import re
import shutil
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.report_pages import HOSTILE, Page, without_scripts
from support.run_folders import Target
from support.summaries import headline_json, part, plain, render, summarise, summary_table, typed
from support.table_load_folders import (
    MEBI,
    STEP_ROWS,
    STEPS,
    TYPES,
    big_transaction,
    grid,
    index_import,
    storage_types,
)

from loadstone.report import storage, write_report
from loadstone.report.charts.machine import resources
from loadstone.report.chunks import chunks
from loadstone.report.grid import blocks
from loadstone.results.documents import Phase, Progress
from loadstone.summary.storage import KINDS, summarise_storage
from loadstone.summary.transactions import summarise_transactions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

TWO = (Target(), Target(id="pg14", label="PostgreSQL 14.20 (embedded)", speed=0.8))
LIMIT = 96 * MEBI


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("import") / "run"
    return index_import(folder, failed=True, limit=LIMIT, verified=True)


@pytest.fixture(scope="module")
def summary(imported: Path) -> dict[str, Any]:
    return summarise(imported)


@pytest.fixture(scope="module")
def page(summary: dict[str, Any]) -> Page:
    return Page(render(summary))


def words(page: Page) -> str:
    return " ".join("".join(page.text).split())


def printed(summary: dict[str, Any]) -> str:
    screen = StringIO()
    Console(width=160, file=screen).print(summary_table(summary))
    return screen.getvalue()


def phase(summary: dict[str, Any], **variant: object) -> dict[str, Any]:
    return next(p for p in summary["phases"] if p["variant"].items() >= variant.items())


def kinds(summary: dict[str, Any]) -> set[str]:
    return {warning["kind"] for warning in summary["warnings"]}


def text_variant() -> dict[str, str]:
    return {"table": "text", "distribution": "random"}


def change(path: Path, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    lines = [json.dumps(edit(json.loads(line))) for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "make", [index_import, storage_types, big_transaction, grid], ids=lambda make: make.__name__
)
def test_a_page_of_each_kind_is_well_formed_and_named(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    html = write_report(make(tmp_path / "run")).read_text(encoding="utf-8")
    found = Page(html)
    assert found.faults == []
    assert found.open == []
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for figure in re.findall(r"<figure.*?</figure>", html, re.DOTALL):
        label = re.search(r'role="img" aria-label="([^"]+)"', figure)
        assert label
        assert len(label[1]) > 30
        assert "<tbody>" in figure
        assert "nan" not in figure
    for table in re.findall(r"<table.*?</table>", without_scripts(html), re.DOTALL):
        assert "<caption" in table
        assert all("scope=" in header for header in re.findall(r"<th[^e].*?>", table))


def test_the_knee_stands_with_its_interval_in_page_terminal_and_json(
    summary: dict[str, Any], page: Page
) -> None:
    knee = phase(summary, indexes="3")["steps"]["knee"]
    assert knee["low"] <= 22 * STEP_ROWS <= knee["high"], "the knee that the folder was made with"
    assert knee["sentence"] in words(page)
    assert "Step 36" not in words(page)
    assert "the server's disk is full: the step needed about 96 MiB" in words(page)
    screen = printed(summary)
    assert "none up to 3.9 M" in screen
    assert "Keep each partition at" in screen
    result = next(r for r in headline_json(summary)["steps"] if r["variant"] == {"indexes": "3"})
    assert result["knee"]["rows"] == knee["rows"]
    assert result["figures"]["slowdown"] > 3


def test_a_knee_under_limited_memory_says_so_beside_it(summary: dict[str, Any], page: Page) -> None:
    assert "MemoryLimited" in kinds(summary)
    assert "to 96.0 MiB: with another limit, import slows down at another number of rows" in words(page)
    assert "to 96.0 MiB" in printed(summary)
    assert "Memory of the server's control group" in words(page)


def test_the_advice_can_be_copied_and_stands_beside_its_verification(
    summary: dict[str, Any], page: Page
) -> None:
    ddl = phase(summary, indexes="3")["steps"]["advice"]["ddl"]
    assert "PARTITION BY RANGE" in ddl.upper()
    assert ddl.splitlines()[0] in "".join(page.text)
    assert "Verified with the partitioned table" in words(page)
    found = {p["variant"]["indexes"]: p["flat"] for p in summary["verification"]["phases"]}
    assert found == {"0": True, "1": True, "3": True, "5": True}
    assert "It stays flat" in words(page)
    assert "in partitions: It stays flat" in printed(summary)


def test_published_curves_are_made_comparable_and_that_is_said(page: Page) -> None:
    text = words(page)
    assert "indexes = 3, published: one disk" in text
    assert "another machine (8 x 2 TB SATA), with steps of 10 M rows" in text
    assert "divided by the median time per row of its own first 3 steps" in text


def test_without_published_curves_there_is_no_comparison(tmp_path: Path) -> None:
    folder = index_import(tmp_path / "run", flat=True)
    for path in folder.glob("targets/*/phases/*/phase.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"curves": [], "knee": False}))
    text = words(Page(write_report(folder).read_text(encoding="utf-8")))
    assert "compared with the published curves" not in text
    assert "The cost per row" in text
    assert "The knee, and the cost per row" not in text


def test_the_rate_of_a_load_in_steps_is_that_of_its_steps(summary: dict[str, Any]) -> None:
    for found in summary["phases"]:
        points = [p for p in found["steps"]["points"] if p["state"] == "complete"]
        rate = sum(p["rows"] for p in points) / sum(p["seconds"] for p in points)
        assert found["drive"]["rows_per_s"]["value"] == pytest.approx(rate)
    flat, slowing = (phase(summary, indexes=count)["drive"]["rows_per_s"] for count in ("0", "5"))
    assert flat["low"] < flat["value"] < flat["high"]
    assert slowing["low"] is None, "an interval around a rate that falls all the time says nothing"


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (lambda line: {**line, "seconds": line["seconds"] / 10}, "ShortSteps"),
        (lambda line: {**line, "client_cpu_s": line["server_cpu_s"] * 2}, "ClientUsedMore"),
        (lambda line: line, "CheckpointsInSteps"),
    ],
)
def test_steps_that_say_less_than_they_seem_to_are_warned_of(
    tmp_path: Path, imported: Path, edit: Callable[[dict[str, Any]], dict[str, Any]], kind: str
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(imported, folder, ignore=shutil.ignore_patterns("verify"))
    (steps,) = folder.glob("targets/*/phases/*indexes-1/steps.jsonl")
    change(steps, edit)
    found = summarise(folder)
    where = {w["phase"] for w in found["warnings"] if w["kind"] == kind}
    assert steps.parent.name in where


def test_steps_in_order_are_not_warned_of(tmp_path: Path, imported: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(imported, folder, ignore=shutil.ignore_patterns("verify"))
    (steps,) = folder.glob("targets/*/phases/*indexes-1/steps.jsonl")
    change(
        steps,
        lambda line: {
            **line,
            "seconds": 2.0,
            "counters": {**line["counters"], "checkpoints_requested": 0},
        },
    )
    about = {w["kind"] for w in summarise(folder)["warnings"] if w["phase"] == steps.parent.name}
    assert not about & {"ShortSteps", "ClientUsedMore", "CheckpointsInSteps", "RowsWereTheLimit"}


def test_a_load_that_waited_for_rows_was_limited_by_them(tmp_path: Path) -> None:
    folder = big_transaction(tmp_path / "run")
    for path in folder.glob("targets/*/phases/*/drive.json"):
        drive = json.loads(path.read_text())
        drive["load"]["source"]["wait_ns"] = (drive["end_ns"] - drive["measure_ns"]) * 8 // 10
        path.write_text(json.dumps(drive))
    found = summarise(folder)
    assert "RowsWereTheLimit" in kinds(found)
    (entry,) = [entry for entry in found["verdict"] if "client" in entry["question"]]
    assert entry["answer"] == "Perhaps"


def test_results_on_the_disk_of_the_data_are_said(tmp_path: Path) -> None:
    folder = storage_types(tmp_path / "run")
    environment = json.loads((folder / "environment.json").read_text())
    assert "SharedDisk" not in kinds(summarise(folder))
    places = {"results": {"disk": "sda"}, "data of pg18": {"disk": "sda"}}
    (folder / "environment.json").write_text(json.dumps(environment | {"storage": places}))
    assert "SharedDisk" in kinds(summarise(folder))


def test_a_resumed_step_is_left_out_and_said(tmp_path: Path, imported: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(imported, folder, ignore=shutil.ignore_patterns("verify"))
    (steps,) = folder.glob("targets/*/phases/*indexes-0/steps.jsonl")
    change(steps, lambda line: {**line, "state": "resumed" if line["step"] == 7 else line["state"]})
    text = words(Page(write_report(folder).read_text(encoding="utf-8")))
    assert "indexes = 0: step 7 was interrupted and resumed later" in text


def test_hostile_words_in_steps_and_storage_stay_words(tmp_path: Path) -> None:
    folder = index_import(tmp_path / "run", failed=True)
    for path in folder.glob("targets/*/phases/*/steps.jsonl"):
        change(path, lambda line: {**line, "reason": HOSTILE if line["state"] == "failed" else None})
    for path in folder.glob("targets/*/phases/*/phase.json"):
        curves = [{"name": HOSTILE, "step_rows": 10, "seconds": [1.0] * 9, "note": HOSTILE}]
        table = {"name": HOSTILE, "rows": 1, "logical_bytes": 9, "heap_bytes": 8192}
        look = {"when": HOSTILE, "tables": [table]}
        storage = {"looks": [look], "written": {"of": HOSTILE}, "notes": [HOSTILE]}
        path.write_text(json.dumps(json.loads(path.read_text()) | {"curves": curves, "storage": storage}))
    html = write_report(folder).read_text(encoding="utf-8")
    found = Page(html)
    assert found.faults == []
    assert not found.all("img")
    assert "alert(1)</script>" not in html


def test_same_folder_same_bytes_with_steps_and_verification(imported: Path, summary: dict[str, Any]) -> None:
    assert json.dumps(summarise(imported)) == json.dumps(summary)
    assert render(summary) == render(summary)


def test_bytes_of_a_table_are_shown_by_kind_and_over_the_logical_ones(tmp_path: Path) -> None:
    found = summarise(storage_types(tmp_path / "run"))
    text = phase(found, table="text", distribution="random")["storage"]
    assert [look["when"] for look in text["looks"]] == ["after the load", "after vacuum table_text"]
    (table,) = text["looks"][-1]["tables"]
    assert sum(table["kinds"].values()) == table["total_bytes"]
    assert table["per_row"]["logical"] == TYPES["text"]
    assert table["ratio"] == pytest.approx(table["allocated_bytes"] / table["logical_bytes"])
    html = render(found)
    for distribution in ("compressible", "random", "repeated"):
        assert f"Disk space per row: distribution = {distribution}" in html
    assert "To the device: all writes to vda while the phase ran." in html
    assert "Bytes by kind, after the last statement of each phase" in html
    drawn = re.search(r'id="storage-0-2-row".*?aria-label="([^"]+)"', html, re.DOTALL)
    assert drawn
    assert all(f"{table} " in drawn[1] for table in TYPES), "each table by its name alone"
    screen = printed(found)
    assert "On disk" in screen
    assert "step by step" not in screen
    assert "On disk per row" in html, "the point of the test stands in the main table"
    (sweep,) = found["sweeps"]
    assert {row["index_bytes"] for row in sweep["rows"]} == {200_000 * 21}, "of each table, not of all"
    assert 'id="sweep-0-bytes"' not in html, "they have a section of their own"
    entry = next(e for e in headline_json(found)["storage"] if e["variant"] == text_variant())
    assert entry["ratio"] == pytest.approx(table["ratio"])


def test_a_bar_is_named_by_its_value_and_the_axis_by_the_parameter(tmp_path: Path) -> None:
    folder = storage_types(tmp_path / "run")
    for path in folder.glob("targets/*/phases/*/phase.json"):
        found = json.loads(path.read_text())
        if found["variant"].pop("distribution") == "random":
            path.write_text(json.dumps(found))
        else:
            shutil.rmtree(path.parent)
    (block,) = storage.blocks(chunks(typed(summarise(folder))))
    chart = block.charts[0]
    assert chart.data["points"][0].columns["label"] == list(TYPES)
    axis = chart.spec["encoding"]["y"]["axis"]
    assert axis["title"] == "table"
    assert axis["minExtent"] >= 6 * max(map(len, TYPES))


def test_indexes_made_after_the_rows_count_into_the_rate(tmp_path: Path, imported: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(imported, folder)
    (home,) = folder.glob("targets/*/phases/*-import-indexes-3")
    drive = json.loads((home / "drive.json").read_text())
    drive["load"]["indexes"] = [
        {"text": "create index", "seconds": seconds, "when": when}
        for seconds, when in ((9.0, "before"), (4.0, "after"), (6.0, "after"))
    ]
    (home / "drive.json").write_text(json.dumps(drive))
    found = summarise(folder)
    there, built = phase(found, indexes="1")["load"]["built"], phase(found, indexes="3")["load"]["built"]
    points = phase(found, indexes="3")["steps"]["points"]
    rows_s = sum(point["seconds"] for point in points)
    assert there is None
    assert built == {
        "indexes": 2,
        "rows_s": pytest.approx(rows_s),
        "indexes_s": 10.0,
        "whole_s": pytest.approx(rows_s + 10),
        "rows_per_s": pytest.approx(STEPS * STEP_ROWS / (rows_s + 10)),
    }
    text = words(Page(render(found)))
    assert "Rate with indexes" in text
    assert "indexes = 3: 2 indexes built after the rows: rows" in text
    assert "2 indexes built after the rows: rows" in " ".join(printed(found).split())
    assert "Rate with indexes" in printed(found)


@given(
    st.tuples(*(st.integers(0, 10**12) for _ in range(4))),
    st.none() | st.integers(0, 10**12),
    st.integers(0, 9),
)
def test_kinds_of_bytes_always_add_up(parts: tuple[int, int, int, int], free: int | None, rows: int) -> None:
    heap, toast, index, maps = parts
    table = {
        "name": "t",
        "rows": rows,
        "logical_bytes": rows * 8,
        "heap_bytes": heap,
        "toast_bytes": toast,
        "index_bytes": index,
        "map_bytes": maps,
        "free_bytes": free,
        "allocated_bytes": None,
    }
    found = plain(
        summarise_storage(part(Phase, {"storage": {"looks": [{"when": "now", "tables": [table]}]}}), None)
    )
    assert found
    (seen,) = found["looks"][0]["tables"]
    assert sum(seen["kinds"].values()) == seen["total_bytes"] == sum(parts)
    assert min(seen["kinds"].values()) >= 0
    assert set(seen["kinds"]) == set(KINDS)
    assert (seen["ratio"] is None) == (rows == 0)


def test_a_grid_gets_heat_maps_curves_and_the_law_that_it_was_made_with(tmp_path: Path) -> None:
    found = summarise(grid(tmp_path / "run"))
    html = render(found)
    assert "Throughput, tps: scale = 10, protocol = prepared" in html
    assert html.count("var(--heat-5)") > 4
    (of,) = blocks(typed(found), {})
    maps = [chart.data["points"][0].columns["level"] for chart in of.heat]
    assert len(maps) == 4
    assert {max(levels) for levels in maps} == {5}, "each has a scale of its own"
    assert html.count("The darkest shade is the highest of this map") == 4
    assert "On disk per row" not in html
    assert "grid-0-fit-0" in html
    for fit in found["scaling"]:
        peak = fit["fit"]["peak_n"]
        assert peak["low"] < 17.9 < peak["high"], "sqrt((1 - 0.04) / 0.003)"
    assert 'id="sweep-0"' not in html, "a grid is no list of bars"


def test_rows_inside_transactions_and_their_commits_are_followed(tmp_path: Path) -> None:
    found = summarise(big_transaction(tmp_path / "run", lost=True))
    piped, single = (phase(found, pipeline=way)["transactions"] for way in ("on", "off"))
    assert piped["committed"] == 9
    assert piped["transactions"][-1]["state"] == "lost"
    assert piped["rows_committed"] == 450_000
    assert piped["commit_s"]["median_s"] == pytest.approx(0.015, abs=1e-6)
    assert piped["mark_rows"] == 1000
    assert 4 < single["per_mark"]["median_s"] / piped["per_mark"]["median_s"] < 7
    assert piped["per_mark"]["p99_s"] is None, "500 marks do not support it"
    text = words(Page(render(found)))
    assert "Time per 1,000 rows, and of the commit, in ms" in text


def test_transactions_of_a_killed_run_are_known_from_their_progress() -> None:
    lines = [
        {"transaction": 0, "rows": 1000, "t_ns": 2_000_000_000, "state": "open"},
        {"transaction": 0, "rows": 1500, "t_ns": 3_000_000_000, "state": "committed"},
        {"transaction": 1, "rows": 1000, "t_ns": 4_500_000_000, "state": "open"},
    ]
    found = plain(summarise_transactions(None, [part(Progress, one) for one in lines], 1_000_000_000))
    assert found
    whole, broken = found["transactions"]
    assert (whole["seconds"], whole["rows_per_s"], whole["commit_s"]) == (2.0, 750.0, None)
    assert (broken["state"], broken["rows"], broken["seconds"]) == ("lost", 1000, None)
    assert broken["start_s"] == 2.0
    assert found["per_mark"]["count"] == 2
    assert summarise_transactions(None, [], 0) is None


def test_targets_are_laid_over_each_other_on_the_phases_own_time(tmp_path: Path) -> None:
    found = summarise(storage_types(tmp_path / "run", targets=TWO))
    starts = [p["course"][0]["t_s"] for p in found["phases"]]
    assert all(0 <= start <= 1.5 for start in starts)
    html = render(found)
    assert "all targets in one chart" in html
    assert "all variants in turn" in html
    assert 'id="beside-0-0-cpu"' in html
    assert 'id="beside-0-0-iops"' in html


def test_one_target_has_no_course_of_its_own(summary: dict[str, Any]) -> None:
    assert all(p["course"] == [] for p in summary["phases"])


def test_gpus_and_a_remote_servers_machine_get_curves_of_their_own(tmp_path: Path) -> None:
    folder = big_transaction(tmp_path / "run")
    (path,) = folder.glob("targets/*/monitor.jsonl")
    count = iter(range(10_000))

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        at = next(count)
        card = {"index": 0, "name": "GPU", "utilisation": 0.5, "memory_used_bytes": MEBI * 100}
        machine = {
            "cpu_s": {"user": at * 1.5, "nice": 0, "system": 0, "idle": at * 0.5, "iowait": 0},
            "cpu_busy": None,
            "memory_used_bytes": MEBI * 512,
            "disk": {"read_ops": at * 10, "write_ops": at * 20, "read_bytes": 0, "write_bytes": 0},
        }
        return {
            **line,
            "gpu": [card, {**card, "utilisation": None}],
            "engine": {**line["engine"], "machine": machine},
        }

    change(path, edit)
    found = summarise(folder)
    point = found["targets"][0]["resources"]["points"][2]
    assert point["machine_cpu"] == pytest.approx(0.75)
    assert point["gpu_utilisation"] == 0.5
    assert point["gpu_memory_bytes"] == 200 * MEBI
    html = render(found)
    for name in ("machine-cpu", "machine-ops", "machine-memory", "gpu", "gpu-memory"):
        assert f'id="resources-pg18-{name}"' in html


def test_a_machine_that_is_watched_is_drawn_with_our_own_sampler_in_one_chart(tmp_path: Path) -> None:
    folder = big_transaction(tmp_path / "run")
    (path,) = folder.glob("targets/*/monitor.jsonl")

    def edit(line: dict[str, Any]) -> dict[str, Any]:
        # The exporter is on this machine, sees what our sampler sees, and has no counters of disks.
        seen = {name: value for name, value in line["host"].items() if name != "disk"}
        return {**line, "watch": [{"source": "exporter", "t_ns": line["t_ns"], "host": seen}]}

    change(path, edit)
    (target,) = typed(summarise(folder)).targets
    charts = {chart.id: chart for chart in resources("r", target, [], (0.0, 100.0))}
    assert not {"r-machine-ops", "r-machine-bytes"} & charts.keys()
    for name, lines in (
        ("cpu", ["busy"]),
        ("memory", ["in use"]),
        ("network", ["sent", "received"]),
    ):
        blocks = charts[f"r-machine-{name}"].data["points"]
        drawn = {block.constant["series"]: block.columns["value"] for block in blocks}
        assert set(drawn) == {*lines, *(f"Loadstone's machine, {line}" for line in lines)}
        for line in lines:
            assert any(value is not None for value in drawn[line])
            assert drawn[line] == drawn[f"Loadstone's machine, {line}"]


def test_labels_leave_out_what_never_differs(tmp_path: Path) -> None:
    folder = big_transaction(tmp_path / "run")
    for path in folder.glob("targets/*/phases/*/phase.json"):
        found = json.loads(path.read_text())
        title = f"Many rows, pipeline {found['variant']['pipeline']}"
        variant = {**found["variant"], "rows": 50_000}
        path.write_text(json.dumps(found | {"variant": variant, "title": title}))
    text = words(Page(write_report(folder).read_text(encoding="utf-8")))
    assert "pipeline = on" in text
    assert "pipeline = on, rows =" not in text
    assert "Many rows, pipeline …" in text


def test_a_long_import_makes_no_heavy_page(summary: dict[str, Any]) -> None:
    assert len(phase(summary, indexes="0")["steps"]["points"]) == STEPS
    assert len(render(summary)) < 1_700_000
