"""What is wrong with scenario.toml, as key paths and words that say how to mend it; and its JSON schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from loadstone.errors import LoadstoneError
from loadstone.scenario import tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong at one key path, such as `phase[2].sweep.index`."""

    path: str
    message: str
    hint: str


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of scenario.toml, made from the types of its tables, for editors."""
    forms = [form for several in tables.FORMS for form in several.forms]
    (reference, *_), parts = msgspec.json.schema_components(
        [tables.Scenario, *forms], schema_hook=_forms_schema, ref_template=_REFERENCE
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **reference, "$defs": parts}


_REFERENCE = "#/$defs/{name}"


def _forms_schema(kind: type) -> dict[str, Any]:
    if not issubclass(kind, tables.Forms):
        raise NotImplementedError(kind)
    return {
        "description": kind.__doc__,
        "anyOf": [{"$ref": _REFERENCE.format(name=form.__name__)} for form in kind.forms],
    }


def raise_problems(where: str, problems: Sequence[Problem]) -> None:
    """Raise all problems as one LoadstoneError; return when there are none."""
    if not problems:
        return
    lines = [f"{where}: {problem.path}: {problem.message}" for problem in problems]
    if len(problems) > 1:
        lines = [f"{line}. {problem.hint}" for line, problem in zip(lines, problems, strict=True)]
        lines.insert(0, f"{where} has {len(problems)} problems:")
    hint = problems[0].hint if len(problems) == 1 else "Correct them in scenario.toml."
    raise LoadstoneError("\n".join(lines), hint)


def key_path(keys: Iterable[str | int]) -> str:
    """Write a key path as users know it from other tools: `phase[2].sweep.index`, counted from 0."""
    path = ""
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return path
