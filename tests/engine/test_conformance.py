"""Every scenario is planned for every engine, and what each engine says in SQL is in a file of its own.

No server is asked: a recorded one answers. With LOADSTONE_SNAPSHOTS=update in the environment the files
tests/snapshots/ENGINE.txt are written again; what has changed is then to be read in the diff.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.timeseries_data import DATASET, where

from loadstone.engine.dialect import tables, timeseries
from loadstone.engine.dialect.tables import TableFacts
from loadstone.engine.library.engine import LibraryEngine
from loadstone.engine.postgres import statements
from loadstone.engines import _by_module, all_engines, engine, engine_of_scheme, engine_of_short_name
from loadstone.errors import LoadstoneError
from loadstone.model import PlainTable, SeriesTables
from loadstone.plan.model import PlainQueriesWorkload, TableLoadWorkload, TimeSeriesLoadWorkload
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario
from loadstone.workload.load import look
from loadstone.workload.load.rows import chosen_method
from loadstone.workload.tsbs.content import content_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from loadstone.engine import Engine
    from loadstone.engine.dialect.tables import RowTable
    from loadstone.model import BulkLoad, Load
    from loadstone.plan.model import PlannedPhase
    from loadstone.workload.load import Content
    from loadstone.workload.tsbs.content import Content as SeriesContent

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
UPDATE = os.environ.get("LOADSTONE_SNAPSHOTS") == "update"
HOW = "LOADSTONE_SNAPSHOTS=update pytest tests/engine/test_conformance.py"
ENGINES = list(all_engines())
SCENARIOS = list(builtin_scenarios())

PLAIN = PlainTable("t")
ROWS_SEEN: dict[str, Content] = {}
SERIES_SEEN: dict[str, SeriesContent] = {}
Row = dict[str, Any]


class Recorded:
    """A control connection to a server that was looked at once: PostgreSQL 15 with its usual extensions."""

    closed = False
    answers: Mapping[str, list[Row]] = {
        statements.LANGUAGES: [{"lanname": "plpgsql"}, {"lanname": "sql"}],
        statements.ACCESS_METHODS: [
            {"amname": name} for name in ("brin", "btree", "gin", "gist", "hash", "spgist")
        ],
        statements.EXTENSIONS: [{"name": name} for name in ("pg_freespacemap", "pg_prewarm", "pg_trgm")],
        tables._HAS_LZ4: [{"found": True}],
    }

    def execute(self, query: str | bytes, params: Mapping[str, Any] | None = None, /) -> Recorded:
        del params
        text = query.decode() if isinstance(query, bytes) else query
        self.rows = list(self.answers.get(text, []))
        return self

    def fetchone(self) -> Row | None:
        return self.rows.pop(0) if self.rows else None

    def fetchall(self) -> list[Row]:
        return list(self)

    def __iter__(self) -> Iterator[Row]:
        while self.rows:
            yield self.rows.pop(0)

    def close(self) -> None:
        """Do nothing."""


def offered(found: Engine) -> frozenset[str]:
    return found.capabilities(Recorded())


@cache
def planned(scenario: str, size: str) -> dict[str, tuple[PlannedPhase, ...]]:
    """Plan a scenario for all engines, each of which offers what its class says; phases by engine."""
    asked = [
        PlanTarget(name, name, f"{name}://", offered(found), None, wire=not isinstance(found, LibraryEngine))
        for name, found in all_engines().items()
    ]
    plan = make_plan([find_scenario(scenario)], asked, size)
    return {target.id: target.phases for target in plan.targets}


def content_of_rows(load: BulkLoad) -> Content:
    """Look at rows once, whatever tables they go into; whether a table fits them is the engine's to say."""
    key = repr(load.rows)
    if key not in ROWS_SEEN:
        ROWS_SEEN[key] = look(replace(load, table=PLAIN))
    return ROWS_SEEN[key]


def content_of_series(load: Load) -> SeriesContent:
    """Look at a data set once, for all engines."""
    key = repr(load.data)
    if key not in SERIES_SEEN:
        SERIES_SEEN[key] = content_of(load)
    return SERIES_SEEN[key]


# Plans


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", ENGINES)
def test_what_is_planned_for_an_engine_it_can_make_and_the_rest_is_skipped_in_words(
    name: str, scenario: str
) -> None:
    found = engine(name)
    for size in ("tiny", "full"):
        for phase in planned(scenario, size)[name]:
            if phase.skip is not None:
                assert phase.skip.startswith(name), phase.key
                assert f"{name} does not support " in phase.skip or "wire protocol" in phase.skip
                continue
            match phase.workload:
                case TableLoadWorkload(load=bulk, mixed=queries):
                    content = content_of_rows(bulk)
                    made = TableFacts(first=content.first, rows=content.rows)
                    assert found.tables.create(content.table, bulk.table, made)
                    assert isinstance(found.tables.indexes(content.table, bulk.table, made), tuple)
                    assert found.tables.fingerprint(content.table, bulk.table.name)
                    assert chosen_method("best", found.tables) == found.tables.methods[0]
                    assert all(found.translate(query.sql) for query in (queries.queries if queries else ()))
                case TimeSeriesLoadWorkload(load=load):
                    rows = content_of_series(load)
                    asked = timeseries.TableFacts(180000, rows.span_us)
                    assert found.series.tables(rows.dataset, load.tables, asked)
                case PlainQueriesWorkload(queries=queries):
                    assert all(found.translate(query.sql) for query in queries.queries)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_can_be_loaded_and_asked_and_says_what_it_needs(name: str) -> None:
    found = engine(name)
    assert {"load", "form:default"} <= offered(found)
    assert found.target_forms
    assert found.status.startswith(("verified against ", "not yet run"))
    assert not found.needs.endswith(".")


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_is_found_without_the_others(name: str) -> None:
    """By its module, which has its name, and by the schemes of its URLs."""
    assert _by_module(name) is engine(name) is all_engines()[name]
    assert all(engine_of_scheme(scheme) is engine(name) for scheme in engine(name).schemes)
    assert all(engine_of_short_name(word) is engine(name) for word in engine(name).short_names)


def test_schemes_and_names_mean_one_engine_each() -> None:
    schemes = [scheme for found in all_engines().values() for scheme in found.schemes]
    assert len(schemes) == len(set(schemes))
    titles = [found.title for found in all_engines().values()]
    assert len(titles) == len(set(titles))


# SQL

TYPES = {
    "at": "timestamp", "day": "date", "year": "int16", "n": "int32", "big": "int64", "y": "float32",
    "x": "float64", "word": "text", "doc": "json", "ok": "bool",
}  # fmt: skip
TABLE: RowTable = {
    "name": "t",
    "metrics": len(TYPES),
    "columns": [{"name": name, "type": kind} for name, kind in TYPES.items()],
    "usual_indexes": ["n", "big", "word", "at"],
    "sequence": "at",
    "sequence_first": 1_541_030_400_000_000,
    "sequence_step": 10_000,
    "row_bytes": 60.0,
}
UNORDERED: RowTable = {**TABLE, "sequence": None, "sequence_first": None, "sequence_step": None}
ROWS = TableFacts(rows=1000)
WISHES = {
    "as it is usual": (TABLE, PLAIN),
    "as columns": (TABLE, replace(PLAIN, form="columnar")),
    "without a column that grows": (UNORDERED, PLAIN),
    "with indexes": (TABLE, replace(PLAIN, indexes="n, (big,word)")),
    "with a BRIN index": (TABLE, replace(PLAIN, indexes="at:brin")),
    "with a primary key": (TABLE, replace(PLAIN, primary_key="at")),
    "in partitions": (TABLE, replace(PLAIN, partition_column="at", partition_rows=600, indexes="n")),
    "in tablespaces": (TABLE, replace(PLAIN, tablespace="slow", index_tablespace="fast", indexes="n")),
    "compressed by lz4": (TABLE, replace(PLAIN, compression="lz4")),
}
SERIES_WISHES = {
    "as it is usual": SeriesTables(),
    "in chunks, compressed": SeriesTables(chunk_time_s=43200, hash_partitions=2, compress=True),
    "tags as JSON": SeriesTables(jsonb_tags=True, in_table_tag=False, time_index=False),
}
QUERIES = (
    "select count(*) from flights where origin_country='USA'",
    "select origin_state,dest_state,avg(airtime) as atime from flights where distance<175 group by 1,2",
)


def plain_lines(found: Engine) -> Iterator[str]:
    """Yield what an engine says of plain tables."""
    answers = found.tables
    for title, (table, options) in WISHES.items():
        yield f"## A table {title}"
        try:
            made = answers.create(table, options, ROWS)
        except LoadstoneError as error:
            yield f"refused: {error.message} ({error.hint})"
            continue
        yield from made
        yield from answers.indexes(table, options, ROWS)
        yield from (f"after the load: {text}" for text in answers.after_load(table, options))
        yield from (f"to settle: {text}" for text in answers.settle(options))
        yield from (f"note: {note}" for note in answers.notes(options, ROWS))
    yield "## The fingerprint of a table"
    yield answers.fingerprint(TABLE, "t")
    yield "## Dropping a table"
    yield answers.drop("t")


def series_lines(found: Engine) -> Iterator[str]:
    """Yield what an engine says of time series."""
    answers = found.series
    for title, options in SERIES_WISHES.items():
        yield f"## Time series {title}"
        try:
            made = answers.tables(DATASET, options, where())
        except LoadstoneError as error:
            yield f"refused: {error.message} ({error.hint})"
            continue
        yield from made
        yield from (f"after the load: {text}" for text in answers.after_load(DATASET, options))
        yield from (f"note: {note}" for note in answers.notes(options, where()))
    yield "## The fingerprint of a time series"
    yield answers.fingerprint(DATASET["tables"][1])
    yield "## A bucket of time"
    yield answers.bucket("10 minutes", "time")


def snapshot(found: Engine) -> str:
    """Return all that an engine says without being asked by a server."""
    lines = [f"# {found.title}", "## What it offers", *sorted(offered(found))]
    lines.append(f"plain tables are loaded by {', '.join(found.tables.methods)}")
    lines += plain_lines(found)
    if "time series" in offered(found):
        lines += series_lines(found)
    lines += ["## Queries in its words", *map(found.translate, QUERIES)]
    spaced = (f"\n{line}" if line.startswith("##") else line for line in lines)
    return "\n".join(spaced) + "\n"


@pytest.mark.parametrize("name", ENGINES)
def test_the_sql_of_an_engine_is_as_it_was_looked_at(name: str) -> None:
    path, said = SNAPSHOTS / f"{name}.txt", snapshot(engine(name))
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(said)
    assert path.is_file(), f"the engine {name} has no snapshot yet: {HOW}, then read {path.name}"
    assert path.read_text() == said, f"{name} says something else now; if it is meant: {HOW}"


def test_no_snapshot_is_left_of_an_engine_that_is_gone() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} <= set(ENGINES)
