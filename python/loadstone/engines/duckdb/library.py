"""How DuckDB is opened: by the C interface of the library inside its Python package.

Every connection to a file comes from `opened`. `duckdb.connect` would open the file a second time, since the
package keeps instances of its own, and two instances in one process destroy what the other commits
(docs/adr/0028-duckdb-c-api.md).
"""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from typing import TYPE_CHECKING

from loadstone import _core
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def opened(path: Path | None, settings: Mapping[str, str]) -> _core.DuckDatabase:
    """Open a file, or a database in memory. Raises one of `duckdb.Error`."""
    document = {"library": _library(), "path": str(path) if path else None, "settings": dict(settings)}
    return _core.DuckDatabase(json.dumps(document))


@cache
def _library() -> str:
    found = importlib.util.find_spec("_duckdb")
    if found is None or found.origin is None:
        raise LoadstoneError("the library of the Python package duckdb is missing", "Install duckdb again.")
    return found.origin
