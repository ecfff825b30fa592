"""A query that was made for one database, in the words of another.

A text is recognised by its label and by what it looks like: every way in which TSBS, or we, would write
that kind becomes a pattern with the parameters left open. What a pattern finds is filled in again and must
give the same text, so a query that somebody has changed is never taken for the one that it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import msgspec

from loadstone.workload.tsbs.queries.dialects import TIMESCALEDB, dialects
from loadstone.workload.tsbs.queries.draws import Parameters
from loadstone.workload.tsbs.queries.kinds import KINDS
from loadstone.workload.tsbs.queries.texts import Layout, render, renderer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from loadstone.workload.tsbs.queries.dialects import Dialect
    from loadstone.workload.tsbs.queries.generator import Query
    from loadstone.workload.tsbs.queries.kinds import Kind

_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+"
_OPEN = {
    "\ue000": rf"(?P<start>{_TIME})",
    "\ue001": rf"(?P<end>{_TIME})",
    "\ue002": r"(?P<devices>(?:host|truck)_[0-9].*?)",
    "\ue003": r"(?P<fleet>\w+)",
}
"""What stands for a parameter while a pattern is made, and the pattern of that parameter."""

_DEVICE = re.compile(r"(?:host|truck)_[0-9]+")


class Translated(msgspec.Struct, frozen=True):
    """A query in a dialect, or why it could not be had."""

    query: Query
    reason: str | None = None
    """Why the text is as it was, though the target may not understand it; None when it is translated."""


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to write a kind, and the text in the dialect that is wanted."""

    devices: int
    pattern: re.Pattern[str]
    written: Callable[[Parameters], str]
    wanted: Callable[[Parameters], str] | None
    """None where the dialect that is wanted has the same text."""


def translate(query: Query, dialect: Dialect) -> Translated:
    """Return the query in the words of a dialect; one that is not recognised comes back as it is."""
    if not _kinds(query.label):
        return Translated(query, f'"{query.label}" is not a known kind of query')
    # The words of all dialects need all engines, which is a long import: few files need it.
    for sources in (_own, dialects):
        for form in _forms(query.label, dialect, sources):
            parameters = _read(form, query.sql)
            if parameters is not None:
                return Translated(_filled(query, form, parameters))
    return Translated(query, f'the text of "{query.label}" is not as TSBS writes it')


def _filled(query: Query, form: _Form, parameters: Parameters) -> Query:
    if form.wanted is None:
        return query
    sql = form.wanted(parameters)
    return query if sql == query.sql else msgspec.structs.replace(query, sql=sql)


def _read(form: _Form, sql: str) -> Parameters | None:
    found = form.pattern.fullmatch(sql)
    if found is None:
        return None
    open_ones = found.groupdict()
    devices = tuple(_DEVICE.findall(open_ones.get("devices") or ""))
    if len(devices) != form.devices:
        return None
    parameters = Parameters(
        _utc(open_ones.get("start")), _utc(open_ones.get("end")), devices, open_ones.get("fleet") or ""
    )
    return parameters if form.written(parameters) == sql else None


def _utc(time: str | None) -> str:
    return "" if time is None else f"{time} +0000"


def _own() -> tuple[Dialect, ...]:
    return (TIMESCALEDB,)


@cache
def _kinds(label: str) -> tuple[Kind, ...]:
    return tuple(kind for kind in KINDS.values() if kind.human_label == label)


@cache
def _forms(label: str, wanted: Dialect, sources: Callable[[], tuple[Dialect, ...]]) -> tuple[_Form, ...]:
    return tuple(form for kind in _kinds(label) for form in _forms_of(kind, wanted, sources()))


def _forms_of(kind: Kind, wanted: Dialect, sources: Iterable[Dialect]) -> Iterator[_Form]:
    blank = Parameters("\ue000 +0000", "\ue001 +0000", ("\ue002",) if kind.devices else (), "\ue003")
    seen: set[str] = set()
    # TSBS's usual layout first; the dialect asked for too, for a text that is in it already stays as it is.
    layouts = [
        Layout(json, tags, bucket)
        for json, tags, bucket in product((False, True), (True, False), (True, False))
    ]
    for dialect, layout in product((*sources, wanted), layouts):
        text = render(kind, blank, dialect, layout)
        if text in seen:
            continue
        seen.add(text)
        is_same = render(kind, blank, wanted, layout) == text
        yield _Form(
            kind.devices,
            re.compile(_pattern(text), re.DOTALL),
            renderer(kind, dialect, layout),
            None if is_same else renderer(kind, wanted, layout),
        )


def _pattern(text: str) -> str:
    pattern, used = "", set()
    for piece in re.split("([\ue000-\ue003])", text):
        if piece not in _OPEN:
            pattern += re.escape(piece)
        elif piece in used:
            pattern += r"(?P={})".format(re.findall(r"P<(\w+)>", _OPEN[piece])[0])
        else:
            used.add(piece)
            pattern += _OPEN[piece]
    return pattern
