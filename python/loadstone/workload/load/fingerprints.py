"""Whether a table holds what was generated: its fingerprint beside the one that it must have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Check = dict[str, Any]
"""One of phase.json's `checks`: name, expected, actual, passed, detail."""


def plain(found: Mapping[str, Any], numbers: Sequence[str]) -> dict[str, Any]:
    """Return a fingerprint in the form of the core's: these numbers and the counts of NULLs, as text."""
    return {name: str(found[name]) for name in numbers} | {"nulls": [str(count) for count in found["nulls"]]}


def compared(table: str, wanted: Mapping[str, Any], actual: Mapping[str, Any]) -> Check:
    """Compare two fingerprints of a table, both plain."""
    differing = [part for part in wanted if actual[part] != wanted[part]]
    return {
        "name": f"{table} contains the rows that were generated",
        "expected": _shown(wanted),
        "actual": _shown(actual),
        "passed": not differing,
        "detail": "count and fingerprint" + ("; different: " + ", ".join(differing) if differing else ""),
    }


def _shown(values: Mapping[str, Any]) -> str:
    return f"{int(values['rows']):,} rows, content {values['content']}"
