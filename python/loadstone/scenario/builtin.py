"""The scenarios that are built in: found by their place, and listed without being read whole."""

from __future__ import annotations

import tomllib
from pathlib import Path

SCENARIO_FILE = "scenario.toml"


def builtin_scenarios() -> dict[str, Path]:
    """Return the folders of the built-in scenarios by name."""
    root = Path(__file__).parents[1] / "scenarios"
    return {file.parent.name: file.parent for file in sorted(root.glob(f"*/{SCENARIO_FILE}"))}


def builtin_titles() -> dict[str, str]:
    """Return the titles of the built-in scenarios by name; what tests have checked is not checked again."""
    files = {name: folder / SCENARIO_FILE for name, folder in builtin_scenarios().items()}
    return {
        name: str(tomllib.loads(file.read_text(encoding="utf-8"))["title"]) for name, file in files.items()
    }
