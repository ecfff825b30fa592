#!/usr/bin/env python3
"""Refuse wordings that readers had to read twice, and name the plain ones.

Looks at the pages, at the help of the command line, at the texts of the built-in scenarios, and at what users
read out of sources: errors, hints, warnings, notes and report templates; and at the names of what the sources
define. Code in pages (blocks, `spans`) is not prose. The terms that we do use are in docs/glossary.md.

    tools/check_words.py [ROOT]
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import user_texts
from rules import status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    Finding = tuple[int, str, str]
    """Line, the wording found there, and the plain one."""

REFUSED = {
    r"anew": "again",
    r"asked (?:of|by|beside|one by one)|asks? plain SQL": "runs, sends",
    r"beside each other": "side by side",
    r"blurs? (?:the )?figures": "makes figures unreliable",
    r"(?:is|was|were|are) broken off|breaks off|broke off": "is interrupted",
    r"(?:indexes|import|partitions|schema|that|which) bears?": "can afford, has",
    r"brought to (?:its|their|an) end": "finished",
    r"brought to the disk": "synced to disk",
    r"(?:come|comes|came|become|becomes|became) of (?:it|them|those)": "the result, what happens",
    r"for nobody": "without a result (or leave it out)",
    r"for so long": "for that time",
    r"gives? no sign of life": "does not respond",
    r"go(?:es)? on with": "resumes, continues",
    r"(?:go|goes|went) round": "repeats, in turn",
    r"had enough": "exits, stops reading",
    r"hangs? on": "depends on",
    r"hears? (?:of|by)|heard of": "is informed of, responds",
    r"heeds?": "obeys, checks",
    r"holds? up": "blocks",
    r"in (?:plain )?words": "with the reason",
    r"is not a result|are not to be believed": "do not use these figures",
    r"(?:its|their|with) kin": "the related ones",
    r"(?<!there\x20)(?:is|are|was|were) no (?!longer|more|less|different)\w+": "is not a …, has no …",
    r"lack(?:s|ed)? skips?|skips? in words": "is skipped, and the report says why",
    r"lets? us (?:not )?in": "accepts (refuses) the log-in",
    r"lies? (?:in|on|beside|under|there|below)": "is in, is on",
    r"met no (?:real )?server": "has not been run against a server",
    r"(?:must|will|should|that) (?:still )?holds?": "must contain, that contains",
    r"puts? into (?:its|other|the target's) (?:own )?words": "translates",
    r"resembles? each other": "is autocorrelated",
    r"(?:is|are|was|were) (?:said|told)(?! to be)": "is reported, the report says",
    r"said to be": "reported as",
    r"stands? (?:at|in|on|below|beside|above|behind|there|among|first)": "is in, is shown",
    r"tells? whether": "says whether, shows whether",
    r"spares? (?:the|a|it|round)": "saves",
    r"tells? (?:of|what|how|us)|told of": "says, reports",
    r"cannot be told|(?:told|tells?) (?:\w+ )?apart": "cannot be decided; distinguished",
    r"the least and the (?:largest|greatest)": "the smallest and the largest",
    r"under way": "running, in flight",
    r"what is left of|what there is": "the data up to there, what remains",
    r"wish(?:es|ed)?": "asks for, requests",
    r"without a word|without an end": "silently; without a limit",
}
"""Wording (a regular expression over whole words; a space stands for any space) → the plain one."""

REFUSED_IN_SOURCES = {
    r"already there|(?:is|are) there already": "already exists",
    r"(?:is|are|was|were) (?:asked for|wanted)|asked for": "requested, needed",
    r"broken (?:load|run)": "interrupted load",
    r"gone on with|go(?:es)? on where": "resumed",
    r"(?<!`)holds?(?!`)": "contains, stores",
    r"lacks?": "does not have",
    r"leaves? (?:\S+ )?away|takes? \S+ away": "remove",
    r"lies?|stands?": "is in, is on",
    r"mend(?:s|ed)?": "correct, fix",
    r"(?:is|are|was|were) not known": "is unknown",
    r"own business": "Loadstone itself sets it",
    r"say [\w-]+=": "set …=",
    r"told": "reported",
}
"""As REFUSED, in errors, hints, warnings and reports, which use these words for nothing else."""

REFUSED_NAMES = {
    "answertwin": "digest_reference",
    "beside": "mixed, subfolder, other",
    "bend": "SegmentedCurve",
    "caution": "warning",
    "circumstances": "ServerFacts, conditions",
    "company": "ConcurrentQueries",
    "doorman": "auth proxy",
    "hinge": "models",
    "hinges": "models",
    "knock": "connect",
    "manner": "options",
    "manners": "options",
    "meeting": "StartBarrier",
    "rhythm": "StepPlan",
    "tells": "log, report",
    "wish": "options, feature",
    "wishes": "options, features",
}
"""Words that no module, class or function has in its name → what we call it."""
_DEFINED = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))? )?(?:async )?(?:const )?"
    r"(?:def|class|fn|struct|enum|trait|type|mod) (?!test_)(\w+)",
    re.MULTILINE,
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _compiled(refused: Mapping[str, str]) -> tuple[re.Pattern[str], list[str]]:
    names = (rf"(?P<w{n}>\b(?:{wording})\b)" for n, wording in enumerate(refused))
    return re.compile("|".join(names).replace(" ", r"\s+"), re.IGNORECASE), list(refused.values())


_IN_PROSE = _compiled(REFUSED)
_IN_SOURCES = _compiled(REFUSED | REFUSED_IN_SOURCES)
_CODE = re.compile(r"^```.*?^```$|`[^`]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
_TEXTS = ("title", "why", "help", "note")
"""Keys of a scenario that people read."""
_SOURCES: dict[str, Callable[[str], Iterator[user_texts.Text]]] = {
    "python/loadstone/**/*.py": user_texts.of_python,
    "python/loadstone/**/*.j2": user_texts.of_template,
    "crates/*/src/**/*.rs": user_texts.of_rust,
}
_OTHERS = (
    "loadstone/personalities/pgbench/",
    "crates/script/",
    "/workload/script/",
    "/worker/telling.rs",
    "/tests.rs",
)
"""Sources that are not looked at: most have words of pgbench, which PostgreSQL's own tests compare."""


def findings(root: Path) -> Iterator[str]:
    """Yield file, line, wording and remedy of everything that is refused."""
    package = root / "python" / "loadstone"
    pages = (path for path in (root / "docs").rglob("*.md") if path.parent.name != "adr")
    for path in (*sorted(root.glob("*.md")), *sorted(pages)):
        yield from _shown(root, path, in_page(path.read_text()))
    for path in sorted((package / "cli").glob("*.py")):
        yield from _shown(root, path, in_help(path.read_text()))
    for path in sorted((package / "scenarios").glob("*/scenario.toml")):
        yield from _shown(root, path, in_scenario(path.read_text()))
    for path in sorted((package / "personalities").glob("*/help.txt")):
        yield from _shown(root, path, in_text(path.read_text()))
    yield from _in_sources(root)


def _in_sources(root: Path) -> Iterator[str]:
    for pattern, texts in _SOURCES.items():
        for path in sorted(root.glob(pattern)):
            source = path.read_text()
            if not any(part in path.as_posix() for part in _OTHERS):
                yield from _shown(root, path, in_source(texts(source)))
            if path.suffix in {".py", ".rs"} and not path.name.endswith("tests.rs"):
                yield from _shown(root, path, in_names(path.stem, source))


def in_names(module: str, source: str) -> Iterator[Finding]:
    """Look at the name of a module, and at those of the classes and functions that it defines."""
    names = [(1, module)]
    names += [(source.count("\n", 0, found.start(1)) + 1, found[1]) for found in _DEFINED.finditer(source)]
    for line, name in names:
        for part in _PARTS.findall(name):
            if part.lower() in REFUSED_NAMES:
                yield line, name, REFUSED_NAMES[part.lower()]


def in_source(texts: Iterator[user_texts.Text]) -> Iterator[Finding]:
    """Look at texts that users read out of a source."""
    for line, text in texts:
        yield from _found(_IN_SOURCES, text, line)


def in_text(text: str, line: int = 1) -> Iterator[Finding]:
    """Look at prose that begins in a line."""
    yield from _found(_IN_PROSE, text, line)


def _found(wordings: tuple[re.Pattern[str], list[str]], text: str, line: int) -> Iterator[Finding]:
    wording, plain = wordings
    for found in wording.finditer(text):
        number = next(int(name[1:]) for name, value in found.groupdict().items() if value)
        yield line + text.count("\n", 0, found.start()), " ".join(found[0].split()), plain[number]


def in_page(text: str) -> Iterator[Finding]:
    """Look at the prose of a page: its code is blanked out, its lines stay where they are."""
    return in_text(_CODE.sub(lambda code: re.sub(r"[^\n]", "·", code[0]), text))


def in_help(source: str) -> Iterator[Finding]:
    """Look at the help of options and commands in a module of the command line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg in {"help", "epilog"}:
            yield from in_text(_constant(node.value), node.value.lineno)
        elif isinstance(node, ast.FunctionDef) and any("command" in ast.dump(d) for d in node.decorator_list):
            yield from in_text(ast.get_docstring(node) or "", node.lineno)


def in_scenario(text: str) -> Iterator[Finding]:
    """Look at the texts of a scenario."""
    for prose in _texts(tomllib.loads(text)):
        for _, wording, plain in in_text(prose):
            place = text.find(wording)
            yield text.count("\n", 0, max(place, 0)) + 1, wording, plain


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _TEXTS and isinstance(inner, str):
                yield inner
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _constant(node: ast.expr) -> str:
    return "".join(
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def _shown(root: Path, path: Path, found: Iterator[Finding]) -> Iterator[str]:
    for line, wording, plain in found:
        yield f"{path.relative_to(root)}:{line}: '{wording}': write '{plain}'"


if __name__ == "__main__":
    sys.exit(status(findings))
