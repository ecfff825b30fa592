"""Loadstone measures how much load a database can handle."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadstone.tables.results import RunResults, open_run

__version__ = "0.1.0"
__all__ = ["RunResults", "__version__", "open_run"]


def __getattr__(name: str) -> Any:
    if name in ("RunResults", "open_run"):
        return getattr(import_module("loadstone.tables.results"), name)
    raise AttributeError(f"module 'loadstone' has no attribute '{name}'")
