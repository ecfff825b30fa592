"""report.html: what must be in it, what must never be, and how large it may get."""

from __future__ import annotations

import json
import re
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.report_pages import HOSTILE, Page, without_scripts
from support.run_folders import Phase, Run, Target, build, kill
from support.summaries import headline_json, render, summarise, summary_table

from loadstone.report import formats, write_report
from loadstone.report.charts.drawings import bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

SWEEP = tuple(Phase(variant={"index": index}, seconds=6) for index in ("none", "brin", "btree"))


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = build(tmp_path_factory.mktemp("report") / "run", Run(phases=SWEEP))
    return write_report(folder).read_text(encoding="utf-8")


def test_elements_are_closed_in_order_and_ids_are_unique(html: str) -> None:
    page = Page(html)
    assert page.faults == []
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_headings_go_down_one_level_at_a_time(html: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(html).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    page = Page(html)
    assert not page.all("link") + page.all("img") + page.all("iframe")
    assert all("src" not in script for script in page.all("script"))
    assert "@import" not in html
    assert "url(http" not in without_scripts(html)
    references = {
        value for _, a in page.elements for name, value in a.items() if name in {"href", "src", "action"}
    }
    assert all(reference and reference.startswith("#") for reference in references)
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy


def test_the_page_is_small_besides_its_data(html: str) -> None:
    data = sum(
        len(match) for match in re.findall(r'<script type="application/json".*?</script>', html, re.DOTALL)
    )
    assert len(html) - data < 1_900_000
    assert len(bundle()) < 1_000_000


def test_every_table_has_a_caption_and_scoped_headers(html: str) -> None:
    tables = re.findall(r"<table.*?</table>", without_scripts(html), re.DOTALL)
    assert len(tables) > 10
    for table in tables:
        assert "<caption" in table
        assert "<th>" not in table
        assert all("scope=" in header for header in re.findall(r"<th[^e].*?>", table))


def test_every_chart_says_in_words_what_it_shows_and_has_its_data_as_a_table(html: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert len(figures) > 10
    for figure in figures:
        label = re.search(r'role="img" aria-label="([^"]+)"', figure)
        assert label
        assert len(label[1]) > 30
        assert "<svg" in figure
        assert "<details>" in figure


def test_a_picture_is_there_without_javascript_and_takes_its_colours_from_the_page(html: str) -> None:
    drawings = re.findall(r"<svg.*?</svg>", without_scripts(html), re.DOTALL)
    assert len(drawings) > 10
    assert all("var(--" in drawing for drawing in drawings)
    assert not re.findall(r'(?:fill|stroke)="#(?!000\b)', "".join(drawings))


def test_main_figures_are_printed(html: str) -> None:
    text = " ".join("".join(Page(html).text).split())
    for words in (
        "3 measured phases on PostgreSQL 18.6 (embedded) with 8 clients",
        "index = btree",
        "Durable",
        "loadstone run iot-feed",
    ):
        assert words in text


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    run = Run(
        phases=(
            Phase(title=HOSTILE, sql=HOSTILE, error=HOSTILE, failed=3, seconds=4, variant={"index": HOSTILE}),
            Phase(seconds=4, variant={"index": "b"}),
        ),
        targets=(Target(label=HOSTILE, build=HOSTILE, url=HOSTILE),),
        hostname=HOSTILE,
        command=("loadstone", "run", HOSTILE),
        events=(
            {
                "t_ns": 1,
                "level": "warning",
                "kind": "warning",
                "target": None,
                "phase": None,
                "message": HOSTILE,
                "hint": HOSTILE,
            },
        ),
    )
    folder = build(tmp_path / "run", run)
    html = write_report(folder).read_text(encoding="utf-8")
    page = Page(html)
    assert page.faults == []
    assert not page.all("img")
    assert "alert(1)</script>" not in html
    assert "<!--<img" not in html
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL):
        json.loads(block)
    assert "</script><script>alert(1)" in "".join(page.text), "shown as it was written"


def test_a_killed_run_is_marked_incomplete(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=12),)))
    kill(folder, "001-one-table-single", keep_intervals=8)
    text = "".join(Page(write_report(folder).read_text(encoding="utf-8")).text)
    assert "Incomplete" in text
    assert "computed from their intervals" in text


@pytest.mark.parametrize(
    "phase",
    [
        Phase(samples_ns=(), seconds=3),
        Phase(samples_ns=(5,), seconds=1, warmup=0),
        Phase(seconds=4, rate=10.0, skipped=2),
    ],
)
def test_hardly_any_data_still_gives_a_page(tmp_path: Path, phase: Phase) -> None:
    page = Page(write_report(build(tmp_path / "run", Run(phases=(phase,)))).read_text(encoding="utf-8"))
    assert page.faults == []


def test_a_phase_of_a_second_has_no_course_over_time(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=1, warmup=0),)))
    html = write_report(folder).read_text(encoding="utf-8")
    assert "Too short for a chart over time" in html
    assert "Throughput over time" not in html
    assert "Latency distribution" in html


def test_only_a_page_with_a_published_figure_speaks_of_one(tmp_path: Path) -> None:
    published = {"metric": "tps", "value": 9000.0, "unit": "tps"}
    with_one = Run(phases=(Phase(published=(published,)),))
    assert "with the published figure" in render(summarise(build(tmp_path / "with", with_one)))
    html = render(summarise(build(tmp_path / "without", Run())))
    assert "with the published figure" not in html
    assert "Published: " not in html


def test_a_swept_switch_is_written_as_in_the_scenario(tmp_path: Path) -> None:
    phases = tuple(Phase(variant={"pipeline": on}) for on in (False, True))
    html = without_scripts(render(summarise(build(tmp_path / "run", Run(phases=phases)))))
    assert "vs false" in html
    assert "True</th>" not in html


def test_a_phase_in_two_parts_says_which_is_which(tmp_path: Path) -> None:
    phases = tuple(Phase(variant={"index": f"i{n}"}, seconds=4) for n in range(8))
    html = render(summarise(build(tmp_path / "run", Run(phases=phases))))
    assert re.findall(r"<h3[^>]*>(One table, single row \([^<]*)</h3>", html) == [
        "One table, single row (1 of 2)",
        "One table, single row (2 of 2)",
    ]


def test_a_rate_without_an_interval_has_as_many_digits_in_every_table(tmp_path: Path) -> None:
    phases = tuple(Phase(variant={"index": name}, tps=12345.6, seconds=2) for name in ("none", "brin"))
    summary = summarise(build(tmp_path / "run", Run(phases=phases)))
    compared = (
        without_scripts(render(summary)).split('aria-labelledby="comparison"')[1].split("</section>")[0]
    )
    shown = set(re.findall(r"\b1\d,\d{3}\b", compared))
    assert shown
    assert all(figure.endswith("00") for figure in shown), shown


def test_a_run_without_phases_gives_a_page(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(),), unreached=1, state="interrupted"))
    text = "".join(Page(write_report(folder).read_text(encoding="utf-8")).text)
    assert "No phase was measured" in text


def test_a_folder_written_before_the_warm_up_was_carried_over_gives_a_page(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=3),)))
    (path,) = folder.glob("targets/*/phases/*/drive.json")
    drive = json.loads(path.read_text())
    for name in ("counts", "warmup_counts"):
        del drive[name]["carried"]
    path.write_text(json.dumps(drive))
    assert "Verified: scheduled" in write_report(folder).read_text(encoding="utf-8")


def test_same_folder_same_page(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=SWEEP[:2]))
    first = write_report(folder).read_bytes()
    assert b"-clip1" in first, "the library counts clips on from page to page"
    assert write_report(folder).read_bytes() == first


def test_ten_hours_make_no_heavy_page(tmp_path: Path) -> None:
    folder = build(
        tmp_path / "run",
        Run(phases=(Phase(seconds=1500, samples_ns=tuple(range(10**6, 2 * 10**6, 25_000)), warmup=0),)),
    )
    assert write_report(folder).stat().st_size < 2_000_000


def test_two_targets_stand_side_by_side(tmp_path: Path) -> None:
    targets = (Target(), Target(id="pg14", label="PostgreSQL 14.20 (embedded)", speed=0.8))
    summary = summarise(build(tmp_path / "run", Run(phases=SWEEP[:2], targets=targets)))
    html = render(summary)
    assert "PostgreSQL 14.20" in html
    assert "vs first" in html
    screen = StringIO()
    Console(width=160, file=screen).print(summary_table(summary))
    printed = screen.getvalue()
    assert "PostgreSQL 14.20" in printed
    assert "± " in printed


def test_machines_get_the_same_figures(tmp_path: Path) -> None:
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(samples_ns=(2_000_000,) * 100),))))
    document = json.loads(json.dumps(headline_json(summary)))
    (result,) = document["results"]
    assert result["tps"]["value"] == 100
    assert result["latency_ms"]["p99"] == pytest.approx(2.0, rel=1e-3)
    assert document["state"] == "complete"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (273_259, "273,259"),
        (3_137_000, "3.14 M"),
        (12.34, "12.3"),
        (0, "0"),
        (None, "–"),
        (999_999, "999,999"),
    ],
)
def test_rates_are_written_for_people(value: float | None, expected: str) -> None:
    assert formats.rate(value) == expected


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        (formats.milliseconds, 205_000, "0.205"),
        (formats.milliseconds, 27_700_000, "27.7"),
        (formats.size, 65_536, "64.0 KiB"),
        (formats.size, 0, "0 B"),
        (formats.size, -2048, "−2.00 KiB"),
        (formats.size, 0.314, "0.314 B"),
        (formats.change, 0.82, "−18 %"),
        (formats.times, 0.0169, "0.0169×"),
        (formats.versus, 0.445, "0.445"),
        (formats.versus, 2.591, "2.59"),
        (formats.versus, 0.000815, "1/1,227"),
        (formats.duration, 250, "4 min 10 s"),
        (formats.duration, 36_000, "10 h"),
        (formats.percent, 0.021, "2.1 %"),
        (formats.moment, "2026-11-20T10:15:00.123Z", "20 Nov 2026, 10:15 UTC"),
        (formats.moment, "yesterday", "yesterday"),
        (formats.rows, 950, "950"),
        (formats.rows, 2_200_000, "2.2 M"),
        (formats.rows, 1_350_000_000, "1.35 billion"),
        (formats.about_rows, 225_149, "225,000"),
        (formats.thousandths, 0.0131, "13.1"),
        (formats.variant, {"pipeline": True, "work_mem": "", "clients": 8}, "pipeline = true, clients = 8"),
    ],
)
def test_figures_have_three_digits_and_a_unit(
    function: Callable[[Any], str], value: Any, expected: str
) -> None:
    assert function(value) == expected


@given(st.floats(1e-9, 1e15))
def test_digits_lose_no_more_than_they_say(value: float) -> None:
    assert float(formats.digits(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


def test_write_report_returns_the_path(tmp_path: Path) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=3),)))
    assert write_report(folder) == folder / "report.html"


@pytest.mark.parametrize("change", [{"grids": "none"}, {"format": 0}, {"phases": [{}]}])
def test_a_summary_that_was_changed_is_computed_again(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = build(tmp_path / "run", Run(phases=(Phase(seconds=3, warmup=0),)))
    whole = summarise(folder)
    (folder / "summary.json").write_text(json.dumps({**whole, **change}))
    write_report(folder)
    assert json.loads((folder / "summary.json").read_text()) == whole
