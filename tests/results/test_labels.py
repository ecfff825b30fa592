import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from support.run_folders import Phase, Run, Target, build
from support.summaries import render, summarise, summary_table

from loadstone.model import TargetName
from loadstone.report.formats import fitted
from loadstone.report.published import COLOURS, Bar, systems
from loadstone.results.labels import distinct_labels, name_document, name_of_document
from loadstone.target import parse_targets

TITLE = "PostgreSQL 18.6"
WORDS = st.sampled_from(["", "a", " a", "a (b)", "b", "5432", "a, b", "a #1", TITLE])
NAMES = st.builds(TargetName, *[WORDS] * 8) | st.builds(TargetName, *[st.text(max_size=5)] * 8)


def labels_of(*texts: str) -> list[str]:
    return distinct_labels([target.name(TITLE) for target in parse_targets(texts)])


@given(st.lists(NAMES, max_size=12))
def test_no_two_labels_are_alike_whatever_the_targets(names: list[TargetName]) -> None:
    labels = distinct_labels(names)
    assert len(labels) == len(names)
    # A page shows any white space as one blank.
    assert len({" ".join(label.split()) for label in labels}) == len(names)
    assert all(labels)
    assert distinct_labels([name_of_document({"name": name_document(name)}) for name in names]) == labels


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["postgres://u@db:5433/x"], [""]),
        (["postgres://u@db:5432/x", "postgres://u@db:5433/x"], [" (port 5432)", " (port 5433)"]),
        (["postgres://u@a:5432/x", "postgres://u@b:5433/x"], [" (a)", " (b)"]),
        (["postgres://u@db/x", "postgres://u@db/y"], [" (database x)", " (database y)"]),
        (["postgres://u@db/x", "postgres://v@db/x"], [" (user u)", " (user v)"]),
        (
            ["host=/s1 user=u dbname=x", "host=/s2 user=u dbname=x"],
            [" (/s1)", " (/s2)"],
        ),
        (
            ["postgres://u@a:1/x", "postgres://u@a:2/x", "postgres://u@b:1/x", "postgres://u@b:2/x"],
            [" (a:1)", " (a:2)", " (b:1)", " (b:2)"],
        ),
        (
            ["postgres://u@db/x?options=-c%20jit%3Don", "postgres://u@db/x?options=-c%20jit%3Doff"],
            [" (options -c jit=on)", " (options -c jit=off)"],
        ),
        (["pg", "pg:/opt/b/bin"], [" (pg18)", " (pg:/opt/b/bin)"]),
        (["pg", "postgres://u@db/x"], [" (pg18)", " (db)"]),
        (["pg", "pg?setting.jit=off"], [" (pg18)", " (jit=off)"]),
        (["pg", "pg"], [" #1", " #2"]),
    ],
)
def test_labels_add_the_fewest_parts_that_tell_targets_apart(texts: list[str], expected: list[str]) -> None:
    assert labels_of(*texts) == [TITLE + more for more in expected]


def test_targets_of_other_versions_need_nothing_more() -> None:
    names = [TargetName(TITLE, "db", "5432"), TargetName(TITLE, "db", "5433"), TargetName("DuckDB 1.4", "")]
    assert distinct_labels(names)[2] == "DuckDB 1.4"


def test_a_label_of_an_older_run_folder_begins_with_the_engine() -> None:
    old = [
        {"id": "a", "label": f"{TITLE} at db, database x"},
        {"id": "b", "label": f"{TITLE} at db, database x"},
        {"id": "c", "label": f"{TITLE} (embedded)"},
    ]
    labels = distinct_labels([name_of_document(target) for target in old])
    assert labels == [
        f"{TITLE} (db, database x) #1",
        f"{TITLE} (db, database x) #2",
        f"{TITLE} (embedded)",
    ]


@pytest.mark.slow  # starts programs
def test_reports_tell_servers_that_differ_by_port_apart(tmp_path: Path) -> None:
    targets = tuple(
        Target(
            id=f"db-{port}-x",
            label=f"{TITLE} at db:{port}, database x",
            url=f"postgres://u@db:{port}/x",
            speed=speed,
            name={"title": TITLE, "host": "db", "port": port, "database": "x", "user": "u"},
        )
        for port, speed in (("5432", 1.0), ("5433", 0.5))
    )
    summary = summarise(build(tmp_path / "run", Run(phases=(Phase(),), targets=targets)))
    screen = StringIO()
    Console(width=160, file=screen).print(summary_table(summary))
    page = render(summary)
    for port in ("5432", "5433"):
        assert f"{TITLE} (port {port})" in screen.getvalue()
        assert f'<td class="nowrap">{TITLE} (port {port})</td>' in page
    sentence = re.search(r"measured phases? on ([^<]*?) with", page)
    assert sentence is not None
    assert sentence.group(1) == f"{TITLE} (port 5432) and {TITLE} (port 5433)"


@given(st.lists(st.text(max_size=30), max_size=8), st.integers(2, 20))
def test_labels_that_are_cut_for_a_chart_stay_different(labels: list[str], letters: int) -> None:
    cut = fitted(labels, letters)
    assert [cut.index(text) for text in cut] == [labels.index(text) for text in labels]
    assert all(len(text) <= len(label) for text, label in zip(cut, labels, strict=True))


def test_a_cut_label_keeps_both_its_ends() -> None:
    labels = [f"bigint · {TITLE} (port {port})" for port in (5432, 5433)]
    assert fitted(labels, 21) == ["bigint · P…port 5432)", "bigint · P…port 5433)"]


def test_bars_of_servers_that_differ_by_port_are_not_drawn_over_each_other() -> None:
    labels = [f"{TITLE} (port {port})" for port in (5432, 5433)]
    chart = systems(("b", "Rate"), "rows/s", [Bar(label, next(iter(COLOURS)), 1.0, "1") for label in labels])
    assert chart is not None
    drawn = chart.data["points"][0].columns["label"]
    assert len(set(drawn)) == len(labels)
    assert all(text.endswith(label[-6:]) for text, label in zip(drawn, labels, strict=True))
