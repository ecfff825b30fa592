"""How the core opens DuckDB: by ADBC, the C interface of the library inside the package.

A file that is open here must not be opened by `duckdb.connect` in this process, nor the other way round:
the package keeps an instance of its own, and two instances that write one file destroy it
(docs/adr/0024-adbc.md).
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PIECE = 2048
"""Rows handed over at once: where it has to cast them, DuckDB has room for one of its vectors."""
_ALIASES = {"mismatchtype": "TypeMismatchException", "transactioncontext": "TransactionException"}


def spec(path: Path | None, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return what `_core.AdbcDatabase` wants to open a file, or a database in memory."""
    return {
        "library": _library(),
        "entrypoint": "duckdb_adbc_init",
        "options": {**settings, "path": str(path or ":memory:")},
        "errors": {"detail": "duckdb:error_type", "names": _exceptions(), "other": "Error"},
    }


@cache
def _library() -> str:
    found = importlib.util.find_spec("_duckdb")
    if found is None or found.origin is None:
        raise LoadstoneError("the library of the package duckdb is not there", "Install duckdb again.")
    return found.origin


@cache
def _exceptions() -> Mapping[str, str]:
    """Return which exception of the package stands for which kind of error."""
    names = [name for name in dir(duckdb) if name.endswith("Exception")]
    return {name.removesuffix("Exception").lower(): name for name in names} | _ALIASES
