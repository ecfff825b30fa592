#!/usr/bin/env python3
"""Refuse statements that make, fill, change or drop something without saying in which schema.

Looks at the SQL in our Python sources, in the built-in scenarios, and in the pages that show how to write a
scenario. In SQL a name begins with `loadstone.`; in Python it comes from `qualified` (sqltext.py). An
exception has a comment `unqualified: REASON` on its line or on the one above it.

    tools/check_qualified.py [ROOT]
"""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

from rules import status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Finding = tuple[int, str]
    """Line, and the statement up to its name."""

_KIND = r"(?:foreign table|materialized view|table|view|sequence|type|function|procedure)"
_IF = r"(?:if (?:not )?exists )?"
_BEGINS = (
    rf"create (?:or replace )?(?:unlogged )?{_KIND} {_IF}",
    rf"create (?:unique )?index (?:concurrently )?{_IF}(?:(?!on )\S+ )?on (?:only )?",
    rf"drop {_KIND} {_IF}",
    rf"alter {_KIND} {_IF}(?:only )?",
    rf"comment on {_KIND} ",
    r"truncate (?:table )?",
    r"(?:insert|merge) (?:atomic )?into ",
    r"delete from ",
    r"update (?=\S+ set\b)",
    r"copy (?=\S+ (?:\(|from\b))",
    r"(?:vacuum|analyze) (?:analyze )?(?=\S+$)",
    r"optimize table ",
    r"partition of ",
)
_STATEMENT = re.compile(rf"\b(?:{'|'.join(_BEGINS)})(?P<name>[^\s(;,…]+)", re.IGNORECASE | re.MULTILINE)
_HOLE = "\x00"
"""Stands for a value that an f-string fills in, with its number behind."""
_OURS = re.compile(r"loadstone\.|%I\.%I")
_PROSE = re.compile(r"(?:title|why|help) = ")
"""Keys of a scenario whose texts are no SQL."""
_EXCEPTION = "unqualified: "
_PAGES = ("docs/write-a-scenario.md", "docs/scenario-format.md", "docs/fixed-rate.md", "docs/gpu-engines.md")


def findings(root: Path) -> Iterator[str]:
    """Yield file, line and statement of each that does not say its schema."""
    package = root / "python" / "loadstone"
    for path in sorted(package.rglob("*.py")):
        yield from _told(root, path, in_python(path.read_text()))
    scenarios = package / "scenarios"
    for path in sorted(path for kind in ("sql", "pgbench", "toml") for path in scenarios.rglob(f"*.{kind}")):
        yield from _told(root, path, in_sql(path.read_text()))
    for page in _PAGES:
        yield from _told(root, root / page, in_page((root / page).read_text()))


def in_sql(text: str) -> Iterator[Finding]:
    """Look at a text of SQL, of pgbench's language, or at one that holds such texts."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if _PROSE.match(line):
            continue
        said = line.partition("--")[0].rstrip("\"'];, ")
        for found in _STATEMENT.finditer(said):
            if not _OURS.match(found["name"]) and not _is_excepted(lines, number):
                yield number, found[0]


def in_page(text: str) -> Iterator[Finding]:
    """Look at the blocks of code in a page."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif inside:
            yield from ((number, statement) for _, statement in in_sql(line))


def in_python(text: str) -> Iterator[Finding]:
    """Look at the texts of a module of Python."""
    lines = text.splitlines()
    for node, known in _texts(ast.parse(text), frozenset()):
        holes = [part.value for part in node.values if isinstance(part, ast.FormattedValue)] if isinstance(
            node, ast.JoinedStr
        ) else []  # fmt: skip
        for found in _STATEMENT.finditer(_as_text(node)):
            name = found["name"]
            if name.startswith(_HOLE):
                fine = _is_qualified(holes[ord(name[1])], known)
            else:
                fine = name.startswith("{qualified}") or bool(_OURS.match(name))
            if not fine and not any(_is_excepted(lines, n) for n in range(node.lineno, _end(node) + 1)):
                yield node.lineno, found[0].partition(_HOLE)[0]


def _texts(
    node: ast.AST, known: frozenset[str]
) -> Iterator[tuple[ast.JoinedStr | ast.Constant, frozenset[str]]]:
    """Yield all texts but docstrings, each with the names of its function that hold qualified names."""
    if isinstance(node, ast.FunctionDef):
        known |= _known(node)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.JoinedStr) or (
            isinstance(child, ast.Constant) and isinstance(child.value, str)
        ):
            yield child, known
        else:
            yield from _texts(child, known)


def _known(function: ast.FunctionDef) -> frozenset[str]:
    """Return the names that a function binds to what `qualified` returns, alone or in a list."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    found = {a.arg for a in arguments if a.annotation and "Qualified" in ast.unparse(a.annotation)}
    for _ in range(2):  # a loop over a list that was bound before
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and "Qualified" in ast.unparse(node.annotation):
                found.add(ast.unparse(node.target))
                continue
            if isinstance(node, ast.Assign):
                pairs = _pairs(node.targets[0], node.value)
            elif isinstance(node, ast.For | ast.comprehension):
                pairs = [(node.target, node.iter)]
            else:
                continue
            found |= {
                target.id
                for target, value in pairs
                if isinstance(target, ast.Name) and _is_qualified(value, frozenset(found))
            }
    return frozenset(found)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _is_qualified(value: ast.expr, known: frozenset[str]) -> bool:
    """Return whether an expression gives a qualified name, or a list of them."""
    if isinstance(value, ast.Name):
        return value.id in known
    if isinstance(value, ast.ListComp | ast.GeneratorExp):
        return _is_qualified(value.elt, known)
    called = value.func if isinstance(value, ast.Call) else None
    return (isinstance(called, ast.Attribute) and called.attr == "qualified") or (
        isinstance(called, ast.Name) and called.id == "qualified"
    )


def _as_text(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    holes = iter(range(len(node.values)))
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else f"{_HOLE}{chr(next(holes))}"
        for part in node.values
    )


def _end(node: ast.expr) -> int:
    return node.end_lineno or node.lineno


def _is_excepted(lines: list[str], number: int) -> bool:
    return any(_EXCEPTION in line for line in lines[max(0, number - 2) : number])


def _told(root: Path, path: Path, found: Iterator[Finding]) -> Iterator[str]:
    for line, statement in found:
        yield f"{path.relative_to(root)}:{line}: no schema is named: {' '.join(statement.split())}"


if __name__ == "__main__":
    sys.exit(status(findings))
