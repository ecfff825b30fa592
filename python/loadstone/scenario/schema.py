"""What is wrong with a document, by its JSON schema, as key paths and words that say how to mend it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, validators

from loadstone.errors import LoadstoneError
from loadstone.scenario.parameter import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jsonschema.exceptions import ValidationError


def _is_number(_: object, value: object) -> bool:
    return _is_integer(_, value) or (isinstance(value, float) and math.isfinite(value))


def _is_integer(_: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# TOML has nan and inf, which are no quantities; 1e3 is no whole number, as in TOML itself.
_RENAMED = {"ask": "queries", "questions": "statements", "question": "query"}
"""Keys of version 0.1.0 -> their names now."""
_RENAMED_KINDS = {"drive": "script", "query": "queries"}
"""The same of a phase's `kind`."""

_Validator = validators.extend(  # type: ignore[no-untyped-call] # it has no types
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {"number": _is_number, "integer": _is_integer}
    ),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong at one key path, such as `phase[2].sweep.index`."""

    path: str
    message: str
    hint: str


@cache
def scenario_schema() -> Mapping[str, Any]:
    """Return the schema of scenario.toml."""
    text = resources.files("loadstone.scenario").joinpath("scenario.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def scenario_problems(document: object) -> list[Problem]:
    """Return what the schema has against a whole scenario.toml."""
    return _problems(scenario_schema(), document, ())


def phase_problems(phase: object, index: int) -> list[Problem]:
    """Return what the schema has against one phase whose templates are filled in."""
    schema = {"$ref": "#/$defs/phase", "$defs": scenario_schema()["$defs"]}
    return _problems(schema, phase, ("phase", index))


def raise_problems(where: str, problems: Sequence[Problem]) -> None:
    """Raise all problems as one LoadstoneError; return when there are none."""
    if not problems:
        return
    lines = [f"{where}: {problem.path}: {problem.message}" for problem in problems]
    if len(problems) > 1:
        lines = [f"{line} {problem.hint}" for line, problem in zip(lines, problems, strict=True)]
        lines.insert(0, f"{where} has {len(problems)} problems:")
    hint = problems[0].hint if len(problems) == 1 else "Mend them in scenario.toml."
    raise LoadstoneError("\n".join(lines), hint)


def key_path(keys: Iterable[str | int]) -> str:
    """Write a key path as users know it from other tools: `phase[2].sweep.index`, counted from 0."""
    path = ""
    for key in keys:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return path


def _problems(schema: Mapping[str, Any], document: object, prefix: tuple[str | int, ...]) -> list[Problem]:
    errors = _Validator(schema).iter_errors(document)
    found = [problem for error in errors for problem in _explain(error, prefix)]
    return sorted(found, key=lambda problem: problem.path)


def _explain(error: ValidationError, prefix: tuple[str | int, ...]) -> list[Problem]:
    path = (*prefix, *error.absolute_path)
    schema = error.schema if isinstance(error.schema, dict) else {}
    description = str(schema.get("description", error.message))
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        return _unknown_keys(error.instance, schema.get("properties", {}), path)
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = [
            key for key in schema["required"] if key not in error.instance and f"'{key}'" in error.message
        ]
        hints = (schema.get("properties", {}).get(key, {}) for key in missing)
        return [
            Problem(key_path((*path, key)), "this key is missing.", _description(hint))
            for key, hint in zip(missing, hints, strict=True)
        ]
    if "propertyNames" in error.absolute_schema_path:
        path = (*path, str(error.instance))
        return [Problem(key_path(path), "this cannot be a name here.", f"Use: {description}")]
    shown = json.dumps(error.instance, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 60 else shown[:57] + "…"  # noqa: PLR2004 - what fits a line
    words = f"{_renamed_kind(error)}Use: {description}{_range_words(schema)}"
    return [Problem(key_path(path) or "the file", f"{shown} is not possible here.", words)]


def _renamed_kind(error: ValidationError) -> str:
    """Return the new name of a phase's kind, if this is an old one."""
    is_kind = error.absolute_path and error.absolute_path[-1] == "kind" and isinstance(error.instance, str)
    now = _RENAMED_KINDS.get(str(error.instance)) if is_kind else None
    return f'The kind "{error.instance}" is called "{now}" now. ' if now else ""


def _range_words(schema: Mapping[str, Any]) -> str:
    """Say between which numbers a value must be, where it is a number."""
    for choice in (schema, *schema.get("anyOf", ())):
        least, above = choice.get("minimum"), choice.get("exclusiveMinimum")
        most = choice.get("maximum")
        if most is not None and (least is not None or above is not None):
            begin = f"from {least:,}" if above is None else f"above {above:,}"
            return f" Numbers {begin} up to {most:,}."
    return ""


def _unknown_keys(
    table: Mapping[str, Any], known: Mapping[str, Any], path: tuple[str | int, ...]
) -> list[Problem]:
    names = ", ".join(known)
    return [
        Problem(key_path((*path, key)), "there is no such key.", f"{_meant(key, known)}Known here: {names}.")
        for key in table
        if key not in known
    ]


def _meant(key: str, known: Mapping[str, Any]) -> str:
    now = _RENAMED.get(key)
    return f"It is called `{now}` now. " if now in known else nearest(key, known)


def _description(schema: Mapping[str, Any]) -> str:
    """Return a schema's own words, following one reference."""
    reference = schema.get("$ref")
    if reference:
        schema = scenario_schema()["$defs"][reference.rpartition("/")[2]]
    return f"Add it: {schema.get('description', 'see docs/scenario-format.md')}"
