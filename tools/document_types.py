#!/usr/bin/env python3
"""Writes what docs/run-folder.md says of each key from the types in loadstone.results.documents.

`tools/document_types.py` replaces everything below the mark in the page; `--check` says whether it is as the
types have it. What is above the mark is written by hand.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from loadstone.ab.documents import Experiment
from loadstone.crash.documents import Crash, Crashes
from loadstone.results import documents
from loadstone.results.documents.summary import Summary
from loadstone.results.documents.written import ADDED
from loadstone.slo.documents import Slo

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "run-folder.md"
MARK = "<!-- Below: made from the types by tools/document_types.py -->\n"
DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "run.json": documents.Run,
    "manifest.jsonl": documents.ManifestLine,
    "plan.json": documents.Plan,
    "environment.json": documents.Environment,
    "calibration.json": documents.Calibration,
    "events.jsonl": documents.Event,
    "target.json": documents.Target,
    "monitor.jsonl": documents.Sample,
    "phase.json": documents.Phase,
    "drive.json": documents.Drive,
    "drive.json of queries that ran one by one": documents.QueriesInTurnDrive,
    "hosts.json": documents.Hosts,
    "series.jsonl": documents.Interval,
    "steps.jsonl": documents.Step,
    "progress.jsonl": documents.Progress,
    "sent.jsonl": documents.Sent,
    "probe.jsonl": documents.Probed,
    "summary.json": Summary,
    "ab.json": Experiment,
    "slo.json": Slo,
    "crash.json": Crash,
    "crashes.json": Crashes,
}
UNITS = {
    "_bytes_per_s": "bytes/s",
    "_per_s": "1/s",
    "_bytes_per_row": "bytes/row",
    "_ns": "ns",
    "_us": "µs",
    "_ms": "ms",
    "_s": "s",
    "_bytes": "bytes",
    "_j": "J",
    "_w": "W",
}
"""What the end of a key says of its unit, where its type does not."""
PLAIN: dict[Any, str] = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "true, false",
    Any: "any",
    NoneType: "null",
}
INTRODUCTION = """
## Keys

What each document has. *Optional* keys may be missing, as in folders of older versions. Keys that
are *not read* are written for you and for other tools: nothing is computed with them, so the report
does not check them. A document may have more keys: others are ignored. Times that end in `_ns` are
those of the monotonic clock, or spans.
"""


def page(text: str) -> str:
    """Return the page with its generated part made again."""
    return text.partition(MARK)[0].rstrip("\n") + "\n\n" + MARK + "".join(generated())


def generated() -> Iterator[str]:
    """Yield the generated part: each type once, below the first document that has it."""
    yield INTRODUCTION
    told: set[type] = set()
    for name, kind in DOCUMENTS.items():
        yield f"\n### Keys of {name}\n"
        for one in structs_of(kind):
            if one not in told:
                told.add(one)
                yield from table(one)


def structs_of(kind: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """Return a type and all that it holds, in the order of its keys."""
    found: dict[type[msgspec.Struct], None] = {}
    waiting = [kind]
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found[one] = None
            waiting += [held for hint in hints_of(one).values() for held in held_by(hint)]
    return list(found)


def hints_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the annotations of a type's fields, with what they say of units; of those not read as well."""
    added = ADDED.get(kind)
    hints = get_type_hints(kind, include_extras=True)
    return hints | (hints_of(added) if added else {})


def fields_of(kind: type[msgspec.Struct]) -> Iterator[tuple[msgspec.structs.FieldInfo, bool]]:
    """Yield the fields of a type in their order, and whether they are read."""
    more = (
        {field.encode_name: field for field in msgspec.structs.fields(ADDED[kind])} if kind in ADDED else {}
    )
    for field in msgspec.structs.fields(kind):
        more.pop(field.encode_name, None)
        yield field, True
    yield from ((field, False) for field in more.values())


def held_by(hint: Any) -> list[type[msgspec.Struct]]:
    """Return the types of ours within an annotation."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [held for inside in get_args(hint) for held in held_by(inside)]


def table(kind: type[msgspec.Struct]) -> Iterator[str]:
    """Yield the table of a type's keys."""
    words = " ".join((inspect.getdoc(kind) or "").split())
    yield f"\n**{kind.__name__}.** {words}\n\n| key | type | unit | meaning |\n|---|---|---|---|\n"
    hints = hints_of(kind)
    for field, is_read in fields_of(kind):
        unit, meaning = told_of(hints[field.name])
        unit = unit or next((said for end, said in UNITS.items() if field.encode_name.endswith(end)), "")
        optional = ("" if field.required else "optional, ") if is_read else "not read, "
        yield f"| `{field.encode_name}` | {optional}{name_of(hints[field.name])} | {unit} | {meaning} |\n"


def told_of(hint: Any) -> tuple[str, str]:
    """Return unit and description that an annotation gives, from the outermost that has one."""
    unit = meaning = ""
    if get_origin(hint) is Annotated:
        for meta in hint.__metadata__:
            if isinstance(meta, msgspec.Meta):
                unit = unit or str((meta.extra or {}).get("unit", ""))
                meaning = meaning or (meta.description or "")
    if get_origin(hint) in (Annotated, UnionType, Union):
        for inside in get_args(hint):
            below = told_of(inside)
            unit, meaning = unit or below[0], meaning or below[1]
    return unit, meaning


def name_of(hint: Any) -> str:
    """Return an annotation in words."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return name_of(inside[0])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inside)
    if origin in (UnionType, Union):
        names = [name_of(one) for one in inside if one is not msgspec.UnsetType]
        names = ["number" if {"integer", "number"} <= {*names} and n == "integer" else n for n in names]
        return " or ".join(dict.fromkeys(names))
    if origin in (list, dict):
        return f"list of {name_of(inside[0])}" if origin is list else f"{name_of(inside[1])} by name"
    return PLAIN.get(hint) or ("any" if hint is object else f"*{hint.__name__}*")


def main() -> int:
    """Write the page, or with --check say whether it is as the types have it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page differs")
    only_check = parser.parse_args().check
    text = PAGE.read_text(encoding="utf-8")
    wanted = page(text)
    if only_check:
        if text != wanted:
            print(f"{PAGE} is not as the types have it: run {Path(__file__).name}", file=sys.stderr)
        return int(text != wanted)
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
