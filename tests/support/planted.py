"""Tables of somebody else's under every name that built-in scenarios use, and whether they are untouched."""

from __future__ import annotations

import re
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.timeseries import names as names_of
from loadstone.plan.model import ScriptWorkload, TableLoadWorkload, TimeSeriesLoadWorkload
from loadstone.plan.plan import PlanTarget, make_plan
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario
from loadstone.target import open_target, parse_target
from loadstone.workload.load.tables import LEDGER
from loadstone.workload.tsbs.content import content_of
from support.workloads import is_table_load, table_load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.control import Control
    from loadstone.plan.model import PlannedPhase
    from support.sandbox import Database

OTHER = "planter"
"""A role that owns half of what is planted in PostgreSQL."""
_OURS = re.compile(r"\bloadstone\.(\w+)")
_FUNCTION = re.compile(r"create or replace function", re.IGNORECASE)


@cache
def _phases(size: str = "tiny") -> tuple[PlannedPhase, ...]:
    target = PlanTarget("pg", "postgres", "postgres://localhost/x")
    scenarios = [find_scenario(name) for name in builtin_scenarios()]
    return make_plan(scenarios, [target], size).targets[0].phases


def _made_in(phase: PlannedPhase) -> Iterator[str]:
    """Yield the names of what a phase makes, fills or drops."""
    texts = [*phase.setup]
    match phase.workload:
        case ScriptWorkload(drive=drive):
            texts += [script.text for script in drive.scripts]
        case TableLoadWorkload(load=bulk):
            yield bulk.table.name
            texts += bulk.after
        case TimeSeriesLoadWorkload(load=load):
            yield from names_of(content_of(load).dataset)
    for text in texts:
        yield from _OURS.findall(text)


@cache
def names() -> tuple[str, ...]:
    """Give all names that built-in scenarios make, fill or drop."""
    found = {LEDGER, "test_p0000", "cpu_before", *(f"feed{number}" for number in range(1, 5))}
    for phase in {phase.id + phase.scenario: phase for phase in _phases()}.values():
        found.update(_made_in(phase))
    found.update(table_load(phase).table.name for phase in _phases("full") if is_table_load(phase))
    return tuple(sorted(found))


def functions() -> Iterator[str]:
    """Yield what makes the functions of scenarios, in `public`."""
    texts = {text for phase in _phases() for text in phase.setup if _FUNCTION.match(text)}
    yield from (text.replace("loadstone.", "public.") for text in sorted(texts))


_STATE = """
select relname, relkind, oid::bigint, relfilenode::bigint, pg_get_userbyid(relowner), reltuples,
       case when relkind = 'v' then pg_get_viewdef(oid) end,
       case when relkind in ('r', 'v', 'S')
            then query_to_xml(format('select * from public.%I', relname), true, false, '')::text end
from pg_class where relnamespace = 'public'::regnamespace
union all
select proname, 'f', oid::bigint, 0, pg_get_userbyid(proowner), 0, prosrc, null
from pg_proc where pronamespace = 'public'::regnamespace order by 1, 2, 3
"""


def plant_postgres(database: Database) -> None:
    """Plant tables with a sequence, an index and rows, a view on each, and functions."""
    with database.connect() as control:
        control.execute(
            f"do $$ begin create role {OTHER}; exception when duplicate_object then end $$".encode()
        )
        for number, name in enumerate(names()):
            made = [
                f'create table public."{name}" (id serial primary key, word text)',
                f"""insert into public."{name}" (word) values ('a'), ('b'), ('{name}')""",
                f'create view public."seen_{name}" as select word from public."{name}"',
            ]
            if number % 2:
                made.append(f'alter table public."{name}" owner to {OTHER}')
            control.execute(";".join(made).encode())
        for text in functions():
            control.execute(text.encode())


def state_of_postgres(database: Database) -> list[Any]:
    """Give definitions, owners, files and contents of all that is in `public`."""
    with database.connect() as control:
        control.execute(
            "set search_path to pg_catalog"
        )  # views are then shown with the schemas of their tables
        return control.execute(_STATE.encode()).fetchall()


MAIN = {"duckdb": "main.", "chdb": "default.", "questdb": ""}
_COLUMNS = {
    "duckdb": "(id int primary key, word varchar)",
    "chdb": "(id Int32, word String) engine = MergeTree order by id",
    "questdb": "(id int, word varchar)",
}
_DEFINED = {
    "duckdb": "select sql from duckdb_tables() where schema_name = 'main' union all "
    "select sql from duckdb_views() where schema_name = 'main' order by 1",
    "chdb": "select name, uuid::String as uuid, create_table_query as sql from system.tables "
    "where database = 'default' order by name",
    "questdb": "select id, table_name from tables() where table_name not like 'sys.%' order by 1",
}


def _with_control(target: str) -> Any:
    return open_target(parse_target(target), 1)


def plant(engine: str, target: str) -> None:
    """Plant tables and views where an engine's unqualified names lead without a scenario."""
    with _with_control(target) as opened, closing(opened.connect("planter")) as control:

        def run(text: str) -> None:
            control.execute(text)

        for name in names():
            place = f'{MAIN[engine]}"{name}"'
            run(f"create table {place} {_COLUMNS[engine]}")
            run(f"insert into {place} values (1, 'a'), (2, '{name}')")
            if engine != "questdb":
                run(f'create view {MAIN[engine]}"seen_{name}" as select word from {place}')


def state(engine: str, target: str) -> list[Any]:
    """Give definitions and contents of what was planted, and of all that is beside it."""
    with _with_control(target) as opened, closing(opened.connect("planter")) as control:
        found: list[Any] = _rows(control, _DEFINED[engine])
        for name in names():
            found.append(_rows(control, f'select * from {MAIN[engine]}"{name}" order by 1'))
            if engine != "questdb":
                found.append(_rows(control, f'select * from {MAIN[engine]}"seen_{name}" order by 1'))
        return found


def _rows(control: Control, text: str) -> list[Any]:
    return control.execute(text).fetchall()
