"""Phases that load and query time series: planned from a scenario, summarised, shown."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import run_folders
from support.summaries import part, plain, summarise
from support.workloads import query_mix, time_series_load

from loadstone.errors import LoadstoneError
from loadstone.model import Pace
from loadstone.plan.model import PlannedPhase
from loadstone.plan.plan import PlanTarget, estimated_seconds, make_plan, plan_from_json, plan_to_json
from loadstone.report import write_report
from loadstone.results.documents import Probed, Sent
from loadstone.run import Request, plan_of
from loadstone.scenario.scenario import find_scenario, load_scenario
from loadstone.scenario.timeseries import CAUTIOUS_ROWS_PER_S, seconds_of
from loadstone.summary.freshness import summarise_freshness
from loadstone.target import parse_targets

pytestmark = pytest.mark.slow

SCENARIO = """
id = "mine"
title = "Mine"
version = "1"
why = "To see."
parameters.scale = { type = "integer", default = 5, minimum = 1, help = "Devices" }
parameters.ahead = { type = "boolean", default = true, help = "Index on time" }

[[phase]]
id = "load"
kind = "load"
title = "Load"
method = "insert"
workers = "{{ scale }}"
tables.time_index = "{{ ahead }}"
data.use_case = "iot"
data.start = "2016-01-01T00:00:00Z"
data.span_s = "{{ scale * 60 }}"
data.scale = "{{ scale }}"

[[phase]]
id = "ask"
kind = "queries"
title = "Ask"
data.use_case = "iot"
data.start = "2016-01-01T00:00:00Z"
data.end = "2016-01-02T00:00:00Z"
queries.kinds = ["last-loc"]
queries.pace = "poisson"
queries.rate_per_s = 5
"""
NS = 10**9


def planned(folder: Path, text: str = SCENARIO, **overrides: str) -> list[PlannedPhase]:
    (folder / "scenario.toml").write_text(text)
    offers = frozenset({"load", "load:insert", "query", "time series"})
    target = PlanTarget("pg", "postgres", "postgres://x/y", offers)
    plan = make_plan([load_scenario(folder)], [target], "small", overrides)
    assert plan_from_json(plan_to_json(plan)) == plan
    return list(plan.targets[0].phases)


def test_a_load_and_a_query_are_planned(tmp_path: Path) -> None:
    first, second = planned(tmp_path, ahead="false")
    load, mix = time_series_load(first), query_mix(second)
    assert first.skip is None
    assert first.headline == "metrics_per_s"
    assert load.data.end == "2016-01-01T00:05:00Z"  # type: ignore[union-attr]
    assert (load.workers, load.method, load.tables.time_index) == (5, "insert", False)
    assert (mix.kinds, mix.pace) == (("last-loc",), Pace("poisson", 5.0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("data.span_s", "data.spam_s"), "spam_s"),
        (('data.span_s = "{{ scale * 60 }}"', ""), "phase[0].data"),
        (("queries.rate_per_s = 5", ""), "phase[1].queries.rate_per_s"),
        (('data.use_case = "iot"\ndata.start', 'data.use_case = "iott"\ndata.start'), "iott"),
        (('workers = "{{ scale }}"', "clients = 3"), 'Remove it, or set kind = "script"'),
        (('data.start = "2016-01-01T00:00:00Z"\ndata.span_s', 'data.start = "soon"\ndata.span_s'), "soon"),
        (('tables.time_index = "{{ ahead }}"', 'tables.time_index = "{{ scale }}"'), "time_index"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    change: tuple[str, str], words: str, tmp_path: Path
) -> None:
    assert change[0] in SCENARIO
    with pytest.raises(LoadstoneError) as caught:
        planned(tmp_path, SCENARIO.replace(*change))
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_a_target_that_offers_no_such_load_skips_it_in_words(tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    target = PlanTarget(
        "d", "duckdb", "duckdb:", frozenset({"load", "load:arrow", "time series"}), wire=False
    )
    load, ask = make_plan([load_scenario(tmp_path)], [target], "small").targets[0].phases
    assert load.skip == "duckdb does not support load insert"
    assert ask.skip == "duckdb does not support query"


@pytest.mark.parametrize(("name", "each"), [("tsbs-iot", 10), ("tsbs-devops", 101)])
def test_full_is_what_was_published(name: str, each: int) -> None:
    plan = make_plan([find_scenario(name)], [PlanTarget("pg", "postgres", "u")], "full")
    loads = [time_series_load(phase) for phase in plan.targets[0].phases if phase.id == "load"]
    spans = {"2023-08-11T00:00:00Z": 864_000, "2023-08-02T00:00:00Z": 86_400, "2023-08-01T03:00:00Z": 10_800}
    found = {(s.scale, spans[s.end] // 10 * s.scale * each) for load in loads for s in [_series(load.data)]}
    assert found == {(1000, 86_400_000 * each), (10_000, 86_400_000 * each), (100_000, 108_000_000 * each)}
    assert {(load.batch_rows, load.workers, load.tables.chunk_time_s) for load in loads} == {
        (1000, 150, 86400.0)
    }


def _series(data: Any) -> Any:
    assert not isinstance(data, str)
    return data


@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=60, unique=True),
    st.integers(0, 10**6),
    st.integers(1, 1000),
)
def test_freshness_is_what_a_slow_reader_sees(times: list[int], delay_ms: int, every_ms: int) -> None:
    """Rows sent at their own times and visible after a constant delay: known up to one round of the probe."""
    times.sort()
    sent = [{"time_us": t, "sent_ns": t * 1000} for t in times]
    delay_ns = delay_ms * 1000
    last = times[-1] * 1000 + delay_ns
    step = max(every_ms * 1000, last // 2000 + 1)
    probe = []
    for at in range(0, last + 2 * step, step):
        seen = [t for t in times if t * 1000 + delay_ns <= at]
        probe.append({"start_ns": at, "end_ns": at, "value": seen[-1] if seen else None})
    found = freshness(sent, probe)
    assert found is not None
    assert found["count"] == len(times)
    assert found["never_seen"] == 0
    assert delay_ns <= found["mean_ns"] <= delay_ns + step
    assert found["max_ns"] <= delay_ns + step


def freshness(sent: list[dict[str, Any]], probe: list[dict[str, Any]]) -> Any:
    return plain(summarise_freshness([part(Sent, one) for one in sent], [part(Probed, one) for one in probe]))


def test_rows_that_nobody_saw_are_counted() -> None:
    sent = [{"time_us": 1, "sent_ns": 10}, {"time_us": 2, "sent_ns": 20}]
    found = freshness(sent, [{"start_ns": 0, "end_ns": 15, "value": 1}])
    assert found is not None
    assert (found["count"], found["never_seen"], found["max_ns"]) == (1, 1, 5)
    assert freshness(sent, []) is None
    assert freshness([], [{"start_ns": 0, "end_ns": 1, "value": 1}]) is None


def test_a_load_with_queries_beside_it_is_reported(tmp_path: Path) -> None:
    folder = run_folders.build(tmp_path / "run", run_folders.Run())
    phase = min((folder / "targets").glob("*/phases/*"))
    _make_it_a_load(phase)
    summary = summarise(folder)
    found = next(p for p in summary["phases"] if p["folder"] == phase.name)
    drive = json.loads((phase / "drive.json").read_text())
    seconds = (drive["end_ns"] - drive["measure_ns"]) / NS
    assert found["drive"]["metrics_per_s"]["value"] == pytest.approx(5000 / seconds)
    assert found["load"]["starved"] == pytest.approx(0.5 / drive["clients"] / seconds)
    assert found["mixed"]["queries"][0]["label"] == "TimescaleDB last location per truck"
    assert found["freshness"]["max_ns"] == 7_000_000
    page = write_report(folder).read_text()
    for words in ("metrics/s", "Freshness", ">last location per truck<", "waited for rows"):
        assert words in page


def _make_it_a_load(phase: Path) -> None:
    drive = json.loads((phase / "drive.json").read_text())
    drive["load"] = {
        "rows": 1000, "metrics": 5000, "batches": 10, "tags_rows": 3,
        "tables": [{"name": "readings", "rows": 1000}], "source": {"wait_ns": NS // 2},
    }  # fmt: skip
    run_folders.write(phase / "drive.json", drive)
    document = json.loads((phase / "phase.json").read_text())
    run_folders.write(phase / "phase.json", document | {"kind": "load", "headline": "metrics_per_s"})
    beside = phase / "queries"
    beside.mkdir()
    label = {
        "label": "TimescaleDB last location per truck",
        "counts": drive["counts"],
        "service": drive["service"],
    }
    run_folders.write(beside / "drive.json", {**drive, "load": None, "queries": {"labels": [label]}})
    (beside / "series.jsonl").write_text((phase / "series.jsonl").read_text())
    (beside / "latency.hlog").write_text((phase / "latency.hlog").read_text())
    (phase / "sent.jsonl").write_text('{"time_us":5,"sent_ns":1000000,"acked_ns":1500000}\n')
    (phase / "probe").mkdir()
    (phase / "probe" / "probe.jsonl").write_text('{"start_ns":7000000,"end_ns":8000000,"value":5}\n')


def estimate(folder: Path, change: tuple[str, str] = ("", "")) -> float:
    text = SCENARIO.partition('[[phase]]\nid = "ask"')[0]
    assert change[0] in text
    (folder / "scenario.toml").write_text(text.replace(*change) if change[0] else text)
    plan = make_plan([load_scenario(folder)], [PlanTarget("pg", "postgres", "u")], "small")
    return estimated_seconds(plan)


def test_a_load_counts_in_the_estimate_by_its_rows(tmp_path: Path) -> None:
    rows = 30 * 5 * 2  # epochs, trucks, tables
    assert estimate(tmp_path) == pytest.approx(rows / CAUTIOUS_ROWS_PER_S)
    paced = 'method = "insert"\nbatch_rows = 10\npace = "fixed"\nrate_per_s = 2'
    assert estimate(tmp_path, ('method = "insert"', paced)) == pytest.approx(rows / 20)
    devops = ('data.use_case = "iot"', 'data.use_case = "devops"')
    assert estimate(tmp_path, devops) == pytest.approx(30 * 5 * 9 / CAUTIOUS_ROWS_PER_S)


def test_queries_count_in_the_estimate_by_their_rate(tmp_path: Path) -> None:
    load, ask = planned(tmp_path)
    mix, loaded = query_mix(ask), time_series_load(load)
    assert seconds_of(None, mix) == 100 / 5  # of one kind, at the default count
    assert seconds_of(loaded, mix) == seconds_of(loaded, None)
    assert seconds_of(None, None) == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('["last-loc"]', '["last-lok"]'), ("mine: phase 'ask'", "last-lok", "Did you mean 'last-loc'?")),
        (('["last-loc"]', '["lastpoint"]'), ("lastpoint", "they are for devops")),
        (('["last-loc"]', '["long-daily-sessions"]'), ("24 hours", "later end")),
        (('data.end = "2016-01-02', 'data.end = "2015-01-02'), ("not after its start", "later `end`")),
        (('use_case = "iot"\ndata.start = "2016-01-01T00:00:00Z"\ndata.end', ('use_case = "cpu-single"\n'
          'data.start = "2016-01-01T00:00:00Z"\ndata.end')), ("no queries for the use case", "iot")),
        (('start = "2016-01-01T00:00:00Z"\ndata.end', 'start = "soon"\ndata.end'), ("'soon' is not a time",)),
    ],
)  # fmt: skip
def test_queries_that_the_data_cannot_answer_are_refused_by_the_plan(
    change: tuple[str, str], words: tuple[str, ...], tmp_path: Path
) -> None:
    assert change[0] in SCENARIO
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace(*change))
    request = Request([load_scenario(tmp_path)], ["pg"])
    with pytest.raises(LoadstoneError) as caught:
        plan_of(request, parse_targets(request.targets))
    for text in words:
        assert text in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
@pytest.mark.parametrize("name", ["tsbs-iot", "tsbs-devops"])
def test_what_is_built_in_is_not_refused(name: str, size: str) -> None:
    request = Request([find_scenario(name)], ["pg"], size)
    assert plan_of(request, parse_targets(request.targets)).targets
