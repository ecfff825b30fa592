"""The texts that users read, out of sources: strings of Python and Rust, and the prose of report templates.

Docstrings and comments are not among them, nor are SQL, names, and values that are filled in.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Text = tuple[int, str]
    """The line in which a text begins, and the text."""

FILLED_IN = "…"
"""What stands for a value in a text."""

_SQL = re.compile(
    r"\s*\(?(?:alter|analyze|and|begin|comment|copy|create|delete|do|drop|explain|from|grant|group|insert|join"
    r"|kill|left|lock|order|select|set|show|system|truncate|union|update|use|vacuum|where|with)\b",
    re.IGNORECASE,
)
_RUST_STRING = re.compile(r'(?P<before>[^\n"]*)"(?P<text>(?:[^"\\]|\\.)*)"', re.DOTALL)
_RUST_COMMENT = re.compile(r"^[ \t]*//.*$", re.MULTILINE)
_RUST_OWN = re.compile(r"(?:reason = |expect\(|assert\w*!|panic!|unreachable!|b|r|r#)$")
"""What comes before a string that only the programmer reads, or that is bytes or raw."""
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_JINJA_STRING = re.compile(r'"([^"]*)"')
_TAG = re.compile(r"<[^>]*>")


def of_python(source: str) -> Iterator[Text]:
    """Yield the sentences among the strings of a module."""
    tree = ast.parse(source)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for line, text in _strings(tree, alone):
        if is_sentence(text):
            yield line, text


def of_rust(source: str) -> Iterator[Text]:
    """Yield the sentences among the strings of a Rust file, without those of its tests."""
    code = _RUST_COMMENT.sub("", source.partition("#[cfg(test)]\nmod ")[0])
    for found in _RUST_STRING.finditer(code):
        text = re.sub(r"\\\n\s*", "", found["text"])
        if is_sentence(text) and not _RUST_OWN.search(found["before"]):
            yield code.count("\n", 0, found.start("text")) + 1, re.sub(r"\{[^}]*\}", FILLED_IN, text)


def of_template(source: str) -> Iterator[Text]:
    """Yield the prose of a report template, line by line: without tags, and of code the strings alone."""
    prose = _TAG.sub(_blank, _JINJA.sub(_strings_alone, source))
    for number, line in enumerate(prose.split("\n"), 1):
        if line.strip():
            yield number, line


def is_sentence(text: str) -> bool:
    """Whether a string is prose: several words, and no SQL."""
    return len(re.findall(r"[A-Za-z]{2,}", text)) > 1 and " " in text.strip() and not _SQL.match(text)


def _strings(node: ast.AST, alone: set[int]) -> Iterator[Text]:
    if id(node) in alone:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.lineno, node.value
    elif isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(_part(part) for part in node.values)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _strings(child, alone)


def _part(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else FILLED_IN


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _strings_alone(found: re.Match[str]) -> str:
    return " ".join(_JINJA_STRING.findall(found[0])) + _blank(found)
