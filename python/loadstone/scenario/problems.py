"""What is wrong with the tables of scenario.toml: every value against the type of its key, all at once.

msgspec itself stops at the first mistake, and knows nothing of templates.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import inspect

from loadstone.scenario import tables
from loadstone.scenario.parameter import nearest
from loadstone.scenario.schema import Problem, key_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Path = tuple[str | int, ...]

_LONGEST_SHOWN = 60
_RENAMED = {"ask": "queries", "questions": "statements", "question": "query"}
"""Keys of version 0.1.0 -> their names now."""
_RENAMED_VALUES = {"drive": "script", "query": "queries"}
"""The same of a phase's `kind`."""


def scenario_problems(document: object) -> list[Problem]:
    """Return what the types of keys have against a whole scenario.toml."""
    return _sorted(problems(type_of(tables.Scenario), document, ()))


def phase_problems(phase: object, index: int) -> list[Problem]:
    """Return what the types of keys have against one phase whose templates are filled in."""
    return _sorted(problems(type_of(tables.Phase), phase, ("phase", index)))


@cache
def type_of(table: type[tables.Table]) -> inspect.Type:
    """Return what msgspec knows of a table's keys."""
    return inspect.type_info(table)


def problems(kind: inspect.Type, value: object, path: Path, words: str = "") -> Iterator[Problem]:
    """Yield what is wrong with a value; `words` say what it may be, unless its type says it."""
    words = description(kind) or words
    each_once = _is_each_once(kind)
    kind = form_of(kind, value)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        yield from _table_problems(kind, value, path)
    elif isinstance(kind, inspect.DictType) and isinstance(value, dict):
        yield from _names_problems(kind, value, path, words)
    elif isinstance(kind, inspect.ListType) and isinstance(value, list):
        if each_once and _has_twice(value):
            yield _refused(kind, value, path, words)
        yield from _list_problems(kind, value, path, words)
    elif not _fits(kind, value):
        yield _refused(kind, value, path, words)


def description(kind: inspect.Type) -> str:
    """Return what a type says of itself; for a table, the first line of its documentation."""
    if isinstance(kind, inspect.Metadata):
        return str((kind.extra_json_schema or {}).get("description", "")) or description(kind.type)
    if isinstance(kind, (inspect.StructType, inspect.CustomType)):
        return (kind.cls.__doc__ or "").partition("\n")[0]
    return ""


def plain(kind: inspect.Type) -> inspect.Type:
    """Return a type without what is said of it."""
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def form_of(kind: inspect.Type, value: object) -> inspect.Type:
    """Return the type that a value is to have, where there are several: that of its own form."""
    kind = plain(kind)
    if isinstance(kind, inspect.CustomType) and issubclass(kind.cls, tables.Forms):
        return type_of(_form(kind.cls.forms, value))
    if not isinstance(kind, inspect.UnionType):
        return kind
    of_its_form = [choice for choice in map(plain, kind.types) if _is_of_form(choice, value)]
    return of_its_form[0] if len(of_its_form) == 1 else kind


def _form(forms: tuple[type[tables.Table], ...], value: object) -> type[tables.Table]:
    table = value if isinstance(value, dict) else {}
    return next((form for form in forms[:-1] if form.__struct_fields__[0] in table), forms[-1])


def _is_of_form(kind: inspect.Type, value: object) -> bool:
    if isinstance(value, dict):
        return isinstance(kind, (inspect.DictType, inspect.StructType))
    return isinstance(kind, inspect.ListType) and isinstance(value, list)


def _table_problems(kind: inspect.StructType, table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    known = {field.encode_name: field for field in kind.fields}
    for key, value in table.items():
        if key in known:
            yield from problems(known[key].type, value, (*path, key))
        else:
            hint = f"{_meant(key, known)}Known keys: {', '.join(known)}."
            yield Problem(key_path((*path, key)), "there is no such key", hint)
    for key, field in known.items():
        if field.required and key not in table:
            words = description(field.type) or "see docs/scenario-format.md"
            yield Problem(key_path((*path, key)), "this key is missing", f"Add it: {words}")


def _names_problems(
    kind: inspect.DictType, table: Mapping[str, Any], path: Path, words: str
) -> Iterator[Problem]:
    if len(table) < (kind.min_length or 0):
        yield _refused(kind, table, path, words)
    for name, value in table.items():
        if not _fits(plain(kind.key_type), name):
            place = key_path((*path, name))
            yield Problem(place, "this cannot be a name", f"Use: {description(kind.key_type)}")
        yield from problems(kind.value_type, value, (*path, name), words)


def _list_problems(kind: inspect.ListType, values: list[Any], path: Path, words: str) -> Iterator[Problem]:
    if len(values) < (kind.min_length or 0):
        yield _refused(kind, values, path, words)
    for place, value in enumerate(values):
        yield from problems(kind.item_type, value, (*path, place), words)


def _is_each_once(kind: inspect.Type) -> bool:
    """Return whether a list, where one is given, must have each value once."""
    if isinstance(kind, inspect.Metadata):
        return bool((kind.extra_json_schema or {}).get("uniqueItems")) or _is_each_once(kind.type)
    return isinstance(kind, inspect.UnionType) and any(map(_is_each_once, kind.types))


def _has_twice(values: list[Any]) -> bool:
    texts = [json.dumps(value, default=str) for value in values]
    return len(set(texts)) < len(texts)


def _fits(kind: inspect.Type, value: object) -> bool:
    """Return whether a value that is neither table nor list has a type."""
    kind = plain(kind)
    if isinstance(kind, inspect.UnionType):
        return any(_fits(choice, value) for choice in kind.types)
    if isinstance(kind, inspect.StrType):
        return isinstance(value, str) and _is_text(kind, value)
    if isinstance(kind, inspect.LiteralType):
        return isinstance(value, str) and value in kind.values
    if isinstance(kind, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(kind, (inspect.IntType, inspect.FloatType)):
        return _is_number(kind, value)
    return False


def _is_text(kind: inspect.StrType, text: str) -> bool:
    length = (kind.min_length or 0) <= len(text) <= (math.inf if kind.max_length is None else kind.max_length)
    return length and (kind.pattern is None or re.search(kind.pattern, text) is not None)


def _is_number(kind: inspect.IntType | inspect.FloatType, value: object) -> bool:
    """Return whether it is a number in its range; nan and inf, which TOML has, are no quantities."""
    numbers = int if isinstance(kind, inspect.IntType) else (int, float)
    if not isinstance(value, numbers) or isinstance(value, bool):
        return False
    finite = isinstance(value, int) or math.isfinite(value)
    above = (kind.ge is None or value >= kind.ge) and (kind.gt is None or value > kind.gt)
    return finite and above and (kind.le is None or value <= kind.le)


def _refused(kind: inspect.Type, value: object, path: Path, words: str) -> Problem:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 3] + "…"
    hint = f"{_guess(kind, value, path)}Use: {words or 'see docs/scenario-format.md'}{_range(kind)}"
    return Problem(key_path(path) or "the file", f"{shown} is not possible here", hint)


def _choices(kind: inspect.Type) -> list[inspect.Type]:
    kind = plain(kind)
    return [plain(choice) for choice in kind.types] if isinstance(kind, inspect.UnionType) else [kind]


def _guess(kind: inspect.Type, value: object, path: Path) -> str:
    """Return what may have been meant by a word, or the name that a kind of phase has now."""
    if not isinstance(value, str):
        return ""
    if path[-1:] == ("kind",) and value in _RENAMED_VALUES:
        return f'The kind "{value}" is called "{_RENAMED_VALUES[value]}" now. '
    literals = (choice for choice in _choices(kind) if isinstance(choice, inspect.LiteralType))
    return nearest(value, [str(word) for choice in literals for word in choice.values])


def _range(kind: inspect.Type) -> str:
    """Say between which numbers a value must be, where it is a number."""
    for choice in _choices(kind):
        if isinstance(choice, (inspect.IntType, inspect.FloatType)) and choice.le is not None:
            begin = f"from {choice.ge:,}" if choice.gt is None else f"above {choice.gt:,}"
            return f" Numbers {begin} up to {choice.le:,}."
    return ""


def _meant(key: str, known: Mapping[str, Any]) -> str:
    now = _RENAMED.get(key)
    return f"It is called `{now}` now. " if now in known else nearest(key, known)


def _sorted(found: Iterator[Problem]) -> list[Problem]:
    return sorted(found, key=lambda problem: problem.path)
