"""A comparison as Markdown, for a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loadstone.compare import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.compare.documents import Comparison, Document

_ACTS = re.compile(r"([\\`*_\[\]<>|#@])")
"""Characters that mean something in Markdown; an @ would notify somebody."""
_MARKS = {"bad": "🔴", "good": "🟢", "warning": "🟡"}


def markdown(document: Document, *, every: bool) -> str:
    """Return all comparisons; `every` shows every metric, also those that do not differ."""
    lines = [line for one in document.comparisons for line in _comparison(one, every=every)]
    return "\n".join([*lines, texts.explanation(document), ""])


def _comparison(comparison: Comparison, *, every: bool) -> Iterator[str]:
    a, b = comparison.a, comparison.b
    yield f"### Loadstone: {_plain(b.label)} against {_plain(a.label)}: {texts.summary(comparison)}"
    yield ""
    for line in (*texts.sides(comparison), *comparison.notes):
        yield f"- {_plain(line)}"
    for one in comparison.differences:
        yield f"- {'**differs**' if one.blocks else 'differs'}, {one.kind}: {_plain(texts.difference(one))}"
    yield ""
    every_head = texts.heads(comparison)
    heads = [head.replace("A", a.name).replace("B", b.name) for head in every_head[:3]]
    yield _line(["Phase", "Metric", *heads, *every_head[3:], ""])
    yield _line(["---", "---", *["--:"] * 7, "---", "---"])
    for block in texts.blocks(comparison, every=every):
        for row in block.rows:
            *figures, verdict = texts.cells(row)
            shown = f"{_MARKS[texts.level(row)]} **{verdict}**" if row.primary else verdict
            cells = [_plain(block.title), texts.metric(row), *figures]
            yield _line([*map(_cell, cells), shown, _cell(texts.remark(row))])
    yield ""
    if comparison.overall is not None:
        yield texts.overall(comparison.overall, (a.name, b.name))
        yield ""
    if comparison.advice:
        yield f"To decide it: `{comparison.advice}`"
        yield ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("\\|", "|").replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    return _ACTS.sub(r"\\\1", " ".join(text.split()))
