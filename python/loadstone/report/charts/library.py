"""The chart library as a script for the browser, bundled once per version and kept in the user's cache.

Bundling takes seconds of CPU time, and its result depends on nothing but versions. A cache that cannot be
read, written or trusted costs those seconds again and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
from importlib.metadata import version
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.host.cache import user_cache
from loadstone.report.charts.chart_process import BUNDLE_ENTRY, VEGA_LITE
from loadstone.results.json_files import write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PACKAGE = "vl-convert-python"


def library(bundle: Callable[[], str]) -> str:
    """Return the script; `bundle` makes it where the cache has none."""
    path = _cached_path()
    kept = _read(path)
    if kept is not None:
        return kept
    made = bundle()
    with contextlib.suppress(LoadstoneError, OSError):  # a full or read-only disk: bundled again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, f"{_digest(made)}\n{made}")
    return made


def _cached_path() -> Path:
    made_of = _digest(f"{version(PACKAGE)} {VEGA_LITE} {BUNDLE_ENTRY}")[:16]
    return user_cache() / "loadstone" / "charts" / f"library-{made_of}.js"


def _read(path: Path) -> str | None:
    """Return the script when it is whole: a torn or edited file is not used."""
    try:
        digest, _, script = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return script if script and digest == _digest(script) else None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
