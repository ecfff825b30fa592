"""The scripts of a run: pgbench's own, and files."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadstone import _core
from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.results.redact import learn

SCRIPTS_MAX = 128
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Script:
    """One script of the mix; `name` is what reports call it."""

    name: str
    text: str
    weight: int = 1
    builtin: bool = False


def from_builtin(prefix: str, weight: int = 1) -> Script:
    """Return the built-in script whose name begins so; raises ComplaintError when none or several do."""
    _, description, text = _builtin(prefix)
    return Script(description, text, weight, builtin=True)


def from_file(name: str, weight: int = 1) -> Script:
    """Read a script; `-` is standard input."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ComplaintError(f'could not open file "{name}": {error.strerror}') from error
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise ComplaintError(
            f"{name}:{line}: the script has a zero byte", "Remove it: pgbench ignores everything after it."
        )
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ComplaintError(
            f"{name}:{line}: the script is not UTF-8 text", "Convert it, for example with iconv."
        ) from error
    learn(text)
    return Script(name, text, weight)


def title(scripts: list[Script]) -> str:
    """Return the names of the scripts, or how many there are."""
    names = [
        script.name.removeprefix("<builtin: ").removesuffix(">") if script.builtin else Path(script.name).name
        for script in scripts
    ]
    return ", ".join(names) if len(names) <= _SHOWN else f"{len(names)} scripts"


def builtin_list() -> str:
    """Return the names and descriptions as `-b list` shows them."""
    lines = "".join(f"  {name:>13}: {description}\n" for name, description in _core.builtin_scripts())
    return f"Available builtin scripts:\n{lines}\n"


def builtin_source(prefix: str) -> str:
    """Return a built-in script's text as `--show-script` shows it."""
    name, description, text = _builtin(prefix)
    return f"-- {name}: {description}\n{text}\n"


def commands_of(script: Script, mode: str, variables: list[str]) -> list[dict[str, Any]]:
    """Return the script's commands (line, text, kind); raises ComplaintError with the place of an error."""
    try:
        report = json.loads(_core.check_script(script.name, script.text, mode, variables, late=True))
    except _core.ScriptError as error:
        raise _where(script, error) from error
    commands: list[dict[str, Any]] = report["commands"]
    return commands


def _builtin(prefix: str) -> tuple[str, str, str]:
    names = [name for name, _ in _core.builtin_scripts() if name.startswith(prefix)]
    if len(names) == 1:
        return _core.builtin_script(names[0])
    if names:
        said = f'ambiguous builtin name: {len(names)} builtin scripts found for prefix "{prefix}"'
    else:
        said = f'no builtin script found for name "{prefix}"'
    raise ComplaintError(f"{said}\n{builtin_list()}".removesuffix("\n"))


def _where(script: Script, error: _core.ScriptError) -> ComplaintError:
    message, _, line, column, hint = error.args
    if message.startswith("empty command list"):
        return ComplaintError(f'empty command list for script "{script.name}"', hint)
    lines = script.text.splitlines()
    shown = ""
    if 0 < line <= len(lines):
        # A tab before the mark keeps its width under a tab.
        before = "".join(c if c == "\t" else " " for c in lines[line - 1][: column - 1])
        shown = f"\n{lines[line - 1]}\n{before}^ error found here"
    return ComplaintError(f"{script.name}:{line}: {message}{shown}", hint)
