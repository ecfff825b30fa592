"""The rule that figures are read from types, and the page that is made from them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.described import undescribed

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_documents  # noqa: E402
import document_types  # noqa: E402


@pytest.mark.parametrize(
    "source",
    [
        'phase["drive"]',
        'phase["drive"]["tps"]',
        'phase.get("drive")',
        '(phase or {}).get("drive", None)',
        "f\"{run['id']}\"",
        'phase["drive"] = None',
    ],
)
def test_string_subscripts_are_found(source: str) -> None:
    assert list(check_documents.subscripts(source))


@pytest.mark.parametrize(
    "source",
    [
        "phase.drive",
        "counters[name]",
        "points[0]",
        "counters.get(name)",
        'counters["wal_bytes"]  # no document: counters by name',
        'x: Sequence["Phase"]',
        '{"rows": 1}',
    ],
)
def test_others_are_not(source: str) -> None:
    assert not list(check_documents.subscripts(source))


def tree(root: Path, source: str) -> Path:
    (root / "python/loadstone/summary").mkdir(parents=True)
    (root / "python/loadstone/summary/new.py").write_text(source)
    return root


def test_a_module_is_refused_with_its_line(tmp_path: Path) -> None:
    (found,) = check_documents.findings(tree(tmp_path, 'a = 1\nb = phase["drive"]\n'))
    assert found.startswith("summary/new.py:2: ")


@pytest.mark.slow
def test_the_tree_keeps_the_rule() -> None:
    assert list(check_documents.findings(ROOT)) == []


def test_the_page_is_as_the_types_have_it() -> None:
    text = document_types.PAGE.read_text(encoding="utf-8")
    assert document_types.page(text) == text


def test_a_page_that_was_changed_by_hand_is_made_anew() -> None:
    text = document_types.PAGE.read_text(encoding="utf-8")
    assert document_types.page(text.replace("| `t_ns` |", "| `t_ms` |")) == text
    assert document_types.page("By hand.\n").startswith("By hand.\n")


def test_keys_have_their_types_units_and_meanings() -> None:
    lines = set("".join(document_types.generated()).splitlines())
    assert "| `relative_se` | optional, number or null | 0..1 | standard error over the value |" in lines
    assert "| `start_ns` | integer | ns |  |" in lines
    assert "| `lambda` | *FittedRange* | 1/s | throughput of one client |" in lines
    assert "| `level` | optional, `info`, `warning`, `error` |  |  |" in lines


def test_keys_and_values_that_the_page_does_not_describe_are_found(tmp_path: Path) -> None:
    lines = [
        {"time_us": 1, "sent_ns": 2},
        {"time_us": 1, "sent_ns": "2"},
        {"time_us": 1, "sent_ns": 2, "x": 0},
    ]
    (tmp_path / "sent.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words = ["sent.jsonl.x is not described", "sent.jsonl: Expected `int`, got `str` - at `$.sent_ns`"]
    assert undescribed(tmp_path) == words


def test_keys_that_are_not_read_are_checked_as_well(tmp_path: Path) -> None:
    storage = {"results": {"disk": "vda", "path": 1}}
    (tmp_path / "environment.json").write_text(json.dumps({"storage": storage}))
    assert any("$.path" in words for words in undescribed(tmp_path))
