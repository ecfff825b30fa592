"""summary.json from run folders whose figures are known beforehand."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.run_folders import NS, Phase, Run, Target, bucket_indexes, build, encode, kill, write
from support.summaries import part, summarise, write_summary

from loadstone.errors import LoadstoneError
from loadstone.results.documents.phase import BeforeAfter, Relation, Sizes
from loadstone.results.documents.summary import DriveFigures
from loadstone.summary import document
from loadstone.summary.histograms import Histogram, bucket_floor_ns, bucket_top_ns, read_log
from loadstone.summary.run_files import read_run
from loadstone.summary.sizes import summarise_sizes
from loadstone.summary.statistics import Interval, batch_means, drift, ratio_interval
from loadstone.summary.warnings import phase_warnings

if TYPE_CHECKING:
    from pathlib import Path

UNIFORM = tuple(range(1_000_000, 2_000_000, 1_000))  # 1000 samples an interval: 1.000, 1.001, … 1.999 ms


def only_drive(folder: Path) -> dict[str, Any]:
    drive: dict[str, Any] = summarise(folder)["phases"][0]["drive"]
    return drive


def kinds(summary: dict[str, Any]) -> set[str]:
    return {warning["kind"] for warning in summary["warnings"]}


def percentiles(latency: dict[str, Any]) -> dict[float, int | None]:
    return {entry["percentile"]: entry["value_ns"] for entry in latency["percentiles"]}


def test_percentiles_of_a_known_histogram(tmp_path: Path) -> None:
    drive = only_drive(build(tmp_path / "run", Run(phases=(Phase(samples_ns=UNIFORM, seconds=10),))))
    found = percentiles(drive["response"])
    for percentile, expected in (
        (50, 1_499_000),
        (90, 1_899_000),
        (95, 1_949_000),
        (99, 1_989_000),
        (99.9, 1_998_000),
    ):
        assert found[percentile] == pytest.approx(expected, rel=1e-3)
    assert drive["response"]["mean_ns"] == pytest.approx(1_499_500)
    assert drive["response"]["count"] == 10_000
    assert found[99.99] is None, "10,000 samples leave one beyond p99.99"
    reason = next(p["reason"] for p in drive["response"]["percentiles"] if p["percentile"] == 99.99)
    assert "100,000" in reason
    assert "10,000" in reason


def test_tps_is_done_over_the_measured_time_and_the_warm_up_does_not_count(tmp_path: Path) -> None:
    drive = only_drive(
        build(tmp_path / "run", Run(phases=(Phase(samples_ns=UNIFORM, seconds=12, warmup=3),)))
    )
    assert drive["counts"]["done"] == 12_000
    assert drive["tps"]["value"] == 1000
    assert drive["measured_s"] == 12
    assert drive["tps"]["n"] == 12
    assert drive["tps"]["low"] == drive["tps"]["high"] == 1000, "equal intervals have no spread"
    assert drive["tps_including_connections"] == pytest.approx(12_000 / 12.012)


def test_a_rate_of_a_handful_has_no_interval(tmp_path: Path) -> None:
    """One long query leaves nothing but intervals without an end, which would look steady."""
    few = only_drive(build(tmp_path / "few", Run(phases=(Phase(samples_ns=UNIFORM[:1], seconds=9),))))
    assert few["tps"]["value"] == 1
    assert (few["tps"]["low"], few["tps"]["high"]) == (None, None)
    assert few["tps"]["reason"] == "only 9 transactions done; at least 10 are needed"
    enough = only_drive(build(tmp_path / "enough", Run(phases=(Phase(samples_ns=UNIFORM[:1], seconds=10),))))
    assert enough["tps"]["low"] == 1


def test_a_cut_off_last_interval_makes_no_spike(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(samples_ns=UNIFORM, seconds=5),)))
    path = folder / "targets/pg18/phases/001-one-table-single/series.jsonl"
    last = json.loads(path.read_text().splitlines()[-1])
    stub = last | {"start_ns": last["end_ns"], "end_ns": last["end_ns"] + 1_000_000, "done": 8}
    path.write_text(path.read_text() + json.dumps(stub) + "\n")
    drive = only_drive(folder)
    assert max(point["tps"] for point in drive["series"]) < 1010
    assert drive["tps"]["n"] == 5


def test_samples_that_follow_at_once_give_no_impossible_share(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=30),)))
    path = folder / "targets/pg18/monitor.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    double = json.loads(json.dumps(lines[10]))
    double["t_ns"] += 2_000_000
    double["host"]["cpu_s"]["user"] += 0.01
    path.write_text("".join(json.dumps(line) + "\n" for line in [*lines[:11], double, *lines[11:]]))
    points = summarise(folder)["targets"][0]["resources"]["points"]
    assert len(points) == len(lines) - 1
    assert max(point["cpu_busy"] for point in points) <= 1.05


def test_rows_per_second_follow_from_rows_per_transaction(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(samples_ns=UNIFORM, rows=100),))))
    drive, sizes = summary["phases"][0]["drive"], summary["phases"][0]["sizes"]
    assert drive["rows_per_s"]["value"] == 100_000
    assert sizes["per_unit"]["table_bytes_per_row"] == 44
    assert sizes["per_unit"]["wal_bytes_per_row"] == 120
    assert sizes["per_unit"]["wal_bytes_per_transaction"] == 12_000


def test_a_violated_counting_equation_is_an_error(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(lost=3, seconds=5),))))
    assert summary["phases"][0]["drive"]["equation"]["holds"] is False
    found = [w for w in summary["warnings"] if w["kind"] == "CountsDoNotAddUp"]
    assert [w["level"] for w in found] == ["error"]
    assert summary["verdict"][1]["level"] == "bad"


def test_what_the_warm_up_left_to_the_window_is_in_its_rate_and_in_the_equation(tmp_path: Path) -> None:
    phase = Phase(samples_ns=UNIFORM, seconds=5, carried=4_000, rate=5000)
    drive = summarise(build(tmp_path / "run", Run(phases=(phase,))))["phases"][0]["drive"]
    assert drive["counts"] | {"scheduled": 1_000, "carried": 4_000, "done": 5_000} == drive["counts"]
    assert drive["equation"]["holds"] is True
    assert drive["tps"]["value"] == 1_000


def test_intervals_that_do_not_add_up_to_the_rate_are_an_error(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(unlisted=3, seconds=5),))))
    assert "in the intervals" in summary["phases"][0]["drive"]["equation"]["text"]
    assert "CountsDoNotAddUp" in kinds(summary)


def test_a_failed_check_is_an_error(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(check=False, seconds=5),), state="failed")))
    assert {"CheckFailed", "RunIncomplete"} <= kinds(summary)
    assert summary["verdict"][1]["answer"] == "Wrong"


def test_a_killed_run_is_rebuilt_from_its_intervals_and_marked_incomplete(tmp_path: Path) -> None:
    phase = Phase(samples_ns=UNIFORM, seconds=20, warmup=2)
    folder = build(tmp_path / "run", Run(phases=(phase, Phase(id="later", title="Later")), unreached=1))
    kill(folder, "001-one-table-single", keep_intervals=9)
    summary = summarise(folder)
    drive = summary["phases"][0]["drive"]
    assert summary["run"]["state"] == "killed"
    assert drive["reconstructed"]
    assert drive["counts"]["done"] == 7_000, (
        "9 whole intervals, two of them warm-up; the torn line is ignored"
    )
    assert drive["tps"]["value"] == 1000
    assert percentiles(drive["response"])[99] == pytest.approx(1_989_000, rel=1e-3)
    assert drive["equation"]["holds"] is None
    assert {"RunIncomplete", "PhaseIncomplete"} <= kinds(summary)
    assert [(s["phase"], s["reason"]) for s in summary["skipped"]] == [
        ("002-later", "not reached: the run ended before")
    ]


def test_a_run_killed_before_any_phase_has_a_summary(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(),), unreached=1, state="running"))
    shutil.rmtree(folder / "targets")
    summary = summarise(folder)
    assert summary["groups"] == []
    assert summary["verdict"][0]["answer"] == "Incomplete"


def test_a_phase_folder_without_any_file_is_named_by_its_folder(tmp_path: Path) -> None:
    folder = build(tmp_path / "run")
    (folder / "targets/pg18/phases/002-next").mkdir()
    assert summarise(folder)["phases"][1]["id"] == "next"


def test_zero_transactions(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(samples_ns=(), seconds=5),))))
    drive = summary["phases"][0]["drive"]
    assert drive["tps"]["value"] == 0
    assert drive["response"]["mean_ns"] is None
    assert set(percentiles(drive["response"]).values()) == {None}
    assert "NothingDone" in kinds(summary)


def test_one_sample(tmp_path: Path) -> None:
    drive = only_drive(
        build(tmp_path / "run", Run(phases=(Phase(samples_ns=(123_456,), seconds=1, warmup=0),)))
    )
    assert drive["response"]["count"] == 1
    assert set(percentiles(drive["response"]).values()) == {None}
    assert drive["tps"]["low"] is None
    assert "at least 10" in drive["tps"]["reason"]


def test_repeats_give_the_median_and_keep_each(tmp_path: Path) -> None:
    phases = tuple(Phase(samples_ns=UNIFORM[:n], repeat=r) for r, n in ((1, 900), (2, 1000), (3, 700)))
    summary = summarise(build(tmp_path / "run", Run(phases=phases)))
    (group,) = summary["groups"]
    assert (group["tps"]["value"], group["tps"]["low"], group["tps"]["high"]) == (900, 700, 1000)
    assert len(group["phases"]) == 3


def test_targets_are_compared_with_the_first(tmp_path: Path) -> None:
    targets = (Target(), Target(id="pg14", label="PostgreSQL 14", build="other", speed=0.8, fsync="off"))
    summary = summarise(build(tmp_path / "run", Run(targets=targets)))
    first, second = summary["groups"]
    assert first["ratio_to_first"] is None
    ratio = second["ratio_to_first"]
    assert ratio["low"] < 0.8 < ratio["high"]
    assert ratio["differs"]
    assert {"MixedBuilds", "DurabilityOff"} <= kinds(summary)
    off = next(w for w in summary["warnings"] if w["kind"] == "DurabilityOff")
    assert "fsync = off" in off["message"]
    assert off["target"] == "pg14"
    durable = next(entry for entry in summary["verdict"] if entry["answer"] == "Not durable")
    assert durable["detail"] == "fsync = off on pg14"


def test_a_sweep_is_told_relative_to_none(tmp_path: Path) -> None:
    speeds = {"brin": (950, 65_536), "none": (1000, 0), "btree": (800, 4_000_000)}
    phases = tuple(
        Phase(variant={"index": name}, samples_ns=UNIFORM[:n], index_bytes=size)
        for name, (n, size) in speeds.items()
    )
    (table,) = summarise(build(tmp_path / "run", Run(phases=phases)))["sweeps"]
    assert table["parameter"] == "index"
    assert table["baseline"] == "none"
    by_value = {row["value"]: row for row in table["rows"]}
    assert by_value["btree"]["ratio"]["value"] == pytest.approx(0.8)
    assert by_value["none"]["ratio"] is None
    assert by_value["btree"]["index_bytes"] == 4_000_000


def test_a_sweep_over_two_parameters_is_one_table(tmp_path: Path) -> None:
    phases = tuple(
        Phase(variant={"index": i, "clients": c, "rows": 5}, seconds=4)
        for i in ("brin", "none")
        for c in (1, 8)
    )
    (table,) = summarise(build(tmp_path / "run", Run(phases=phases)))["sweeps"]
    assert (table["parameters"], table["fixed"]) == (["index", "clients"], {"rows": 5})
    assert [row["values"] for row in table["rows"]] == [["brin", 1], ["brin", 8], ["none", 1], ["none", 8]]
    assert table["baseline"] == "none · 1"
    assert [row["ratio"] is None for row in table["rows"]] == [False, False, True, False]


def test_published_figures_stand_beside_ours_per_core_too(tmp_path: Path) -> None:
    published = (
        {"metric": "tps", "value": 273_259, "unit": "1/s"},
        {"metric": "latency_avg", "value": 0.205, "unit": "ms"},
    )
    summary = summarise(
        build(tmp_path / "run", Run(phases=(Phase(samples_ns=UNIFORM, published=published),)))
    )
    tps, latency = summary["groups"][0]["published"]
    assert tps["ratio"] == pytest.approx(1000 / 273_259)
    assert tps["ratio_per_core"] == pytest.approx(1000 / 2 / (273_259 / 56))
    assert latency["measured"] == pytest.approx(1.4995)
    assert "ratio_per_core" not in latency


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase(client_busy=0.9), "ClientWasTheLimit"),
        (Phase(median_ms=0.05), "ClientMayHaveBeenLate"),
        (Phase(failed=4), "ErrorsHappened"),
        (Phase(rate=1000.0, skipped=5), "WorkDropped"),
        (Phase(drift=-0.6), "Unsteady"),
        (Phase(steal=0.2), "MachineWasBusy"),
        (Phase(tps=100), "TooFewSamples"),
        (Phase(state="interrupted"), "PhaseIncomplete"),
    ],
)
def test_each_situation_has_its_warning_and_says_what_to_do(
    tmp_path: Path, phase: Phase, expected: str
) -> None:
    healthy = kinds(summarise(build(tmp_path / "healthy", Run(phases=(Phase(),)))))
    summary = summarise(build(tmp_path / "run", Run(phases=(phase,))))
    assert expected not in healthy
    assert expected in kinds(summary)
    assert all(warning["hint"] for warning in summary["warnings"])


@pytest.mark.parametrize(("in_process", "warned"), [(True, True), (False, False)])
def test_others_are_known_beside_an_engine_in_our_process(
    tmp_path: Path, *, in_process: bool, warned: bool
) -> None:
    folder = build(tmp_path / "run", Run())
    (phase,) = document.summarise(folder).phases
    assert phase.usage
    usage = replace(phase.usage, cpu_server=None, cpu_other=0.4)
    found = phase_warnings(replace(phase, usage=usage), read_run(folder).calibration, in_process=in_process)
    assert ("MachineWasBusy" in {one.kind for one in found}) == warned


def test_a_table_that_did_not_grow_has_no_bytes_by_row() -> None:
    held = [Relation("flights", "table", "flights", 1_835_008)]
    again = BeforeAfter(Sizes(relations=held), Sizes(relations=held))
    drive = part(DriveFigures, {"counts": {"done": 4}, "warmup_counts": {"done": 0}})
    found = summarise_sizes(again, drive, 20_000)
    assert found
    assert found.per_unit
    assert found.per_unit.table_bytes_per_row is None
    assert found.per_unit.index_bytes_per_row == 0, "there is none"


def test_what_the_run_warned_of_is_told_once(tmp_path: Path) -> None:
    event = {
        "t_ns": 1,
        "level": "warning",
        "kind": "warning",
        "target": None,
        "phase": None,
        "message": "swap is used",
        "hint": None,
    }
    folder = build(
        tmp_path / "run", Run(events=(event, event | {"level": "info", "message": "fine"}), debug_build=True)
    )
    environment = json.loads((folder / "environment.json").read_text())
    told = [
        {"message": "swap is used", "hint": "stop it"},
        {"message": "the core is a debug build", "hint": "x"},
    ]
    write(folder / "environment.json", environment | {"warnings": told})
    summary = summarise(folder)
    assert [w["message"] for w in summary["warnings"] if w["kind"] == "Noted"] == ["swap is used"]
    assert "DebugBuild" in kinds(summary)


def test_a_rate_near_the_calibrated_ceiling_is_doubted(tmp_path: Path) -> None:
    calibration = {
        "results": [
            {"mode": "prepared", "clients": 8, "tps": 1100.0},
            {"mode": "simple", "clients": 8, "tps": 9e5},
        ]
    }
    summary = summarise(
        build(tmp_path / "run", Run(phases=(Phase(samples_ns=UNIFORM),), calibration=calibration))
    )
    assert "NearCeiling" in kinds(summary)
    assert summary["phases"][0]["drive"]["ceiling_tps"] == 1100


def test_response_and_service_are_kept_apart_under_a_rate_only(tmp_path: Path) -> None:
    run = Run(phases=(Phase(rate=1000.0, samples_ns=UNIFORM), Phase(id="closed", samples_ns=UNIFORM)))
    paced, closed = (phase["drive"] for phase in summarise(build(tmp_path / "run", run))["phases"])
    assert paced["service"]["count"] == paced["response"]["count"]
    assert percentiles(paced["service"])[50] is not None
    assert closed["service"] is None
    assert "same" in closed["latency_note"]


def test_resources_are_rates_on_the_axis_of_the_run(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(seconds=60),))))
    points = summary["targets"][0]["resources"]["points"]
    middle = points[len(points) // 2]
    total = sum(middle[name] for name in ("cpu_server", "cpu_client", "cpu_other"))
    assert middle["cpu_server"] == pytest.approx(1.25 / 2, rel=0.25)
    assert total == pytest.approx(middle["cpu_busy"], rel=1e-6)
    assert middle["wal_bytes_per_s"] == pytest.approx(32e6, rel=0.25)
    start = summary["phases"][0]["drive"]["start_s"]
    assert start < points[0]["t_s"] < start + 2
    assert len(summary["targets"][0]["resources"]["checkpoints"]) == 1


def test_same_folder_same_bytes(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(), Phase(variant={"index": "btree"}))))
    write_summary(folder)
    first = (folder / "summary.json").read_bytes()
    write_summary(folder)
    assert (folder / "summary.json").read_bytes() == first
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    write_summary(copy)
    assert (copy / "summary.json").read_bytes() == first


def test_what_is_no_run_folder_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError) as refusal:
        summarise(tmp_path)
    assert refusal.value.hint


@pytest.mark.slow  # 36,000 lines
def test_ten_hours_stay_small(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=1200, samples_ns=UNIFORM[:5], warmup=0),)))
    home = folder / "targets/pg18/phases/001-one-table-single"
    line = json.loads((home / "series.jsonl").read_text().splitlines()[0])
    with (home / "series.jsonl").open("w") as series:
        for second in range(36_000):
            start = line["start_ns"] + second * NS
            series.write(json.dumps(line | {"start_ns": start, "end_ns": start + NS}) + "\n")
    drive = only_drive(folder)
    assert len(drive["series"]) <= 600
    assert len(drive["latency_series"]) <= 600
    assert len(json.dumps(drive)) < 200_000


@given(st.lists(st.integers(1, 3_000_000_000), min_size=1, max_size=300), st.floats(1, 99.9))
@settings(deadline=None, max_examples=60)
def test_a_percentile_is_within_the_histograms_precision(values: list[int], percentile: float) -> None:
    histogram = Histogram()
    np_values = np.array(values, dtype=np.int64)
    counts = np.bincount(bucket_indexes(np_values)).astype(np.int64)
    histogram.add(0, counts)
    exact = int(np.sort(np_values)[int(np.ceil(len(values) * percentile / 100 - 1e-9)) - 1])
    assert exact <= (histogram.percentile_ns(percentile) or 0) <= exact * 1.001 + 1


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50), st.integers(1, 49))
@settings(deadline=None, max_examples=40)
def test_merging_parts_gives_the_whole_and_the_log_keeps_counts(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], cut: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "latency.hlog"
    parts = [np.array(part, dtype=np.int64) for part in (values[:cut], values[cut:]) if part]
    path.write_text(
        "".join(f"Tag=response,{i}.000,1.000,1.0,{encode(part)}\n" for i, part in enumerate(parts))
    )
    histogram = Histogram()
    for line in read_log(path):
        histogram.add(line.first, line.counts)
    assert histogram.count == len(values)
    for value in values:
        index = int(bucket_indexes(np.array([value]))[0])
        assert bucket_floor_ns(index) <= value <= bucket_top_ns(index)


def test_a_log_with_torn_and_foreign_lines_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "latency.hlog"
    good = f"Tag=response,0.000,1.000,1.5,{encode(np.array(UNIFORM))}\n"
    path.write_text(
        "#[Histogram log format version 1.3]\n" + good + "Tag=response,1.0,1.0,1.5,!!!!\n" + good[:90]
    )
    assert [int(line.counts.sum()) for line in read_log(path)] == [1000]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_the_interval_covers_the_truth_about_as_often_as_it_says(rho: float) -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(300):
        noise = rng.normal(0, 30, 240)
        rates = np.zeros(240)
        rates[0] = noise[0]
        for at in range(1, 240):
            rates[at] = rho * rates[at - 1] + noise[at] * np.sqrt(1 - rho**2)
        rates += 1000
        interval = batch_means(list(rates), float(rates.mean()))
        assert isinstance(interval, Interval)
        covered += interval.low <= 1000 <= interval.high
    assert 0.88 <= covered / 300 <= 0.995


def test_a_ratios_interval_holds_the_truth_and_turns_round() -> None:
    a = Interval(80.0, 0, 0, 20, 1, 19, 0.02, "")
    b = Interval(100.0, 0, 0, 20, 1, 19, 0.02, "")
    ratio, low, high = ratio_interval(a, b)
    assert low < ratio == 0.8 < high
    turned = ratio_interval(b, a)
    assert turned[1] == pytest.approx(1 / high)


def test_a_rate_that_a_schedule_keeps_has_no_drift() -> None:
    change, p_value = drift([20_000 * (1 + n * 1e-13) for n in range(12)]) or (1, 0)
    assert abs(change) < 1e-6
    assert p_value == 1


def test_a_rate_that_is_constant_for_a_third_has_a_drift_without_a_warning() -> None:
    change, p_value = drift([400.0] * 6 + [401, 399, 300]) or (0, 1)
    assert change == pytest.approx((401 + 399 + 300) / 1200 - 1)
    assert 0 < p_value < 1


def test_drift_needs_enough_intervals() -> None:
    assert drift([1.0] * 8) is None
    change, p_value = drift([100.0, 101, 99, 100, 100, 100, 80, 81, 79]) or (0, 1)
    assert change == pytest.approx(-0.2)
    assert p_value < 0.01


def test_outages_and_doubt_are_told(tmp_path: Path) -> None:
    folder = build(tmp_path / "run")
    path = folder / "targets/pg18/phases/001-one-table-single/drive.json"
    drive = json.loads(path.read_text())
    outage = {"start_ns": drive["measure_ns"], "end_ns": drive["measure_ns"] + 3 * NS, "clients": 8}
    write(path, drive | {"outages": [outage], "in_doubt": 2})
    summary = summarise(folder)
    assert {"Outage", "InDoubt"} <= kinds(summary)
    assert "3.0 s" in next(w["message"] for w in summary["warnings"] if w["kind"] == "Outage")


def test_a_foreign_torn_drive_json_is_refused_with_a_hint(tmp_path: Path) -> None:
    folder = build(tmp_path / "run")
    (folder / "targets/pg18/phases/001-one-table-single/drive.json").write_text("{")
    with pytest.raises(LoadstoneError):
        summarise(folder)
