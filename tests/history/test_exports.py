"""A history for other tools: Otava's CSV and configuration, Bencher's metric format; and the page."""

from __future__ import annotations

import csv
import json
import re
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml
from support.histories import add, history, line, run_of
from support.report_pages import HOSTILE, Page, without_scripts

from loadstone.history import file
from loadstone.history.bencher import bencher
from loadstone.history.documents import MetricLine, PhaseLine
from loadstone.history.otava import otava
from loadstone.history.series import blocks_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def metric(name: str, value: float, **more: Any) -> MetricLine:
    whole: dict[str, Any] = {"unit": "tps", "better": "higher", "n": 1, "values": [value]}
    return MetricLine(name=name, value=value, **whole | more)


def phase(*metrics: MetricLine, **more: Any) -> PhaseLine:
    return PhaseLine(**{"scenario": "iot-feed", "id": "insert", "title": "Insert", "metrics": metrics} | more)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a history of three days; the newest is not the last that was added."""
    home = tmp_path_factory.mktemp("history")
    found = home / "history.jsonl"
    for day, speed, commit in ((20, 1.0, "aaa"), (22, 0.8, "ccc"), (21, 1.02, 'b,"b')):
        assert add(found, run_of(home / str(day), day, speed), "--commit", commit).exit_code == 0
    return found


def imported(config: Any, folder: Path) -> dict[str, list[tuple[int, list[str], list[float]]]]:
    """Read what was written as Otava's documentation says that it does: by the columns that are named."""
    found = {}
    for name, test in config["tests"].items():
        assert test["type"] == "csv"
        options = test["csv_options"]
        with (folder / test["file"]).open(newline="") as text:
            rows = csv.reader(text, delimiter=options["delimiter"], quotechar=options["quote_char"])
            head = next(rows)
            columns = [head.index(one["column"]) for one in test["metrics"].values()]
            found[name] = [
                (
                    int(datetime.fromisoformat(row[head.index(test["time_column"])]).timestamp()),
                    [row[head.index(attribute)] for attribute in test["attributes"]],
                    [float(row[column]) for column in columns],
                )
                for row in rows
            ]
    return found


def test_otava_gets_rows_in_the_order_of_time(path: Path, tmp_path: Path) -> None:
    result = history("export", "--history", path, "--format", "otava", "--out", tmp_path / "otava")
    assert result.exit_code == 0, result.output
    config = yaml.safe_load((tmp_path / "otava" / "otava.yaml").read_text())
    (name, rows), *others = imported(config, tmp_path / "otava").items()
    assert others == []
    assert name.startswith("iot-feed.insert.pg18.")
    times = [time for time, _, _ in rows]
    assert times == sorted(times)
    assert [attributes[0] for _, attributes, _ in rows] == ["aaa", 'b,"b', "ccc"]
    metrics = config["tests"][name]["metrics"]
    assert next(iter(metrics)) == "rate"
    assert {one: metrics[one]["direction"] for one in ("rate", "p50")} == {"rate": 1, "p50": -1}
    rates = [values[0] for _, _, values in rows]
    assert rates[2] == pytest.approx(0.8 * rates[0], rel=0.02)
    assert rates == [one.phases[0].metrics[0].value for one in file.read(path)[0]]


def test_otava_gets_no_empty_cell(tmp_path: Path) -> None:
    """It refuses one."""
    lines = [
        line("a", phases=[phase(metric("rate", 1.0))]),
        line("b", phases=[phase(metric("rate", 2.0), metric("p99", 5.0, unit="ms", better="lower"))]),
    ]
    for name, text in otava(blocks_of(lines)).items():
        (tmp_path / name).write_text(text)
    found = imported(yaml.safe_load((tmp_path / "otava.yaml").read_text()), tmp_path)
    assert sorted([values for _, _, values in rows] for rows in found.values()) == [[[1.0], [2.0]], [[5.0]]]


def test_other_plans_and_machines_are_other_series() -> None:
    lines = [line("a"), line("b"), line("c", phases=[phase(metric("rate", 1.0), plan="123")])]
    (block,) = blocks_of(lines)
    assert [len(series.points) for series in block.series] == [2, 1]
    assert [block.label(series) for series in block.series] == ["pg18, plan unknown", "pg18, plan 123"]
    other = msgspec.structs.replace(lines[0].machine, host="elsewhere")
    (block,) = blocks_of([line("a"), line("b", machine=other)])
    assert [block.label(series) for series in block.series] == ["pg18"]


def names_of(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z0-9_=.+-]+", text))


def test_otava_files_have_plain_names_that_do_not_collide() -> None:
    lines = [
        line("a", phases=[phase(metric("rate", 1.0), variant={"x": value}) for value in ("a/b", "a b", "a")])
    ]
    many = [metric(f"{'m' * 200}{at}", 1.0) for at in (1, 2)]
    lines += [line("b", phases=[phase(metric("rate", 1.0), many[0])])]
    lines += [line("c", phases=[phase(metric("rate", 1.0), many[1])])]
    names = list(otava(blocks_of(lines)))
    assert len(names) == 3 + 3 + 1
    assert all(names_of(name) == {name} for name in names)


def test_bencher_gets_the_newest_run_or_the_one_that_is_named(path: Path, tmp_path: Path) -> None:
    printed = history("export", "--history", path, "--format", "bencher")
    newest = json.loads(printed.stdout)
    assert set(newest) == {"iot-feed/insert/pg18"}
    measures = newest["iot-feed/insert/pg18"]
    rate = measures["rate, tps"]
    assert rate["lower_value"] < rate["value"] < rate["upper_value"]
    assert "p99, ms" in measures
    for measure in measures.values():
        assert {"value"} <= set(measure) <= {"value", "lower_value", "upper_value"}
        assert all(isinstance(value, float) for value in measure.values())
    out = tmp_path / "bencher.json"
    run = "20261120T101500Z-iot-feed"
    assert (
        history("export", "--history", path, "--format", "bencher", "--run", run, "--out", out).exit_code == 0
    )
    named = json.loads(out.read_text())["iot-feed/insert/pg18"]["rate, tps"]
    assert rate["value"] == pytest.approx(0.8 * named["value"], rel=0.02)
    refused = history("export", "--history", path, "--format", "bencher", "--run", "none")
    assert refused.exit_code == 1
    assert "20261122T101500Z-iot-feed" in refused.stderr


def test_bencher_names_are_as_long_as_it_takes() -> None:
    long = "q" * 80
    metrics = [metric(f"{long}{at}", 1.0) for at in (1, 2)]
    ((benchmark, measures),) = bencher([line(phases=[phase(*metrics, variant={"x": "v" * 1100})])]).items()
    assert len(benchmark) == 1024
    assert [len(name) for name in measures] == [64, 64]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--format", "otava"),
        ("--format", "otava", "--out", "x", "--run", "a"),
        ("--format", "bencher", "--out", "."),
        ("--format", "bencher", "--out", "nowhere/b.json"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    arguments: Sequence[str], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert history("export", "--history", path, *arguments).exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_whole(path: Path, tmp_path: Path) -> None:
    hostile = line(
        "h", time="2026-11-23T00:00:00Z", commit=HOSTILE, phases=[phase(metric("rate", 9.0), title=HOSTILE)]
    )
    mixed = tmp_path / "history.jsonl"
    mixed.write_bytes(path.read_bytes() + msgspec.json.encode(hostile) + b"\nbroken\n")
    out = tmp_path / "history.html"
    result = history("page", "--history", mixed, "--out", out)
    assert result.exit_code == 0, result.output
    assert "line 5" in result.stderr
    html = out.read_text(encoding="utf-8")
    page = Page(html)
    assert (page.faults, page.open) == ([], [])
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert not page.all("img") + page.all("link") + page.all("iframe")
    assert "url(http" not in without_scripts(html)
    assert "<img src=x" not in html
    assert html.count("<figure") == 1
    assert "<svg" in html
    assert "History of 4 runs" in html
    assert "line 5" in "".join(page.text)
    for commit in ("aaa", "ccc"):
        assert commit in page.text
