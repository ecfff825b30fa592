"""The script of a command line: where it is found, and what the core says of it."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone import _core
from loadstone.personalities.sysbench.complaint import ComplaintError
from loadstone.personalities.sysbench.definitions import BUILT_IN, SHAPES, Option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.personalities.sysbench.definitions import Kind
    from loadstone.personalities.sysbench.options import CommandLine

SCRIPTS = Path(__file__).with_name("scripts")
_LEGACY = SCRIPTS / "oltp_legacy"
_ENDING = ".lua"
_NOT_COMMON = ("oltp_common", "select_random", "common")
"""Parts of others, which are no workloads."""
STDIN = "<stdin>"


@dataclass(frozen=True, slots=True)
class FoundScript:
    """A script: the name in messages, its file or module, and its text where that is no file's."""

    name: str
    script: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """What the core has found out by loading a script."""

    found: FoundScript
    options: tuple[Option, ...]
    commands: Mapping[str, bool]
    """Commands of its own, and whether they run in every thread."""
    functions: frozenset[str]
    files: tuple[str, ...]
    """Paths of all files that it has read."""
    declares: bool
    """It has said what its options are."""
    output: str
    """What it printed."""
    needs_database: bool
    """It uses one while it is loaded; what is known of it is what it has declared up to there."""


def templates() -> list[str]:
    """Return where modules are looked for, `?` being the name: as in sysbench, then our own folders."""
    given = [part for part in os.environ.get("LUA_PATH", "").split(";") if part]
    home = os.environ.get("HOME", "")
    luarocks = [f"{home}/.luarocks/share/lua/5.1"] if home else []
    folders = [".", *luarocks, "/usr/local/share/lua/5.1", "/usr/share/lua/5.1"]
    shared = [f"{folder}/{end}" for folder in folders for end in ("?.lua", "?/init.lua")]
    return [*given, *shared, f"{SCRIPTS}/?.lua", f"{_LEGACY}/?.lua"]


def read_stdin() -> FoundScript:
    """Return the script that is on standard input."""
    return FoundScript(STDIN, STDIN, sys.stdin.read())


def find(name: str) -> FoundScript:
    """Return the script of this name: a file, or a module; raises ComplaintError."""
    if name in BUILT_IN:
        raise ComplaintError(
            f"the test '{name}' measures {BUILT_IN[name]}, not a database: it is not part of Loadstone",
            f"Debian's sysbench has it: /usr/bin/sysbench {name} ...",
        )
    if Path(name).is_file():
        return FoundScript(Path(name).name, name)
    for template in templates():
        path = template.replace("?", name.replace(".", "/"))
        if Path(path).is_file():
            return FoundScript(Path(name).name, path)
    raise ComplaintError(
        f"Cannot find benchmark '{name}': no such built-in test, file or module", _bundled(name), fatal=True
    )


def _bundled(name: str) -> str:
    """Return a hint where a bundled script has a similar name."""
    import difflib  # noqa: PLC0415 - only for the hint

    known = [path.stem for path in SCRIPTS.glob(f"*{_ENDING}") if path.stem not in _NOT_COMMON]
    stem = Path(name).name.removesuffix(_ENDING)
    close = [stem] if stem in known else difflib.get_close_matches(stem, known, 1, 0.7)
    if close:
        return f"Perhaps '{close[0]}' is meant, which comes with Loadstone."
    if (_LEGACY / f"{stem}{_ENDING}").is_file():
        return f"Perhaps '{_LEGACY / stem}{_ENDING}' is meant, which comes with Loadstone."
    return ""


def load(found: FoundScript, line: CommandLine, command: str | None) -> Script:
    """Load a script; raises `_core.ScriptError`."""
    document = script_document(found, line) | {"command": command or ""}
    report = json.loads(_core.lua_script(json.dumps(document)))
    return Script(
        found=found,
        options=tuple(_option(option) for option in report["options"]),
        commands={name: bool(entry["parallel"]) for name, entry in report["commands"].items()},
        functions=frozenset(report["has"]),
        files=tuple(report["files"]),
        declares=not report["legacy"],
        output=report["output"],
        needs_database=report["needs_database"],
    )


def script_document(found: FoundScript, line: CommandLine) -> dict[str, Any]:
    """Return how the core is told of a script, and of what it may know of the command line."""
    values = {setting.name: line.settings.value(setting.name) for setting in line.settings}
    return {
        "script": found.script,
        "source": found.source,
        "path": templates(),
        "options": {name: "" if value is None else value for name, value in values.items()},
        "argv": ["sysbench", *line.arguments],
    }


def _option(entry: Mapping[str, Any]) -> Option:
    kind: Kind = entry["type"] if entry["type"] in SHAPES else "string"
    default = entry.get("default")
    return Option(entry["name"], entry["description"], None if default is None else str(default), kind)
