"""What of a plan cannot be asked of its data or its targets: refused before anything is touched."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from loadstone import _core
from loadstone.engine import SCHEMA
from loadstone.engines import engine as engine_named
from loadstone.errors import LoadstoneError, ShellRefusedError
from loadstone.hosts.driving import refuse_library
from loadstone.plan.model import (
    CheckWorkload,
    PlainQueriesWorkload,
    ScriptWorkload,
    SizeWorkload,
    SqlWorkload,
    TableLoadWorkload,
    TimeSeriesLoadWorkload,
    TimeSeriesQueriesWorkload,
)
from loadstone.plan.plan import parsed_scripts
from loadstone.run.split_loads import refuse_unsplittable_load
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.parameter import nearest
from loadstone.visible import visible
from loadstone.workload import load
from loadstone.workload.load.rows import chosen_method
from loadstone.workload.tsbs.dataset import data_document, range_of
from loadstone.workload.tsbs.queries import KINDS, kind_named, kinds_of
from loadstone.workload.tsbs.queries.draws import Range, draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.engine.control import Control
    from loadstone.engine.dialect.loads import LoadDialect
    from loadstone.model import BulkLoad, LoadMethod, QueryMix, Series
    from loadstone.plan.model import Plan, PlannedPhase, PlannedTarget, Workload
    from loadstone.run.server import Server
    from loadstone.target import Target

_QUIET = (SqlWorkload, SizeWorkload, CheckWorkload)
"""What makes no load."""
_SHELL = ("shell", "setshell")
_CHANGE = re.compile(
    r"(?:(?:drop|alter)\s+(?:materialized\s+)?(?:table|view|sequence|index|type|function|macro(?:\s+table)?)"
    r"|truncate(?:\s+table)?|delete\s+from|update|insert\s+(?:or\s+\w+\s+)?into|copy|merge\s+into)"
    r"\s+(?:if\s+exists\s+)?(?!if\s|table\s)(?P<name>\"(?:[^\"]|\"\")+\"|[^\s(;,.\"]+)(?![^\s(;,.\"]|\s*\.)",
    re.IGNORECASE,
)
"""A statement that changes what has a name without a schema."""
_MAKING = re.compile(
    r"create\s+(?:or\s+replace\s+)?(?:table|view)\s+(?:if\s+not\s+exists\s+)?(?:loadstone\s*\.\s*)?"
    r"(?P<name>\"(?:[^\"]|\"\")+\"|[^\s(;,.\"]+)",
    re.IGNORECASE,
)


def refuse_unsplittable(plan: Plan) -> None:
    """Refuse phases that cannot be split over several load hosts. Raises LoadstoneError."""
    for target in plan.targets:
        loading = [p for p in target.phases if p.skip is None and not isinstance(p.workload, _QUIET)]
        if loading:
            refuse_library(engine_named(target.engine))
        for phase in loading:
            if isinstance(phase.workload, TimeSeriesLoadWorkload | TableLoadWorkload):
                with _named(phase):
                    refuse_unsplittable_load(phase.workload)


def split_clients(workload: Workload) -> int | None:
    """Return how many clients the load hosts share in a phase; None where one host does it alone."""
    if isinstance(workload, PlainQueriesWorkload) and workload.queries.duration_s is None:
        return None  # one after the other, by one client
    return None if isinstance(workload, _QUIET) else workload.clients


def refuse_impossible(plan: Plan) -> None:
    """Refuse data sets, queries, tables that cannot be made. Raises LoadstoneError that names the phase."""
    for phase in plan.targets[0].phases:
        with _named(phase):
            _look_at(phase)
    # What only one engine does not have skips its phase, now or once its servers have said what they offer.
    loads = {phase.key: (phase, wanted) for target in plan.targets for phase, wanted in _bulk_loads(target)}
    for phase, wanted in loads.values():
        with _named(phase):
            load.look(wanted)


def refuse_shell(plan: Plan) -> None:
    """Refuse scenarios of others that run commands on this machine. Raises ShellRefusedError.

    A scenario is data: whoever runs a stranger's folder must not run a stranger's program unasked.
    """
    ours = set(builtin_scenarios().values())
    folders = {scenario.id: scenario.folder for scenario in plan.scenarios if scenario.folder not in ours}
    found = dict.fromkeys(
        f"{where}, line {command['line']}: {visible(' '.join(command['text'].split()))}"
        for target in plan.targets
        for phase in target.phases
        if isinstance(phase.workload, ScriptWorkload) and phase.scenario in folders
        for where, script in parsed_scripts(folders[phase.scenario], phase.workload.drive)
        for command in script["commands"]
        if command["kind"] in _SHELL
    )
    if found:
        first, *others = found
        more = f" (and {len(others)} more)" if others else ""
        raise ShellRefusedError(
            f"the scenario runs a shell command on this machine: {first}{more}",
            "Read its scripts; if you trust them, add --allow-shell.",
        )


def refuse_unqualified(plan: Plan, targets: Sequence[Target]) -> None:
    """Refuse a scenario that may change a table of the user's: its statement names no schema.

    For engines that look for such a name outside of our schema as well, in a database of the user's own.
    Raises LoadstoneError.
    """
    reached = {
        target.id
        for target in targets
        if target.place is not None
        and not target.place.private
        and engine_named(target.engine).reaches_beyond_schema
    }
    for target in plan.targets:
        for phase in target.phases if target.id in reached else ():
            after = phase.workload.load.after if isinstance(phase.workload, TableLoadWorkload) else ()
            ours = set()  # what is made goes into our schema, and is found there first
            for statement in (*phase.setup, *after):
                if made := _MAKING.match(statement):
                    ours.add(made["name"].lower())
                found = _CHANGE.match(statement)
                if found is not None and found["name"].lower() not in ours:
                    raise _may_be_the_users(phase, target.id, found)


def _may_be_the_users(phase: PlannedPhase, target: str, found: re.Match[str]) -> LoadstoneError:
    name = visible(found["name"])
    return LoadstoneError(
        f"{phase.scenario}: phase '{phase.id}': '{visible(' '.join(found[0].split()))}' names no "
        f"schema: in the database {target}, {name} may be a table of yours",
        f"Write {SCHEMA}.{name}, or use a private database as the target.",
    )


def refuse_idle(plan: Plan) -> None:
    """Refuse a plan of which no target can run a single phase. Raises LoadstoneError with all reasons."""
    phases = [phase for target in plan.targets for phase in target.phases]
    if any(phase.skip is None for phase in phases):
        return
    reasons = dict.fromkeys(phase.skip for phase in phases if phase.skip is not None)
    hint = "Use a target that can; `loadstone engines` lists them."
    loads = [phase.workload.load for phase in phases if isinstance(phase.workload, TableLoadWorkload)]
    if any(load.rows.as_they_are for load in loads):
        hint = (
            "Only PostgreSQL and its relatives load CSV, text and binary files; use Parquet for all others."
        )
    raise LoadstoneError(f"nothing of this can run: {'; '.join(reasons)}", hint)


def refuse_loads(target: PlannedTarget, server: Server) -> None:
    """Refuse loads that the database cannot take as the server is set; names the phase.

    A method that the engine does not have skips the phase, once its server has said what it offers.
    """
    engine, control = server.engine, server.control
    for phase in target.phases:
        with _named(phase):
            match phase.workload if phase.skip is None else None:
                case TableLoadWorkload(load=table):
                    engine.refuse_encoding(control)
                    _refuse_method(engine.tables, control, table.method)
                case TimeSeriesLoadWorkload(load=series):
                    _refuse_method(engine.series, control, series.method)


def _refuse_method(dialect: LoadDialect, control: Control, wanted: LoadMethod) -> None:
    if wanted == "best" or wanted in dialect.methods:
        dialect.refuse_method(control, chosen_method(wanted, dialect))


def refuse_without_room(plan: Plan, servers: Sequence[Server]) -> None:
    """Refuse bulk loads that are not expected to fit where the servers keep them.

    Each is looked at by itself: one that makes the same table as the one before takes its place. Raises
    LoadstoneError that names the phase.
    """
    for server, target in zip(servers, plan.targets, strict=True):
        engine, control = server.engine, server.control
        for phase, wanted in _bulk_loads(target):
            with _named(phase):
                need = load.needed_bytes(wanted, load.look(wanted, engine.tables), engine, control)
                load.refuse_without_room(need, server.opened, wanted.table, control)


def _bulk_loads(target: PlannedTarget) -> Iterator[tuple[PlannedPhase, BulkLoad]]:
    for phase in target.phases:
        if isinstance(phase.workload, TableLoadWorkload) and phase.skip is None:
            yield phase, phase.workload.load


@contextlib.contextmanager
def _named(phase: PlannedPhase) -> Iterator[None]:
    try:
        yield
    except LoadstoneError as error:
        where = f"{phase.scenario}: phase '{phase.id}'"
        raise LoadstoneError(f"{where}: {error.message.rstrip('.')}", error.hint) from error


def _look_at(phase: PlannedPhase) -> None:
    match phase.workload:
        case TimeSeriesLoadWorkload(load=wanted, mixed=mixed):
            if not isinstance(wanted.data, str):
                _look_at_data(wanted.data)
            if mixed is not None:
                _look_at_queries(mixed)
        case TimeSeriesQueriesWorkload(queries=mix):
            _look_at_queries(mix)


def _look_at_data(series: Series) -> None:
    data_document(series)
    start_ns, end_ns = range_of(series)
    if end_ns <= start_ns:
        raise LoadstoneError(
            f"the data ends at {series.end}, which is not after its start, {series.start}",
            "Set a later `end`, or a `span_s` above 0.",
        )


def _look_at_queries(mix: QueryMix) -> None:
    _look_at_data(mix.series)
    known = kinds_of(mix.series.use_case)
    for name in mix.kinds:
        if known and name not in known:
            raise _unknown(name, known, mix.series.use_case)
        kind = kind_named(name, mix.series.use_case)
        # One query to no purpose: whether the data set has enough devices and time does not hang on chance.
        draw(kind, Range(mix.series.scale, *range_of(mix.series)), _core.GoRand(mix.seed))


def _unknown(name: str, known: tuple[str, ...], use_case: str) -> LoadstoneError:
    words = f"there are no queries of kind '{name}' for the use case {use_case}"
    if name in KINDS:
        words += f"; they are for {KINDS[name].family}"
    return LoadstoneError(words, f"{nearest(name, known)}Kinds: {', '.join(known)}.")
