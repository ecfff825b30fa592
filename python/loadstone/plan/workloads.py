"""The workload of a phase: made of its table, what it needs of a target, and about how long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, assert_never

from loadstone.errors import LoadstoneError
from loadstone.model import Drive, Pace, RowCheck, Script
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
from loadstone.scenario.builtin import SCENARIO_FILE
from loadstone.scenario.load import bulk_of, is_bulk, needs_of_bulk, seconds_of_bulk
from loadstone.scenario.queries import is_plain, plain_queries_of, seconds_of_queries
from loadstone.scenario.schema import key_path
from loadstone.scenario.template import render
from loadstone.scenario.texts import one_statement, statements
from loadstone.scenario.timeseries import load_of, needs, queries_of, seconds_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from loadstone.model import PhaseKind, PlainQueries, QueryMix, Value
    from loadstone.plan.model import SomeWorkload
    from loadstone.scenario.scenario import Phase, Scenario

_T = TypeVar("_T")
_LIMITS = ("clients", "threads", "duration_s", "transactions_per_client", "warmup_s")
_SAME_IN_DRIVE = (*_LIMITS, "mode", "latency_limit_ms", "timeout_s", "reconnect", "variables")


@dataclass(frozen=True, slots=True)
class FilledPhase:
    """A phase of a scenario whose templates are filled in."""

    scenario: Scenario
    phase: Phase
    table: Mapping[str, Any]
    """The table [[phase]], filled in and checked."""
    values: Mapping[str, Value]
    """Of the parameters, and what else templates know."""
    seed: int

    def place(self, key: str) -> str:
        """Return where a key of the phase is, for errors."""
        return f"{self.scenario.folder / SCENARIO_FILE}: {key_path(('phase', self.phase.index, key))}"


def workload_of(filled: FilledPhase) -> SomeWorkload:
    """Return what the phase does. Raises LoadstoneError for SQL, scripts or times that cannot be."""
    return _WORKLOADS[filled.phase.kind](filled)


def needs_of(workload: SomeWorkload) -> Iterator[str]:
    """Yield the capabilities that a target must have."""
    match workload:
        case TimeSeriesLoadWorkload():
            yield from needs(workload.load, workload.mixed)
        case TimeSeriesQueriesWorkload():
            yield from needs(None, workload.queries)
        case TableLoadWorkload():
            yield from needs_of_bulk(workload.load)
            if workload.mixed is not None:
                yield "query"
        case PlainQueriesWorkload():
            yield "query"
        case SqlWorkload() | ScriptWorkload() | SizeWorkload() | CheckWorkload():
            return
        case _:
            assert_never(workload)


def measured_seconds(workload: SomeWorkload) -> float:
    """Return about how long it takes; 0 for what is over when it is done, and where no rate is given."""
    match workload:
        case ScriptWorkload():
            return _drive_seconds(workload.drive)
        case TimeSeriesLoadWorkload():
            return seconds_of(workload.load, None)
        case TimeSeriesQueriesWorkload():
            return seconds_of(None, workload.queries)
        case TableLoadWorkload():
            return seconds_of_bulk(workload.load)
        case PlainQueriesWorkload():
            return seconds_of_queries(workload.queries)
        case SqlWorkload() | SizeWorkload() | CheckWorkload():
            return 0.0
        case _:
            assert_never(workload)


def _drive_seconds(drive: Drive) -> float:
    if drive.duration_s is not None:
        return drive.warmup_s + drive.duration_s
    count = (drive.transactions_per_client or 0) * drive.clients
    return drive.warmup_s + (count / drive.pace.rate_per_s if drive.pace.rate_per_s else 0.0)


def _script(filled: FilledPhase) -> ScriptWorkload:
    return ScriptWorkload(_drive(filled), _row_check(filled))


def _load(filled: FilledPhase) -> TimeSeriesLoadWorkload | TableLoadWorkload:
    table, mixed = filled.table, "queries" in filled.table
    if is_bulk(table):
        after = statements(filled.scenario, table.get("after", ()), filled.values)
        return TableLoadWorkload(bulk_of(table, after), _plain_queries(filled) if mixed else None)
    load = _timed(filled, load_of)
    return TimeSeriesLoadWorkload(load, _timed(filled, queries_of) if mixed else None)


def _queries(filled: FilledPhase) -> PlainQueriesWorkload | TimeSeriesQueriesWorkload:
    if is_plain(filled.table):
        return PlainQueriesWorkload(_plain_queries(filled))
    mix: QueryMix = _timed(filled, queries_of)
    return TimeSeriesQueriesWorkload(mix)


_WORKLOADS: dict[PhaseKind, Callable[[FilledPhase], SomeWorkload]] = {
    "sql": lambda _: SqlWorkload(),
    "script": _script,
    "load": _load,
    "queries": _queries,
    "size": lambda _: SizeWorkload(),
    "check": lambda _: CheckWorkload(),
}


def _timed(filled: FilledPhase, make: Callable[[Mapping[str, Any], int], _T]) -> _T:
    """Make what a time-series phase asks for; a time that is none is refused with the place of the phase."""
    try:
        return make(filled.table, filled.seed)
    except (ValueError, OverflowError) as error:
        where = filled.place("data")
        raise LoadstoneError(f"{where}: {error}", "Write times as 2016-01-01T00:00:00Z.") from error


def _plain_queries(filled: FilledPhase) -> PlainQueries:
    return plain_queries_of(
        filled.table["queries"],
        lambda text: one_statement(filled.scenario, text, filled.values),
        filled.seed,
        filled.place("queries"),
    )


def _row_check(filled: FilledPhase) -> RowCheck | None:
    if "row_check" not in filled.table:
        return None
    count = one_statement(filled.scenario, filled.table["row_check"]["count"], filled.values)
    return RowCheck(count, filled.table["rows_per_transaction"])


def _drive(filled: FilledPhase) -> Drive:
    table = filled.table
    return Drive(
        scripts=tuple(_one_script(filled, script) for script in table["scripts"]),
        pace=Pace(table.get("pace", "closed"), table.get("rate_per_s")),
        seed=filled.seed,
        **{key: table[key] for key in _SAME_IN_DRIVE if key in table},
    )


def _one_script(filled: FilledPhase, script: str | Mapping[str, Any]) -> Script:
    table: Mapping[str, Any] = {"file": script} if isinstance(script, str) else script
    name, scenario = table["file"], filled.scenario
    text = render(scenario.files[name], filled.values, str(scenario.folder / name))
    return Script(name, text, table.get("weight", 1))
