"""report.html: one self-contained page computed from summary.json, and the same figures for the terminal.

What makes pages is imported when it is used: whoever needs the formats of figures alone starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loadstone.report.page import (
        assets,
        environment,
        headline_json,
        render,
        summary_table,
        write_report,
    )

__all__ = ["assets", "environment", "headline_json", "render", "summary_table", "write_report"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("loadstone.report.page"), name)
    raise AttributeError(name)
