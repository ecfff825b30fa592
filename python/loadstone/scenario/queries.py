"""Phases that run plain SQL: `queries` of a [[phase]] with `statements` → PlainQueries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.model import Draw, PlainQueries, PlainQuery
from loadstone.scenario.schema import Problem, key_path
from loadstone.scenario.sql import placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.model import PhaseKind

CAUTIOUS_SECONDS = 1.0
"""How long one run of a query takes, for estimates: nobody knows before it was asked."""

_SAME = ("table", "cold", "warm_runs", "clients", "duration_s", "distinct", "timeout_s")
_IN_TURN = ("cold", "warm_runs")
_AS_A_LOAD = ("clients", "draws", "distinct")

Path = tuple[str | int, ...]


def is_plain(table: Mapping[str, Any]) -> bool:
    """Tell a phase with queries in plain SQL from one with TSBS's."""
    return "statements" in table.get("queries", {})


def plain_queries_of(
    given: Mapping[str, Any], statement: Callable[[str], str], seed: int, where: str
) -> PlainQueries:
    """Return the queries of a `queries` table, filled in; `where` is its place, for errors.

    `statement` turns SQL, or the name of a file, into the one statement that it is. Raises LoadstoneError
    where the SQL and the draws do not fit together.
    """
    queries = tuple(PlainQuery(q["name"], statement(q["sql"])) for q in given["statements"])
    draws = tuple(Draw(d["name"], d["least"], d["most"]) for d in given.get("draws", ()))
    _check_names(queries, draws, where)
    same = {key: given[key] for key in _SAME if key in given}
    return PlainQueries(queries=queries, draws=draws, seed=seed, **same)


def query_problems(table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield keys that a phase of kind queries cannot have with the others."""
    if not is_plain(table):
        if "data" not in table:
            where = key_path((*path, "data"))
            yield Problem(where, "TSBS's queries need a data set", "Add data = { use_case = … }.")
        elif "use_case" not in table["data"]:
            where = key_path((*path, "data"))
            yield Problem(where, "TSBS's queries need a time series", "Set data.use_case.")
        return
    for key in ("data", "timeout_s"):
        if key in table:
            hint = "Remove it." if key == "data" else "Set queries.timeout_s."
            where = key_path((*path, key))
            yield Problem(where, "a phase with queries in plain SQL has no such key", hint)


def published_problems(table: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Yield published figures of queries that the phase does not have."""
    names = [query["name"] for query in table.get("queries", {}).get("statements", ())]
    for place, figure in enumerate(table.get("published", ())):
        if "query" in figure and figure["query"] not in names:
            where = key_path((*path, "published", place, "query"))
            hint = f"Queries: {', '.join(names) or 'none'}."
            yield Problem(where, f"the phase has no query '{figure['query']}'", hint)


def query_clashes(queries: Mapping[str, Any], kind: PhaseKind, path: Path) -> Iterator[Problem]:
    """Yield keys of plain queries, filled in, that contradict each other."""
    yield from _mode_clashes(queries, kind, path)
    for key in ("statements", "draws"):
        seen: set[str] = set()
        for place, entry in enumerate(queries.get(key, ())):
            if entry["name"] in seen:
                where = key_path((*path, key, place, "name"))
                yield Problem(where, f"'{entry['name']}' already exists", "Choose another name.")
            seen.add(entry["name"])
    for place, draw in enumerate(queries.get("draws", ())):
        if draw["least"] > draw["most"]:
            where = key_path((*path, "draws", place, "most"))
            words = f"there is no number between {draw['least']} and {draw['most']}."
            yield Problem(where, words, "Set `most` to at least `least`.")


def seconds_of_queries(queries: PlainQueries) -> float:
    """Return about how long queries are asked: their duration, or a cautious guess for each run."""
    if queries.duration_s is not None:
        return queries.duration_s
    return CAUTIOUS_SECONDS * len(queries.queries) * (queries.cold + queries.warm_runs)


def _mode_clashes(queries: Mapping[str, Any], kind: PhaseKind, path: Path) -> Iterator[Problem]:
    wrong: tuple[str, ...]
    if kind == "load":
        wrong = (*_IN_TURN, "duration_s")
        words, hint = "queries during a load repeat until it ends.", "Remove it."
    elif "duration_s" in queries:
        wrong = _IN_TURN
        words, hint = "with duration_s the queries are a load: none of them is cold or warm.", "Remove it."
    else:
        wrong = _AS_A_LOAD
        words, hint = "without duration_s, queries run one by one.", "Add duration_s."
    for key in wrong:
        if key in queries:
            yield Problem(key_path((*path, key)), words, hint)
    if "distinct" in queries and not queries.get("draws"):
        yield Problem(key_path((*path, "distinct")), "nothing is drawn", "Add draws, or remove it.")
    if not queries.get("cold", True) and queries.get("warm_runs") == 0:
        where = key_path((*path, "warm_runs"))
        yield Problem(where, "neither cold nor warm: nothing would run", "Choose one of them.")


def _check_names(queries: tuple[PlainQuery, ...], draws: tuple[Draw, ...], where: str) -> None:
    """Refuse a `:name` that is not drawn, and a draw of which no query makes use."""
    drawn = {draw.name for draw in draws}
    used: set[str] = set()
    for query in queries:
        found = {name for _, _, name in placeholders(query.sql, query.name)}
        for name in sorted(found - drawn):
            raise LoadstoneError(
                f"{where}: ':{name}' in {query.name} has no draw",
                f"Add a draw with this name; the draws are: {', '.join(sorted(drawn)) or 'none'}.",
            )
        used |= found
    for name in sorted(drawn - used):
        raise LoadstoneError(
            f"{where}: no query uses the draw '{name}'", f"Write :{name} in one, or remove it."
        )
