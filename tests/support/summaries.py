"""A run's summary as summary.json has it, and what is shown of such a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import inspect

from loadstone import report
from loadstone.results.documents.summary import Summary
from loadstone.summary import document as summary

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

Json = dict[str, Any]
Part = TypeVar("Part", bound=msgspec.Struct)


def plain(figures: object) -> Any:
    """Return a part of a summary as the document has it."""
    return msgspec.to_builtins(figures, enc_hook=lambda number: number.item())


def typed(document: Json) -> Summary:
    return msgspec.convert(document, Summary)


def summarise(folder: Path) -> Json:
    found: Json = plain(summary.summarise(folder))
    return found


def write_summary(folder: Path) -> Json:
    found: Json = plain(summary.write_summary(folder))
    return found


def render(document: Json) -> str:
    return report.render(typed(document))


def summary_table(document: Json) -> RenderableType:
    return report.summary_table(typed(document))


def headline_json(document: Json) -> Json:
    return report.headline_json(typed(document))


def part(kind: type[Part], document: Json) -> Part:
    """Return a part of a document of which a test says only what matters; the rest is empty."""
    return msgspec.convert(_filled(document, inspect.type_info(kind)), kind)


def _filled(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _filled(value, kind.type)
    if isinstance(kind, inspect.UnionType):
        structs = [one for one in kind.types if isinstance(one, inspect.StructType | inspect.ListType)]
        return _filled(value, structs[0]) if value is not None and structs else value
    if isinstance(kind, inspect.ListType):
        return [_filled(item, kind.item_type) for item in value]
    if not isinstance(kind, inspect.StructType):
        return value
    fields = {field.encode_name: field for field in kind.fields}
    told = {name: _filled(item, fields[name].type) for name, item in value.items() if name in fields}
    missing = (field for name, field in fields.items() if field.required and name not in told)
    return told | {field.encode_name: _empty(field.type) for field in missing}


def _empty(kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _empty(kind.type)
    if isinstance(kind, inspect.UnionType):
        inside = {type(one) for one in kind.types}
        return None if inspect.NoneType in inside else _empty(kind.types[0])
    if isinstance(kind, inspect.StructType):
        return _filled({}, kind)
    empty = {inspect.ListType: [], inspect.DictType: {}, inspect.StrType: "", inspect.BoolType: False}
    return empty.get(type(kind), 0)
