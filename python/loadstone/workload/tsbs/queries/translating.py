"""A query that was made for one database, in the words of another.

A text is recognised by its label and by what it looks like: every way in which TSBS, or we, would write
that kind becomes a pattern with the parameters left open. What a pattern finds is filled in again and must
give the same text, so a query that somebody has changed is never taken for the one that it was.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from loadstone.workload.tsbs.queries.dialects import dialects
from loadstone.workload.tsbs.queries.draws import Parameters
from loadstone.workload.tsbs.queries.kinds import KINDS
from loadstone.workload.tsbs.queries.texts import Layout, render, renderer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.workload.tsbs.queries.dialects import Dialect
    from loadstone.workload.tsbs.queries.generating import Query
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


@dataclass(frozen=True, slots=True)
class Translated:
    """A query in a dialect, or why it could not be had."""

    query: Query
    reason: str | None = None
    """Why the text is as it was, though the target may not understand it; None when it is translated."""


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to write a kind."""

    kind: Kind
    dialect: Dialect
    layout: Layout
    pattern: re.Pattern[str]


def translate(query: Query, dialect: Dialect) -> Translated:
    """Return the query in the words of a dialect; one that is not recognised comes back as it is."""
    forms = _forms(query.label, dialect)
    if not forms:
        return Translated(query, f'"{query.label}" is not a known kind of query')
    for form in forms:
        parameters = _read(form, query.sql)
        if parameters is not None:
            sql = renderer(form.kind, dialect, form.layout)(parameters)
            return Translated(query if sql == query.sql else replace(query, sql=sql))
    return Translated(query, f'the text of "{query.label}" is not as TSBS writes it')


def _read(form: _Form, sql: str) -> Parameters | None:
    found = form.pattern.fullmatch(sql)
    if found is None:
        return None
    open_ones = found.groupdict()
    devices = tuple(_DEVICE.findall(open_ones.get("devices") or ""))
    parameters = Parameters(
        _utc(open_ones.get("start")), _utc(open_ones.get("end")), devices, open_ones.get("fleet") or ""
    )
    if len(devices) != form.kind.devices:
        return None
    return parameters if renderer(form.kind, form.dialect, form.layout)(parameters) == sql else None


def _utc(time: str | None) -> str:
    return "" if time is None else f"{time} +0000"


@cache
def _forms(label: str, dialect: Dialect) -> tuple[_Form, ...]:
    kinds = [kind for kind in KINDS.values() if kind.human_label == label]
    return tuple(form for kind in kinds for form in _forms_of(kind, dialect))


def _forms_of(kind: Kind, wanted: Dialect) -> Iterator[_Form]:
    blank = Parameters("\ue000 +0000", "\ue001 +0000", ("\ue002",) if kind.devices else (), "\ue003")
    seen: set[str] = set()
    # TSBS's usual layout first; the dialect asked for too, for a text that is in it already stays as it is.
    layouts = [
        Layout(json, tags, bucket)
        for json, tags, bucket in product((False, True), (True, False), (True, False))
    ]
    for dialect, layout in product((*dialects(), wanted), layouts):
        text = render(kind, blank, dialect, layout)
        if text in seen:
            continue
        seen.add(text)
        yield _Form(kind, dialect, layout, re.compile(_pattern(text), re.DOTALL))


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
