"""Time-series phases of a scenario: [[phase]] with `data`, `tables` and `queries` → Load, QueryMix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.model import Load, Pace, QueryMix, Series, SeriesTables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_YES = frozenset({"true", "on", "yes", "1"})
_LOAD = ("method", "batch_rows", "workers", "timeout_s")
_NOT_SWITCHES = ("field_index_count", "chunk_time_s", "hash_partitions")


def load_of(table: Mapping[str, Any]) -> Load:
    """Return the load that a phase's table, filled in, asks for."""
    wishes = dict(table.get("tables", {}))
    tables: dict[str, Any] = {k: v if k in _NOT_SWITCHES else switch(v) for k, v in wishes.items()}
    return Load(
        data=series_of(table["data"]),
        hash_workers=switch(table.get("hash_workers", False)),
        pace=_pace(table),
        tables=SeriesTables(**tables),
        **{key: table[key] for key in _LOAD if key in table},
    )


def queries_of(table: Mapping[str, Any], seed: int) -> QueryMix:
    """Return the query mix of a phase's table, filled in."""
    queries = table["queries"]
    return QueryMix(
        series=series_of(table["data"]),
        kinds=tuple(queries["kinds"]),
        seed=seed,
        pace=_pace(queries),
        **{key: queries[key] for key in ("count", "workers", "duration_s") if key in queries},
        **{key: table[key] for key in ("timeout_s",) if key in table},
    )


def series_of(data: Mapping[str, Any]) -> Series:
    """Return the data set that a `data` table, filled in, describes."""
    given = dict(data)
    given["native"] = switch(given.get("native", False))
    return Series(**given)


def needs(load: Load | None, query: QueryMix | None) -> Iterator[str]:
    """Yield the capabilities that a target must have to load and to query."""
    if load is not None:
        yield "load" if load.method == "best" else f"load:{load.method}"
    if query is not None:
        yield "query"


def switch(value: object) -> bool:
    """Read `true` or `false`, or the text that a template made of them."""
    return value if isinstance(value, bool) else str(value).strip().lower() in _YES


def _pace(table: Mapping[str, Any]) -> Pace:
    return Pace(table.get("pace", "closed"), table.get("rate_per_s"))
