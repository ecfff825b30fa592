"""The chart library that a page carries is bundled once and kept; a damaged cache is bundled again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadstone.report.charts.library import library

if TYPE_CHECKING:
    from pathlib import Path


class Bundler:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        return "const a = 'ü';\nconst b = 2;\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "loadstone" / "charts"


def test_it_is_bundled_once(cache: Path) -> None:
    bundler = Bundler()
    assert library(bundler) == library(bundler) == bundler()
    assert bundler.asked == 2  # the second was ours
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"0" * 64 + b"\nconst a = 1;\n"])
def test_a_damaged_cache_is_bundled_again(cache: Path, damage: bytes) -> None:
    bundler = Bundler()
    library(bundler)
    (file,) = cache.iterdir()
    file.write_bytes(damage)
    assert library(bundler) == bundler()
    assert bundler.asked == 3
    assert library(bundler) == library(Bundler())


def test_no_cache_can_be_written(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder would be")
    bundler = Bundler()
    assert library(bundler) == library(bundler)
    assert bundler.asked == 2
