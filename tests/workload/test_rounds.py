"""Plain queries in summary, report and terminal: figures of run folders that are known beforehand."""

from __future__ import annotations

import json
import re
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from support.fake_monitor import write_lines
from support.flights_folders import (
    DUCK,
    HEAVY,
    PG,
    QUERIES,
    ROWS,
    SPREAD,
    TABLE_BYTES,
    WARM_S,
    Flights,
    flights,
)
from support.report_pages import Page, printed, section, without_scripts, words
from support.run_folders import NS, Run, build
from support.summaries import headline_json, part, plain, render, summarise
from support.table_load_folders import _change, _rewrite

from loadstone.report.published import Bar, systems
from loadstone.results.documents import Sample
from loadstone.results.documents.summary import WidthPoint
from loadstone.summary.gpuuse import energy_j, mark
from loadstone.summary.scaling.concurrency import judge_width

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALL = Flights(
    targets=(PG, DUCK, HEAVY),
    gpu=True,
    emptied=False,
    failing=("duckdb", "Sql4"),
    wrong=("duckdb", "Sql3"),
    prices={"pg18": 3.6, "duckdb": 0.36},
)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return summarise(flights(tmp_path_factory.mktemp("flights") / "run", ALL))


@pytest.fixture(scope="module")
def page(summary: dict[str, Any]) -> Page:
    return Page(section(summary))


@pytest.fixture(scope="module")
def whole(summary: dict[str, Any]) -> Page:
    return Page(render(summary))


def target(summary: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in summary["plain_queries"][0]["targets"] if one["target"] == name)


def query(summary: dict[str, Any], whose: str, name: str) -> dict[str, Any]:
    return next(one for one in target(summary, whose)["queries"] if one["name"] == name)


def kinds(summary: dict[str, Any]) -> set[str]:
    return {warning["kind"] for warning in summary["warnings"]}


def test_rounds_are_put_together_into_one_sample(summary: dict[str, Any]) -> None:
    (entry,) = summary["plain_queries"]
    assert (entry["rounds"], entry["variant"], entry["queries"]) == (3, {}, list(QUERIES))
    for name, seconds in WARM_S.items():
        found = query(summary, "pg18", name)
        assert found["warm"]["n"] == 3 * len(SPREAD)
        assert found["warm"]["median_s"] == pytest.approx(seconds)
        assert found["cold"]["median_s"] == pytest.approx(3 * seconds)
        # Of 18 sorted runs the 5th and the 14th hold the median with 96.9 %.
        assert found["warm"]["low_s"] == pytest.approx(seconds * sorted(SPREAD * 3)[4])
        assert found["warm"]["high_s"] == pytest.approx(seconds * sorted(SPREAD * 3)[13])
        assert (found["cold"]["low_s"], found["cold"]["high_s"]) == pytest.approx(
            (2.7 * seconds, 3.3 * seconds)
        )
        assert found["cold"]["whole_range"]
        assert found["cold"]["coverage"] == pytest.approx(0.75)
        assert not found["warm"]["whole_range"]


def test_rounds_are_no_variants_of_the_phases(summary: dict[str, Any]) -> None:
    rounds = [p for p in summary["phases"] if p["id"] == "queries" and p["target"] == "pg18"]
    assert [(p["variant"], p["round"]) for p in rounds] == [({}, 1), ({}, 2), ({}, 3)]
    assert all(p["drive"] is None for p in rounds)


def test_scan_rates_are_of_the_whole_table_over_the_median(summary: dict[str, Any], page: Page) -> None:
    found = query(summary, "pg18", "Sql1")
    assert found["rows_per_s"] == pytest.approx(ROWS / 0.4)
    assert found["bytes_per_s"] == pytest.approx(TABLE_BYTES["pg18"] / 0.4)
    assert found["cold_bytes_per_s"] is None, "its caches were full"
    text = words(page)
    assert "Sql1 PostgreSQL 18.6 25.0 M 10.0 50 % – –" in text, "of 20 GB/s memory"
    assert "Memory of this machine: 20.0 GB/s" in text


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    found = Page(section(summarise(flights(tmp_path / "run", Flights(bandwidth=False, load=False)))))
    assert "Memory: not measured. Disk: not measured." in words(found)
    assert "of memory" not in words(found)


def test_ratios_are_to_the_first_target_and_hold_the_truth(summary: dict[str, Any]) -> None:
    for name in ("Sql1", "Sql2", "Sql5"):
        ratio = query(summary, "duckdb", name)["ratio_to_first"]
        assert ratio["value"] == pytest.approx(1 / 20)
        assert 0.049 < ratio["low"] < 1 / 20 < ratio["high"] < 0.051
        assert query(summary, "heavydb", name)["ratio_to_first"]["value"] == pytest.approx(1 / 40)
        assert query(summary, "pg18", name)["ratio_to_first"] is None


def test_a_wrong_answer_has_neither_ratio_nor_price_and_is_marked_everywhere(
    summary: dict[str, Any], page: Page
) -> None:
    found = query(summary, "duckdb", "Sql3")
    assert found["wrong"] == "column cnt: sum 5, expected 6"
    assert found["ratio_to_first"] is None
    cost = next(cost for cost in summary["costs"] if cost["target"] == "duckdb")
    assert {q["name"]: q["per_thousand"] for q in cost["queries"]}["Sql3"] is None
    assert "Wrong answer: column cnt: sum 5, expected 6" in words(page)
    checked = next(v for v in summary["verdict"] if v["question"] == "Are the answers right?")
    assert (checked["level"], checked["answer"]) == ("bad", "Wrong")
    assert "wrong answer: column cnt" in printed(summary)


def test_a_failed_run_leaves_the_median_of_the_others(summary: dict[str, Any], page: Page) -> None:
    found = query(summary, "duckdb", "Sql4")
    # In the first round one run was done before; the failed one and the four behind it are left out.
    assert found["warm"]["n"] == 2 * len(SPREAD) + 1
    done = [factor * 2.0 / 20 for factor in (*SPREAD, *SPREAD, SPREAD[0])]
    assert found["warm"]["median_s"] == pytest.approx(median(done))
    said = "1 of 17 runs failed: canceling statement due to statement timeout"
    assert found["failed"] == said
    assert f"Failed: {said}" in words(page)
    assert "QueriesFailed" in kinds(summary)


def test_a_query_that_never_ended_has_no_figure_and_no_ratio(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(load=False))
    for path in folder.glob("targets/pg18/phases/*queries*/drive.json"):
        _rewrite(path, fail_all("Sql2"))
    found = summarise(folder)
    assert query(found, "pg18", "Sql2")["warm"]["median_s"] is None
    assert query(found, "pg18", "Sql2")["failed"].startswith("3 of 3 runs failed: the server closed")
    assert query(found, "duckdb", "Sql2")["ratio_to_first"] is None
    text = words(Page(section(found)))
    assert "Failed: 3 of 3 runs failed" in text
    assert "warm failed" in " ".join(re.findall(r'role="img" aria-label="([^"]*)"', section(found)))


def fail_all(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def edit(drive: dict[str, Any]) -> dict[str, Any]:
        first = True
        for run in drive["plain_queries"]["runs"]:
            if run["query"] == name:
                run |= {"state": "failed" if first else "skipped", "seconds": None}
                run["reason"] = "the server closed the connection" if first else None
                first = False
        return drive

    return edit


def test_costs_are_the_hour_over_what_an_hour_brings(summary: dict[str, Any], page: Page) -> None:
    cost = next(cost for cost in summary["costs"] if cost["target"] == "pg18")
    # 3.6 an hour is a thousandth a second.
    assert {q["name"]: q["per_thousand"] for q in cost["queries"]} == pytest.approx(WARM_S)
    each = {load["variant"]["workers"]: load["per_million_rows"] for load in cost["imports"]}
    assert each == pytest.approx({1: 0.001 / 1.25, 2: 0.001 / 2.5})
    loads = {load["clients"]: load["per_thousand"] for load in cost["loads"]}
    assert loads[1] == pytest.approx(1 / 80)
    assert "PostgreSQL 18.6 at 3.6 an hour" in words(page)
    assert "There is no price for HeavyDB 8.0." in words(page)


def test_without_prices_there_are_no_costs(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(load=False)))
    assert found["costs"] == []
    assert "Costs" not in words(Page(section(found)))


def test_a_gpu_takes_two_witnesses(summary: dict[str, Any]) -> None:
    assert query(summary, "heavydb", "Sql1")["gpu"] == "GPU"
    assert query(summary, "pg18", "Sql1")["gpu"] == "CPU", "its plan says so, whatever the GPU does"
    assert query(summary, "pg18", "Sql4")["energy_j"] == pytest.approx(150 * 2.01, rel=0.02)
    assert query(summary, "heavydb", "Sql1")["energy_j"] is None, "10 ms hold no reading"


def test_a_gpu_in_the_plan_that_nobody_saw_is_a_cpu_and_a_warning(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(targets=(PG, HEAVY), load=False)))
    assert query(found, "heavydb", "Sql1")["gpu"] == "CPU"
    assert query(found, "pg18", "Sql1")["gpu"] is None
    assert "NoGpuSeen" in kinds(found)


def test_a_line_soon_after_a_short_run_still_tells_of_it() -> None:
    line = {"t_ns": 10 * NS, "gpu": [{"utilisation": 0.4}]}
    assert mark([part(Sample, line)], [(9 * NS, 9 * NS + 5)], plan_says=True) == "GPU"
    assert mark([part(Sample, line)], [(8 * NS, 8 * NS + 5)], plan_says=True) == "CPU"
    assert mark([part(Sample, line)], [(9 * NS, 9 * NS + 5)], plan_says=False) == "CPU"
    assert mark([part(Sample, line)], [(9 * NS, 9 * NS + 5)], plan_says=None) is None


def plain_width(points: list[dict[str, Any]]) -> Any:
    return plain(judge_width([part(WidthPoint, point) for point in points]))


@pytest.mark.parametrize("counter", [True, False])
def test_energy_is_of_the_counter_or_of_the_power(*, counter: bool) -> None:
    lines = [
        {"t_ns": at * NS, "gpu": [{"power_w": 200.0, "energy_j": 200.0 * at if counter else None}]}
        for at in range(10)
    ]
    assert energy_j([part(Sample, line) for line in lines], (2 * NS + NS // 2, 6 * NS)) == pytest.approx(700)
    assert energy_j([part(Sample, line) for line in lines], (2 * NS, 3 * NS)) is None, "too short"
    assert energy_j([part(Sample, {**line, "gpu": None}) for line in lines], (2 * NS, 6 * NS)) is None


def test_flat_throughput_with_growing_latency_is_said_to_serialise(
    summary: dict[str, Any], page: Page
) -> None:
    (entry,) = summary["concurrency"]
    found = entry["targets"][0]
    assert [point["clients"] for point in found["points"]] == [1, 10, 20, 50]
    assert [round(point["qps"]["value"]) for point in found["points"]] == [80, 84, 85, 84]
    assert found["verdict"]["serialises"]
    assert found["verdict"]["qps_ratio"] == pytest.approx(1.05)
    assert "PostgreSQL 18.6 serialises: from 1 to 50 clients, 1.05× the queries a second" in words(page)
    assert [(f["clients"], f["value"]) for f in entry["published"]] == [
        (1, 7.9),
        (10, 8.5),
        (20, 8.5),
        (50, 8.4),
    ]


def point(clients: int, qps: float | None, mean_ms: float, cpu: float = 0.3) -> dict[str, Any]:
    rate = None if qps is None else {"value": qps}
    return {"clients": clients, "qps": rate, "mean_ns": mean_ms * 1e6, "cpu_server": cpu}


def test_who_serialises_and_who_does_not() -> None:
    flat = plain_width([point(1, 8.0, 125), point(50, 8.4, 5952)])
    assert flat
    assert flat["serialises"]
    assert not flat["fills_machine"]
    full = plain_width([point(1, 8.0, 125, cpu=0.97), point(50, 8.4, 5952)])
    assert full
    assert full["fills_machine"]
    wider = plain_width([point(1, 8.0, 125), point(50, 80.0, 600)])
    assert wider
    assert not wider["serialises"]
    dropped = plain_width([point(1, 8.0, 125), point(50, 8.0, 130)])
    assert dropped
    assert not dropped["serialises"], "flat without waiting: the clients did not ask"
    assert plain_width([point(1, 8.0, 125)]) is None
    assert plain_width([point(1, None, 125), point(50, 8.0, 6000)]) is None


def test_caches_that_stayed_full_are_said_with_the_reason(summary: dict[str, Any], page: Page) -> None:
    assert "CachesNotEmptied" in kinds(summary)
    because = "the caches could not be emptied: this server is not ours to restart."
    assert f"PostgreSQL 18.6, DuckDB 2.0.0, HeavyDB 8.0: {because}" in words(page), "once for all of them"


def test_an_engine_in_our_process_is_marked_beside_its_figures(summary: dict[str, Any], page: Page) -> None:
    assert target(summary, "duckdb")["client_share"] is None
    assert target(summary, "pg18")["client_share"] == pytest.approx(0.35 / 1.6)
    assert {"InOurProcess", "ClientWorkedBetweenQueries"} <= kinds(summary)
    assert "DuckDB 2.0.0: runs inside Loadstone's process" in words(page)


def test_few_runs_are_warned_of_and_enough_are_not(tmp_path: Path, summary: dict[str, Any]) -> None:
    assert "FewRuns" not in kinds(summary)
    few = Flights(targets=(PG,), rounds=1, warm_runs=4, load=False)
    found = summarise(flights(tmp_path / "run", few))
    message = next(w["message"] for w in found["warnings"] if w["kind"] == "FewRuns")
    assert "only 1 cold and 4 warm runs" in message


def test_one_round_on_one_target(tmp_path: Path) -> None:
    made = Flights(targets=(PG,), rounds=1, warm_runs=1, load=False)
    found = summarise(flights(tmp_path / "run", made))
    warm = query(found, "pg18", "Sql1")["warm"]
    assert (warm["n"], warm["low_s"], warm["high_s"]) == (1, None, None)
    html = section(found)
    assert "one run" in html
    assert "vs first" not in html


def test_without_cold_runs_nothing_is_said_of_caches(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(cold=False, load=False)))
    assert query(found, "pg18", "Sql1")["cold"]["n"] == 0
    assert target(found, "pg18")["caches"] is None
    assert "CachesNotEmptied" not in kinds(found)
    assert "of the disk" not in words(Page(section(found)))


def test_rounds_that_do_not_overlap_are_warned_of(tmp_path: Path, summary: dict[str, Any]) -> None:
    assert "RoundsDiffer" not in kinds(summary)
    folder = flights(tmp_path / "run", Flights(targets=(PG,), load=False))
    path = next(folder.glob("targets/pg18/phases/*-round-2/drive.json"))

    def slower(drive: dict[str, Any]) -> dict[str, Any]:
        for run in drive["plain_queries"]["runs"]:
            run["seconds"] *= 1.5 if run["query"] == "Sql1" else 1.0
        return drive

    _rewrite(path, slower)
    found = [w["message"] for w in summarise(folder)["warnings"] if w["kind"] == "RoundsDiffer"]
    assert len(found) == 1
    assert "(Sql1)" in found[0]


def test_a_round_that_was_killed_leaves_the_others(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(targets=(PG,), load=False))
    home = next(folder.glob("targets/pg18/phases/*-round-3"))
    (home / "drive.json").unlink()
    _change(home / "phase.json", state="running", end_ns=None)
    found = summarise(folder)
    assert query(found, "pg18", "Sql1")["warm"]["n"] == 2 * len(SPREAD)
    assert "over 2 rounds" in section(found)


def test_imports_and_sizes_stand_with_the_published_ones(summary: dict[str, Any], page: Page) -> None:
    (entry,) = summary["imports"]
    rates = {
        (load["target"], load["variant"]["workers"]): load["rows_per_s"]["value"] for load in entry["loads"]
    }
    assert rates["pg18", 1] == pytest.approx(1.25e6)
    assert rates["duckdb", 2] == pytest.approx(2.5e6)
    assert {size["target"]: size["ratio"] for size in entry["sizes"]} == pytest.approx(
        {"pg18": 1.0, "duckdb": 8.0, "heavydb": 2.5}
    )
    assert {figure["metric"] for figure in entry["published"]} == {"rows_per_s", "ratio", "table_bytes"}
    text = words(page)
    assert "MapD (GPU) published 37 GB" in text
    assert "on 4 × E5-2650 v4, 8 GB RAM, SSD, Tesla P40 24 GB" in text


def test_what_comes_behind_the_last_step_is_in_the_rate(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(targets=(PG,), load=False))
    path = next(folder.glob("targets/pg18/phases/*workers-1/drive.json"))
    _rewrite(path, lambda drive: {**drive, "load": {**drive["load"], "finish_ns": 2 * NS}})
    step = {"step": 0, "rows_before": 0, "rows": ROWS, "start_ns": 0, "end_ns": 6 * NS, "seconds": 6.0}
    told = {**step, "state": "complete", "reason": None, "sizes": None, "counters": None}
    told |= dict.fromkeys(("server_cpu_s", "client_cpu_s", "server_write_bytes"))
    write_lines(path.parent / "steps.jsonl", [told])
    load = summarise(folder)["imports"][0]["loads"][0]
    assert load["rows_per_s"]["value"] == pytest.approx(ROWS / 8)


def test_the_engines_own_end_of_a_load_is_in_its_rate(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(targets=(PG,), load=False))
    path = next(folder.glob("targets/pg18/phases/*workers-1/drive.json"))
    after = [
        {"text": "compress", "seconds": 2.0, "when": "after", "part_of_load": True},
        {"text": "vacuum", "seconds": 5.0, "when": "after"},
    ]
    _rewrite(path, lambda drive: {**drive, "load": {**drive["load"], "after": after}})
    load = summarise(folder)["imports"][0]["loads"][0]
    assert load["rows_per_s"]["value"] == pytest.approx(ROWS / 10)
    assert (load["seconds"], load["finish_s"]) == (10, 2)


def test_published_figures_of_several_systems_are_not_ours_over_theirs(whole: Page) -> None:
    assert "Five queries, cold and warm" in words(whole)
    assert "Ours / published" not in words(whole)


def test_a_run_without_plain_queries_has_no_such_section(tmp_path: Path) -> None:
    found = summarise(build(tmp_path / "run", Run()))
    assert (found["plain_queries"], found["concurrency"], found["imports"], found["costs"]) == (
        [],
        [],
        [],
        [],
    )
    assert 'id="queries"' not in render(found)


def test_the_terminal_has_a_row_for_each_query_and_target(summary: dict[str, Any]) -> None:
    screen = printed(summary)
    row = next(line for line in screen.splitlines() if line.strip().startswith("Sql1"))
    assert row.split()[:5] == ["Sql1", "PostgreSQL", "18.6", "1,200", "400"]
    assert "1/20.0×" in screen
    assert "8.00:1" in screen
    assert "serialises" in screen


def test_json_has_the_figures_without_statements_and_plans(summary: dict[str, Any]) -> None:
    document = headline_json(summary)
    found = document["plain_queries"][0]["targets"][1]["queries"][0]
    assert found["warm"]["median_s"] == pytest.approx(0.02)
    assert "plan" not in found
    assert "runs" in found["warm"]
    json.dumps(document)


def test_the_page_is_well_formed_and_its_pictures_are_named(summary: dict[str, Any], whole: Page) -> None:
    assert whole.faults == []
    assert whole.open == []
    html = section(summary)
    ids = [attributes["id"] for _, attributes in whole.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for figure in re.findall(r"<figure.*?</figure>", html, re.DOTALL):
        label = re.search(r'role="img" aria-label="([^"]+)"', figure)
        assert label
        assert len(label[1]) > 30
        assert "nan" not in figure
    for table in re.findall(r"<table.*?</table>", without_scripts(html), re.DOTALL):
        assert "<caption" in table
        assert all("scope=" in header for header in re.findall(r"<th[^e].*?>", table))


def test_the_same_folder_gives_the_same_figures(tmp_path: Path) -> None:
    folder = flights(tmp_path / "run", Flights(load=False))
    assert json.dumps(summarise(folder), sort_keys=True) == json.dumps(summarise(folder), sort_keys=True)


def test_bars_over_a_wide_span_say_that_they_are_logarithmic() -> None:
    wide = systems(
        ("a", "Sql1"), "ms", [Bar("PostgreSQL", "warm", 71_456.0, "x"), Bar("Duck", "warm", 3.0, "y")]
    )
    narrow = systems(
        ("a", "Sql1"), "ms", [Bar("PostgreSQL", "warm", 7.0, "x"), Bar("Duck", "warm", 3.0, "y")]
    )
    assert wide
    assert narrow
    assert "logarithmic" in wide.note
    assert narrow.note == ""
    assert systems(("a", "Sql1"), "ms", [Bar("PostgreSQL", "warm", None, "failed")]) is None
