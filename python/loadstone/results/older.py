"""Documents of older formats in today's names.

Format 1 is that of version 0.1.0:

| document | then | now |
|---|---|---|
| phase.json | kind `drive`, `query` | `script`, `queries` |
| phase.json | `published[].question` | `published[].query` |
| drive.json | `asking`, its `questions`, `runs[].question` | `plain_queries`, its `queries`, `runs[].query` |

Until format 2 of plan.json a phase had `kind` and one key for each thing that it might do (`drive`, `load`,
`bulk`, `query`, `plain_queries`, in format 1 `questions`), all but one or two of them null. Since format 3 it
has one `workload`, whose `type` says what is done.

Documents of today pass unchanged. Values that are not of the expected type stay for the types to refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.results.documents import Drive, Phase, Plan, QueriesInTurnDrive

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.results.documents import Struct

Document = dict[str, Any]

_KINDS = {"drive": "script", "query": "queries"}
_ONE_OF = ("kind", "drive", "load", "bulk", "query", "plain_queries", "questions", "row_check")
"""What a planned phase had in place of `workload`."""


def renamed(document: Document, kind: type[Struct]) -> Document:
    """Return a document with today's names, for a file that is read as a `kind`."""
    rename = _BY_KIND.get(kind)
    return rename(document) if rename else document


def _phase(phase: Document) -> Document:
    return _each(_kind(phase), "published", lambda figure: _key(figure, "question", "query"))


def _plan(plan: Document) -> Document:
    return _each(plan, "targets", lambda target: _each(target, "phases", _planned))


def _planned(phase: Document) -> Document:
    phase = _kind(phase)
    if "workload" in phase or "kind" not in phase:
        return phase
    rest = {key: value for key, value in phase.items() if key not in _ONE_OF}
    return rest | {"workload": _workload(phase)}


def _workload(phase: Document) -> Document:
    """Return what a phase of format 1 or 2 was to do."""
    drive, load, bulk, mix = (phase.get(key) for key in ("drive", "load", "bulk", "query"))
    plain = phase.get("plain_queries") or phase.get("questions")
    if drive is not None:
        return {"type": "script", "drive": drive, "row_check": phase.get("row_check")}
    if bulk is not None:
        return {"type": "table-load", "load": bulk, "mixed": plain}
    if load is not None:
        return {"type": "timeseries-load", "load": load, "mixed": mix}
    if plain is not None:
        return {"type": "plain-queries", "queries": plain}
    return {"type": "timeseries-queries", "queries": mix} if mix is not None else {"type": phase["kind"]}


def _drive(drive: Document) -> Document:
    found = _key(drive, "asking", "plain_queries")
    queries = found.get("plain_queries")
    if found is drive or not isinstance(queries, dict):
        return found
    queries = _each(_key(queries, "questions", "queries"), "runs", lambda run: _key(run, "question", "query"))
    return found | {"plain_queries": queries}


def _kind(document: Document) -> Document:
    kind = document.get("kind")
    return document | {"kind": _KINDS[kind]} if isinstance(kind, str) and kind in _KINDS else document


def _each(document: Document, key: str, rename: Callable[[Document], Document]) -> Document:
    parts = document.get(key)
    if not isinstance(parts, list):
        return document
    return document | {key: [rename(part) if isinstance(part, dict) else part for part in parts]}


def _key(document: Document, then: str, now: str) -> Document:
    """Return an object with one key renamed in its place."""
    if then not in document or now in document:
        return document
    return {now if key == then else key: value for key, value in document.items()}


_BY_KIND: dict[type[Struct], Callable[[Document], Document]] = {
    Phase: _phase,
    Plan: _plan,
    Drive: _drive,
    QueriesInTurnDrive: _drive,
}
