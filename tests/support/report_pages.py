"""Pages of a report as tests read them: elements, words, what the terminal prints."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from io import StringIO
from typing import Any

from rich.console import Console

from loadstone.report import environment
from loadstone.report.charts.drawings import Drawings
from loadstone.report.plain_queries import blocks
from support.summaries import summary_table, typed

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>'\"&\u2028${7*7}{{7*7}}"
VOID = {"meta", "br", "img", "input", "hr", "link"}


class Page(HTMLParser):
    """Collects elements with their attributes, and complains about elements that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def without_scripts(html: str) -> str:
    return re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)


def words(page: Page) -> str:
    return " ".join(" ".join(page.text).split())


def section(summary: dict[str, Any]) -> str:
    """Return the section of the page alone: drawing a whole page takes seconds."""
    found = typed(summary)
    names = {one.id: one.short_label for one in found.targets}
    part = environment(Drawings()).get_template("plain_queries.html.j2")
    return "".join(part.render(block=block) for block in blocks(found, names))


def printed(summary: dict[str, Any]) -> str:
    screen = StringIO()
    Console(width=160, file=screen).print(summary_table(summary))
    return screen.getvalue()
