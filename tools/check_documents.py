#!/usr/bin/env python3
"""Refuse string subscripts into documents where figures are computed and shown.

In the packages `summary` and `report`, documents of the run folder are Structs: `phase.drive`, never
`phase["drive"]` or `phase.get("drive")`, so that mypy sees every figure. What is no document (chart
specifications, counters by name, a library's own result) has a comment `no document: REASON` on its line.
Modules that still read the summary as plain JSON are listed with the number of their subscripts, which may
only fall.

    tools/check_documents.py [ROOT]
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from rules import status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("summary", "report")
EXCEPTION = "no document: "
PLAIN: dict[str, int] = {
    "report/charts/__init__.py": 1,
    "report/charts/curves.py": 5,
    "report/charts/drawing.py": 1,
    "report/formats.py": 2,
    "report/charts/choice.py": 96,
    "report/steps.py": 198,
    "report/storage.py": 80,
    "report/terminal.py": 98,
    "report/view.py": 214,
}
"""Modules that read the summary as plain JSON, and how often."""


def findings(root: Path) -> Iterator[str]:
    """Yield file, line and subscript of each that is refused."""
    for package in PACKAGES:
        for path in sorted((root / "python" / "loadstone" / package).rglob("*.py")):
            name = path.relative_to(root / "python" / "loadstone").as_posix()
            found = list(subscripts(path.read_text(encoding="utf-8")))
            allowed = PLAIN.get(name, 0)
            if len(found) > allowed and allowed:
                yield f"{name}: {len(found)} string subscripts, where {allowed} were left: use attributes"
            elif len(found) < allowed:
                yield f"{name}: {len(found)} string subscripts are left: lower its number in PLAIN"
            elif not allowed:
                yield from (f"{name}:{line}: {text}: documents are Structs" for line, text in found)


def subscripts(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string subscript, and of each `get` of a string, that has no reason."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.expr)
            and _is_subscript(node)
            and EXCEPTION not in lines[(node.end_lineno or 1) - 1]
        ):
            yield node.lineno, ast.unparse(node)


def _is_subscript(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        key = node.slice
        # A string in an annotation is a type.
        return isinstance(key, ast.Constant) and isinstance(key.value, str) and not _is_type(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return False
    key = node.args[0]
    return node.func.attr == "get" and isinstance(key, ast.Constant) and isinstance(key.value, str)


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id[:1].isupper()


if __name__ == "__main__":
    sys.exit(status(findings))
