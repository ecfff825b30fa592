#!/usr/bin/env python3
"""Refuse pages that nobody finds, names of files that are not there, and long lines.

Every page of docs/ and every decision is linked from docs/README.md; every link between pages leads to a
file; and every path in backticks in ARCHITECTURE.md and CONTRIBUTING.md exists: from the root, from one of
the folders that these pages write from, or from a folder that the same line names. Prose is wrapped at 100
columns; tables, code, headings and single links are not.

    tools/check_pages.py [ROOT]
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from rules import status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WITH_PATHS = ("ARCHITECTURE.md", "CONTRIBUTING.md")
FOLDERS = (".", "python/loadstone", "crates", "crates/drive/src")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_CODE = re.compile(r"`([^`]+)`")
_PATH = re.compile(
    r"[a-z_][\w.-]*(/[\w.-]+)*/|[a-z_][\w.-]*(/[\w.-]+)+|[a-z_][\w-]*\.(py|rs|j2|html|toml\.j2)"
)
"""A folder, a path, or a source file. Texts with capitals are to be filled in."""
COLUMNS = 100
"""At which prose is wrapped."""
_UNWRAPPED = re.compile(r"\s*([|#<!]|([*-] )?\[[^\]]*\]\([^)]*\)$|([*-] )?\S+$)")
"""Lines that are not wrapped: tables, headings, markup, pictures, a link, one word."""
UNWRAPPED_PAGES = ("CHANGELOG.md", "run-folder.md")
"""Pages whose lines are not looked at: one line an entry, and what tools/document_types.py writes."""


def findings(root: Path) -> Iterator[str]:
    """Yield each page without a link, each link and each path that leads nowhere."""
    yield from unlisted(root / "docs")
    for page in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")]):
        text, name = page.read_text(encoding="utf-8"), page.relative_to(root).as_posix()
        if page.name not in UNWRAPPED_PAGES:
            yield from (f"{name}:{number}: longer than {COLUMNS} columns" for number in long_lines(text))
        for number, line in enumerate(text.splitlines(), 1):
            for link in dead_links(page.parent, line):
                yield f"{name}:{number}: there is no {link}"
            if name in WITH_PATHS:
                for path in dead_paths(root, line):
                    yield f"{name}:{number}: there is no {path}"


def long_lines(text: str) -> Iterator[int]:
    """Yield the numbers of lines of prose that are not wrapped."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif len(line) > COLUMNS and not is_code and not _UNWRAPPED.match(line):
            yield number


def unlisted(docs: Path) -> Iterator[str]:
    """Yield the pages that docs/README.md does not link."""
    linked = set(_LINK.findall((docs / "README.md").read_text(encoding="utf-8")))
    for page in sorted(docs.rglob("*.md")):
        name = page.relative_to(docs).as_posix()
        if name != "README.md" and name not in linked:
            yield f"docs/{name}: not in docs/README.md"


def dead_links(folder: Path, line: str) -> Iterator[str]:
    """Yield the links to files that do not exist."""
    for link in _LINK.findall(line):
        if ":" not in link and not (folder / link).exists():
            yield link


def dead_paths(root: Path, line: str) -> Iterator[str]:
    """Yield the paths in backticks that do not exist."""
    bases = [root / folder for folder in FOLDERS]
    for text in _CODE.findall(line):
        found = next((base / text for base in bases if _exists(base / text)), None)
        if found is not None:
            bases += [found, found / "src"] if found.is_dir() else [found.parent]
        elif _PATH.fullmatch(text) and text.islower():
            yield text


def _exists(path: Path) -> bool:
    return path.exists() or (path.suffix == "" and path.with_suffix(".rs").exists())


if __name__ == "__main__":
    sys.exit(status(findings))
