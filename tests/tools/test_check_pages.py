"""The rule that pages are found, and that the files exist that they name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_pages  # noqa: E402


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for path in ("python/loadstone/slo/search.py", "crates/drive/src/io/epoll.rs", "crates/lua/prelude/a.lua",
                 "docs/adr/0001-one.md", "docs/slo.md"):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    (tmp_path / "docs/README.md").write_text("[one](adr/0001-one.md) [slo](slo.md#limits)\n")
    (tmp_path / "ARCHITECTURE.md").write_text("| `slo/` | `search.py` decides, `io/epoll` waits |\n")
    return tmp_path


def found(tree: Path) -> list[str]:
    return list(check_pages.findings(tree))


def test_a_tree_that_keeps_the_rule(tree: Path) -> None:
    assert found(tree) == []
    assert list(check_pages.findings(ROOT)) == []


def test_a_page_that_nobody_finds(tree: Path) -> None:
    (tree / "docs/adr/0002-two.md").touch()
    assert found(tree) == ["docs/adr/0002-two.md: not in docs/README.md"]


def test_a_page_in_a_folder_that_nobody_finds(tree: Path) -> None:
    (tree / "docs/hosts").mkdir()
    (tree / "docs/hosts/ssh.md").touch()
    assert found(tree) == ["docs/hosts/ssh.md: not in docs/README.md"]


def test_a_link_that_leads_nowhere(tree: Path) -> None:
    (tree / "docs/slo.md").write_text("\n[there](adr/0003-three.md#why) [out](https://example.org/x.md)\n")
    assert found(tree) == ["docs/slo.md:2: there is no adr/0003-three.md"]


@pytest.mark.parametrize("path", ["slo/limits.py", "search.rs", "crates/wire/", "other/search.py"])
def test_a_path_that_is_not_there(tree: Path, path: str) -> None:
    (tree / "ARCHITECTURE.md").write_text(f"`{path}`\n")
    assert found(tree) == [f"ARCHITECTURE.md:1: there is no {path}"]


@pytest.mark.parametrize(
    "text",
    ["`slo/` and `search.py`", "`lua` with `prelude/`", "`slo/search.py` beside `search.py`", "`ENGINE.py`",
     "`drive.json`", "`Drive::new`", "`make check`"],
)  # fmt: skip
def test_paths_that_are_there_and_what_is_none(tree: Path, text: str) -> None:
    (tree / "ARCHITECTURE.md").write_text(f"{text}\n")
    assert found(tree) == []


def test_prose_is_wrapped(tree: Path) -> None:
    long = "a word " * 20
    page = f"# {long}\n{long}\n| {long} |\n```\n{long}\n```\n* [{long}](there.md)\n* x{'y' * 120}\n* {long}\n"
    assert list(check_pages.long_lines(page)) == [2, 9]
    (tree / "ARCHITECTURE.md").write_text(f"{long}\n")
    assert found(tree) == ["ARCHITECTURE.md:1: longer than 100 columns"]
