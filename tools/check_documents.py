#!/usr/bin/env python3
"""Refuse string subscripts into documents where figures are computed and shown.

In the packages `summary` and `report`, documents of the run folder are Structs: `phase.drive`, never
`phase["drive"]` or `phase.get("drive")`, so that mypy sees every figure. What is no document (chart
specifications, counters by name, a library's own result) has a comment `no document: REASON` on its line.

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


def findings(root: Path) -> Iterator[str]:
    """Yield file, line and subscript of each that is refused."""
    for package in PACKAGES:
        for path in sorted((root / "python" / "loadstone" / package).rglob("*.py")):
            name = path.relative_to(root / "python" / "loadstone").as_posix()
            for line, text in subscripts(path.read_text(encoding="utf-8")):
                yield f"{name}:{line}: {text}: documents are Structs"


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


def main() -> int:
    """Print what is refused, or that nothing is; returns the exit status."""
    refused = status(findings)
    if not refused:
        sys.stdout.writelines(f"string subscripts into documents in {name}: none\n" for name in PACKAGES)
    return refused


if __name__ == "__main__":
    sys.exit(main())
