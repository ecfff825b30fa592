"""Engines beside each other in report and terminal: what is not alike must not look alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from support.flights_folders import Flights, flights
from support.report_pages import Page, printed, section, words
from support.summaries import part, summarise, typed
from support.table_load_folders import _rewrite

from loadstone.report import formats
from loadstone.report.charts.choice import Series, distribution
from loadstone.report.charts.drawings import draw
from loadstone.report.charts.machine import resources
from loadstone.report.chunks import chunks
from loadstone.report.concurrency import concurrency_block, verdict_words
from loadstone.report.overlay import blocks
from loadstone.report.published import Bar, notes_of, systems
from loadstone.report.storage import blocks as storage
from loadstone.report.view import sentence
from loadstone.results.documents.phase import Published
from loadstone.results.documents.summary import CellRate, Concurrency, CurvePoint, WidthVerdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """PostgreSQL with emptied caches, DuckDB with full ones."""
    folder = flights(tmp_path_factory.mktemp("engines") / "run")
    for path in folder.glob("targets/duckdb/phases/*queries*/drive.json"):
        _rewrite(path, _kept_its_caches)
    return summarise(folder)


def _kept_its_caches(drive: dict[str, Any]) -> dict[str, Any]:
    return {
        **drive,
        "plain_queries": {**drive["plain_queries"], "caches": {"emptied": False, "note": "not ours"}},
    }


@pytest.fixture(scope="module")
def html(summary: dict[str, Any]) -> str:
    return section(summary)


def table(html: str, caption: str) -> str:
    found: list[str] = re.findall(r"<table.*?</table>", html, re.DOTALL)
    return next(text for text in found if caption in text)


def row(html: str, *starts: str) -> str:
    """Return the words of the first row that begins with one of these."""
    rows = [words(Page(text)) for text in re.findall(r"<tr.*?</tr>", html, re.DOTALL)]
    return next(text for text in rows if text.startswith(starts))


def test_a_first_run_with_full_caches_is_not_shown_as_cold(summary: dict[str, Any], html: str) -> None:
    asked = table(html, "Time of a query in ms")
    assert row(asked, "PostgreSQL 18.6 1,200").split()[:5] == ["PostgreSQL", "18.6", "1,200", "400", "first"]
    assert row(asked, "DuckDB").startswith("DuckDB 2.0.0 in process first run, not cold 60.0")
    scans = table(html, "Scan rate")
    assert row(scans, "Sql1 DuckDB").endswith("– –"), "no disk rate"
    assert "cold: first run, not cold" in printed(summary)
    assert printed(summary).count("not cold") == len(summary["plain_queries"][0]["queries"])
    drawn = re.findall(r"<figure.*?<figcaption>Sql\d</figcaption>.*?</figure>", html, re.DOTALL)
    assert len(drawn) == len(summary["plain_queries"][0]["queries"])
    assert all('<span class="faint"' in figure for figure in drawn)


def test_bars_of_runs_that_were_not_cold_are_faint_and_the_others_are_not() -> None:
    bars = [
        Bar("A", "cold", 9.0, "9"),
        Bar("B", "cold", 5.0, "5", unlike="first run, not cold"),
        Bar("C", "cold", 7.0, "7", published=True),
        Bar("A", "warm", 3.0, "3"),
    ]
    chart = systems(("a", "Sql1"), "ms", bars)
    assert chart
    assert chart.data["points"][0].columns["faint"] == [False, True, False, False]
    assert chart.description.endswith("A cold 9; B first run, not cold 5; C cold, published 7; A warm 3.")
    assert [(name, how) for name, _, how in chart.broken] == [
        ("first run, not cold", "faint"),
        ("published", "dashed"),
    ]
    outline = re.search(r"<path[^>]*stroke-dasharray[^>]*>", draw([chart]).pictures[chart.id])
    assert outline
    assert "var(--series-3)" in outline[0], "dashed bars tell cold from warm by the colour, as the others do"


def test_cold_runs_have_their_ratio_with_its_interval(tmp_path: Path) -> None:
    found = summarise(flights(tmp_path / "run", Flights(load=False)))
    asked = table(section(found), "Time of a query in ms")
    assert "cold vs first" in asked
    cold = row(asked, "DuckDB 2.0.0 in process 60.0").split()
    assert cold[5] == "1/20.0×"
    assert cold[6].startswith("1/2"), "its interval"


def test_imports_have_ratios_and_single_runs_have_no_false_digits(summary: dict[str, Any], html: str) -> None:
    imports = table(html, "Imports of 10 M rows each")
    assert row(imports, "DuckDB").split()[2:5] == ["1.25", "M", "1.00×"]
    assert row(imports, "PostgreSQL").split()[2:5] == ["1.25", "M", "first"]
    rate = {"value": 206_595.4, "low": None, "high": None, "n": 1, "reason": None, "spread": None}
    loads = [
        {**load, "rows_per_s": rate, "interval_words": "one run"} for load in summary["imports"][0]["loads"]
    ]
    single = {**summary, "imports": [{**summary["imports"][0], "loads": loads}]}
    shown = table(section({**single, "plain_queries": [], "concurrency": []}), "Imports of 10 M rows each")
    assert row(shown, "PostgreSQL").split()[2:7] == ["207,000", "first", "–", "one", "run"]
    sizes = table(html, "Size on disk")
    assert row(sizes, "DuckDB").split()[2:7] == ["10", "M", "477", "MiB", "0.125×"]
    assert row(sizes, "MapD").split()[3:5] == ["37", "GB"], "in the unit in which it was published"


def test_notes_of_published_figures_stand_below_the_table(html: str) -> None:
    clients = table(html, "Queries per second and latency by number of clients")
    assert "GPU memory, GPU" not in clients
    assert row(clients, "50 clients").split()[:3] == ["50", "clients", "84.0"]
    published = [Published("tps", system="A", note="x"), Published("tps", system="B", note="x")]
    assert notes_of([*published, Published("tps", note="")]) == ["A, B: x"]


def test_notes_of_imports_name_the_import_and_say_nothing_twice(summary: dict[str, Any], html: str) -> None:
    notes = [f["note"] for load in summary["imports"][0]["loads"] for f in load["published"] if f["note"]]
    assert notes
    (below,) = re.findall(
        r"About the published figures: (.*?)</p>", html.split("Imports of 10 M rows each", 1)[0]
    )
    for load in summary["imports"][0]["loads"]:
        for figure in load["published"]:
            assert not figure["note"] or f"{load['title']}" in below
    assert not re.search(rf"size, [^;]*: {re.escape(notes[0])}", below)


def entry(*points: dict[str, Any]) -> Concurrency:
    return part(Concurrency, {"targets": [{"target": "duckdb", "points": list(points)}]})


def test_an_engine_in_our_process_is_what_both_take() -> None:
    made = entry({"clients": 1, "cpu_client": 0.65, "client_rss_bytes": 2**30, "p50_ns": 5})
    block = concurrency_block("clients-0", made, {"duckdb": "DuckDB"}, {"duckdb"})
    (shown,) = [point.figures for point in block.targets[0].points]
    assert (shown.cpu_server, shown.server_rss_bytes, shown.cpu_client) == (0.65, 2**30, None)
    assert block.together == ["DuckDB"]
    assert block.percentiles == [50], "no columns of dashes"
    apart = concurrency_block("clients-0", made, {}, set())
    assert apart.together == []
    assert apart.targets[0].points[0].figures.cpu_client == 0.65


def test_pictures_name_an_engine_in_our_process_as_both(summary: dict[str, Any]) -> None:
    found = typed(summary)
    (block, *_) = blocks(found, {"pg18": "PostgreSQL", "duckdb": "DuckDB"})
    cpu = next(chart for chart in block.charts if chart.id.endswith("-cpu"))
    assert "DuckDB and Loadstone together: mean" in cpu.description
    assert "PostgreSQL: mean" in cpu.description
    ours = next(target for target in found.targets if target.id == "duckdb")
    panels = {chart.id.rpartition("-")[2]: chart for chart in resources("r", ours, [], (0.0, 100.0))}
    assert "engine and Loadstone together" in panels["cpu"].description
    assert "engine and Loadstone together" in panels["memory"].description


def test_a_share_of_the_machine_is_at_most_the_whole() -> None:
    made = entry({"clients": 50, "cpu_server": 1.02}, {"clients": 1, "cpu_server": 0.4})
    block = concurrency_block("clients-0", made, {}, set())
    assert [shown.figures.cpu_server for shown in block.targets[0].points] == [1.0, 0.4]


def verdict(**more: Any) -> str:
    widths = {"from_clients": 1, "to_clients": 50, "qps_ratio": 1.05, "latency_ratio": 40.0}
    return verdict_words("X", part(WidthVerdict, {**widths, **more}))


def test_the_reason_why_more_clients_bring_nothing_is_named() -> None:
    full = verdict(fills_machine=True, cpu_alone=1.01)
    assert full.startswith("X does not scale: one query already fills the machine (100 % of its CPU); from 1")
    assert "serialises" not in full
    room = verdict(serialises=True, cpu_alone=0.3)
    assert room.endswith("Queries wait for each other although the machine is not fully used.")
    assert verdict(serialises=True).endswith("Queries wait for each other.")
    assert verdict() == "X: from 1 to 50 clients, 1.05× the queries a second, 40.0× the latency."
    assert verdict_words("X", None) == ""


def test_clients_that_were_busy_between_answers_are_marked(summary: dict[str, Any]) -> None:
    (found,) = summary["concurrency"]
    targets = [{**found["targets"][0], "points": [{**found["targets"][0]["points"][0]}]}]
    marked = {**summary, "concurrency": [{**found, "targets": targets}]}
    for busy in (True, False):
        targets[0]["points"][0]["client_busy_between"] = busy
        shown = section({**marked, "plain_queries": [], "imports": [], "costs": []})
        assert ("client busy" in shown) == busy
        assert ("the engine can answer more" in shown) == busy


def test_a_distribution_of_one_or_two_percentiles_is_not_drawn() -> None:
    curve = [CurvePoint(beyond=beyond, value_ns=10**7) for beyond in (0.5, 0.1, 0.05)]
    short = Series("few", curve=curve[:2])
    assert distribution("s", [short]) is None
    chart = distribution("s", [short, Series("enough", curve=curve)])
    assert chart
    assert "few" not in chart.description


@pytest.mark.parametrize("farthest", [0.3, 0.2, 0.1, 0.001])
def test_a_distribution_of_few_samples_has_percentiles_on_its_axis(farthest: float) -> None:
    curve = [
        CurvePoint(beyond=beyond, value_ns=1e6 / beyond) for beyond in (0.5, (0.5 + farthest) / 2, farthest)
    ]
    chart = distribution("s", [Series("few", curve=curve)])
    assert chart is not None
    named = chart.spec["encoding"]["x"]["axis"]["values"]
    assert len([beyond for beyond in named if farthest <= beyond <= 0.5]) >= 2


def test_notes_of_storage_say_whose_they_are(summary: dict[str, Any]) -> None:
    found = typed(summary)
    for phase in found.phases:
        if phase.storage:
            phase.storage.notes = ["shared", phase.target]
    (block, *_) = storage(chunks(found))
    assert block.notes == [
        "DuckDB 2.0.0: duckdb",
        "PostgreSQL 18.6, DuckDB 2.0.0: shared",
        "PostgreSQL 18.6: pg18",
    ]


def test_the_sentence_lists_targets_and_clients(summary: dict[str, Any]) -> None:
    assert " on PostgreSQL 18.6 and DuckDB 2.0.0 with 1, 2, 10, 20 and 50 clients" in sentence(typed(summary))


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        (formats.stated, CellRate(value=206_595.4, low=None, high=None), "207,000"),
        (formats.stated, CellRate(value=206_595.4, low=206_000.0, high=None), "206,595"),
        (formats.stated, CellRate(value=1.2345, low=None, high=None), "1.23"),
        (formats.stated, None, "–"),
        (formats.decimal_size, 37_000_000_000, "37 GB"),
        (formats.decimal_size, 6_400_000_000, "6.4 GB"),
        (formats.decimal_size, 999, "999 B"),
        (formats.decimal_size, None, "–"),
        (formats.change, 15.17, "15.2×"),
        (formats.change, 1.5, "+50 %"),
        (formats.listed, [], ""),
        (formats.listed, ["a"], "a"),
        (formats.listed, ["a", "b"], "a and b"),
        (formats.listed, ["a", "b", "c"], "a, b and c"),
    ],
)
def test_figures_are_written_as_exactly_as_they_are_known(
    function: Callable[[Any], str], value: Any, expected: str
) -> None:
    assert function(value) == expected


def test_that_an_interval_is_the_range_of_few_runs_is_said_once(html: str) -> None:
    asked = table(html, "Time of a query in ms")
    assert "all of" not in asked
    assert "1,080 … 1,320" in asked
    assert "3 cold runs: with so few runs the interval is the whole range" in html
