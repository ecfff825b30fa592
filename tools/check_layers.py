#!/usr/bin/env python3
"""Refuse imports that run against the order of a Rust crate's layers.

The order is in the crate's Cargo.toml, from the lowest layer to the highest; units of one layer share a line:

    [package.metadata.layers]
    order = ["clock error", "record", "protocol", "client", "workload::load workload::queries", "worker"]

A unit is a module with all that is inside it. Once a unit inside a module is listed (`workload::load`), every
module inside that one needs a place of its own. A unit uses its own layer and those below it; units of one
layer must not use each other in a circle. Inside a unit everything is allowed.

    tools/check_layers.py [ROOT]
"""

from __future__ import annotations

import re
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Modules = dict[str, str]
    """The text of each module of a crate by its path (`workload::load`); that of the root is empty."""

_SILENT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|r(?P<hash>\#*)".*?"(?P=hash)|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", re.DOTALL
)
"""Comments and texts."""
_PATH = re.compile(r"\b(crate|self|super)\s*::\s*")
_NAME = re.compile(r"[A-Za-z_]\w*|\*")
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{")


def findings(root: Path) -> Iterator[str]:
    """Yield what is wrong in the crates that have layers."""
    for manifest in sorted(root.glob("crates/*/Cargo.toml")):
        package = tomllib.loads(manifest.read_text())["package"]
        layers = package.get("metadata", {}).get("layers")
        if layers:
            found = in_crate(modules(manifest.parent / "src"), layers["order"])
            yield from (f"{manifest.relative_to(root)}: {line}" for line in found)


def modules(source: Path) -> Modules:
    """Read a crate's modules from their files."""
    found = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        name = "::".join(parts[:-1] if parts[-1] == "mod" else parts)
        found["" if name in {"lib", "main"} else name] = path.read_text()
    return found


def in_crate(texts: Modules, order: list[str]) -> Iterator[str]:
    """Look at one crate whose layers are in this order, from the lowest."""
    place = {unit: number for number, layer in enumerate(order) for unit in layer.split()}
    yield from (f"layer of {unit}: there is no such module" for unit in place if unit not in texts)
    units = {name: _unit(name, place) for name in texts if name}
    lost = sorted(name for name, unit in units.items() if unit is None)
    yield from (f"module {name}: it has no layer" for name in lost)
    used: dict[str, set[str]] = {unit: set() for unit in place}
    for name, unit in units.items():
        others = {units[other] for other in imports(name, texts) if other} - {unit, None}
        for other in sorted(filter(None, others)):
            if unit is None:
                continue
            if place[other] > place[unit]:
                yield f"module {name}: it imports {other}, which is in a higher layer than {unit}"
            elif place[other] == place[unit]:
                used[unit].add(other)
    try:
        TopologicalSorter(used).prepare()
    except CycleError as error:
        yield f"units of one layer import each other: {' <- '.join(error.args[1])}"


def imports(name: str, texts: Modules) -> set[str]:
    """Return the modules of the crate that a module names, itself left out."""
    text = _SILENT.sub(" ", texts[name])
    tests = _TESTS.search(text)
    inside = tests.start() if tests else len(text)
    found = set()
    for path, at in _paths(text):
        absolute = _absolute(path, name, is_inner=at > inside)
        while absolute and "::".join(absolute) not in texts:
            absolute.pop()
        found.add("::".join(absolute))
    return found - {name, ""}


def _paths(text: str) -> Iterator[tuple[list[str], int]]:
    """Yield each path that begins at `crate`, `self` or `super`, and where; one for each name in braces."""
    for begin in _PATH.finditer(text):
        before = text[: begin.start()].rstrip()
        if not before.endswith("::"):
            for rest in _branches(text, begin.end()):
                yield [begin[1], *rest], begin.start()


def _branches(text: str, at: int) -> Iterator[list[str]]:
    """Yield what may follow a `::`: names up to the end of the path, or all branches of a pair of braces."""
    if text[at] == "{":
        for branch in _split(text, at):
            yield from _branches(branch, 0)
        return
    name = _NAME.match(text, at)
    if not name:
        return
    follows = re.compile(r"\s*::\s*(?!<)").match(text, name.end())
    if not follows or follows.end() >= len(text):
        yield [name[0]]
        return
    for rest in _branches(text, follows.end()):
        yield [name[0], *rest]


def _split(text: str, at: int) -> Iterator[str]:
    """Yield the parts of a pair of braces, which commas separate."""
    depth, start = 0, at + 1
    for end in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0 or (depth == 1 and text[end] == ","):
            part = text[start:end].strip()
            if part:
                yield part
            start = end + 1
        if depth == 0:
            return


def _absolute(path: list[str], name: str, *, is_inner: bool) -> list[str]:
    """Return a path from the crate's root; `is_inner`: it is in the module of tests inside the file."""
    if path[0] == "crate":
        return path[1:]
    base = name.split("::") + (["tests"] if is_inner else [])
    rest = path[1:] if path[0] == "self" else path
    while rest and rest[0] == "super":
        base, rest = base[:-1], rest[1:]
    return [*base, *rest]


def _unit(name: str, place: dict[str, int]) -> str | None:
    """Return the unit that a module belongs to; `None` when it needs a place and has none."""
    if name in place:
        return name
    parent = name.rpartition("::")[0]
    if not parent or any(unit.startswith(f"{parent}::") for unit in place):
        return None
    return _unit(parent, place)


def main() -> int:
    """Print what was found; returns the exit status."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
    found = list(findings(root))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
