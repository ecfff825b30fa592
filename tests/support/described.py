"""Whether docs/run-folder.md describes a document: every key that it has, and what its values are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
from document_types import DOCUMENTS, fields_of, hints_of

from loadstone.results.documents.written import ADDED

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = 50
"""So many lines of each file are looked at: others are like them."""
WHOLE_PLAN = "plan.json"
"""It has every parameter of every phase; the types have what is read of it."""


def undescribed(folder: Path) -> list[str]:
    """Return where documents of a run folder have keys or values that the page does not describe."""
    return sorted({words for path in folder.rglob("*.json*") for words in _of_file(path)})


def _of_file(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    texts = text.splitlines()[:LINES] if path.suffix == ".jsonl" else [text]
    for document in map(json.loads, texts):
        kind = DOCUMENTS.get(_name(path, document))
        if kind and path.name != WHOLE_PLAN:
            yield from _of_value(document, kind, path.name)


def _name(path: Path, document: Any) -> str:
    one_by_one = path.name == "drive.json" and "runs" in (document.get("plain_queries") or {})
    return "drive.json of queries that ran one by one" if one_by_one else path.name


def _of_value(value: Any, hint: Any, where: str) -> Iterator[str]:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        yield from _of_value(value, inside[0], where)
    elif origin in (UnionType, Union):
        for one in inside:
            if _fits(value, one):
                yield from _of_value(value, one, where)
    elif origin in (list, dict):
        items = value.values() if isinstance(value, dict) else value
        for item in items:
            yield from _of_value(item, inside[-1], f"{where}[]")
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield from _of_struct(value, hint, where)


def _fits(value: Any, hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _fits(value, get_args(hint)[0])
    kind = get_origin(hint) or hint
    is_object = kind is dict or (isinstance(kind, type) and issubclass(kind, msgspec.Struct))
    return is_object if isinstance(value, dict) else kind is list and isinstance(value, list)


def _of_struct(value: dict[str, Any], kind: type[msgspec.Struct], where: str) -> Iterator[str]:
    names = {field.encode_name: field.name for field, _ in fields_of(kind)}
    hints = hints_of(kind)
    for key, item in value.items():
        if key in names:
            yield from _of_value(item, hints[names[key]], f"{where}.{key}")
        else:
            yield f"{where}.{key} is not described"
    for one in (kind, *([ADDED[kind]] if kind in ADDED else [])):
        try:
            msgspec.convert(value, one)
        except msgspec.ValidationError as error:
            yield f"{where}: {error}"
