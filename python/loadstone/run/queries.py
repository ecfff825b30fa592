"""Phases of plain SQL queries: how they run, what they write into the run folder, how answers compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone.errors import words_of
from loadstone.results.json_files import to_json
from loadstone.run.outcome import outcome_of
from loadstone.run.timeseries import SHORT_S
from loadstone.workload.queries.answer import compare
from loadstone.workload.queries.execution import QueryOptions
from loadstone.workload.queries.rounds import QueryContext, perform_in_turn, perform_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.model import PlainQueries
    from loadstone.results.phase_folder import PhaseFolder
    from loadstone.run.phase_context import PhaseContext
    from loadstone.signals import Signals

Document = dict[str, Any]

_UNTIL_STOPPED_S = 1e6


def plain_queries_phase(queries: PlainQueries, context: PhaseContext) -> Document:
    """Run the queries, one after the other or all as a load; write and return drive.json."""
    if queries.duration_s is not None:
        rows = rows_of(queries, context)
        account = _as_load(queries, context, context.folder, context.signals, queries.duration_s)
        account["plain_queries"]["rows"] = rows
        write(account, context.folder)
        return account
    folder, server = context.folder, context.server
    if context.drive is not None:
        context.log("queries that run one after the other come from this host, not from the load hosts")
    query_context = QueryContext(
        control=context.control,
        recover=server.recover,
        cool=server.cool,
        signals=context.signals,
        show=context.show,
        schema=server.schema,
        keep=lambda account: write(account, folder),
        rows=rows_of(queries, context),
    )
    account = perform_in_turn(queries, server.opened, folder.path, query_context)
    write(account, folder)
    return account


def perform_mixed(queries: PlainQueries, context: PhaseContext, stopper: Signals) -> None:
    """Run the queries again and again during a load; writes the folder `queries` of its phase."""
    folder = context.folder.subfolder("queries")
    write(_as_load(queries, context, folder, stopper, None), folder)


def outcome_of_queries(account: Document) -> tuple[str, str | None]:
    """Return the phase's state and the reason; one failing run fails it."""
    if "queries" not in account["plain_queries"]:
        return outcome_of(account)
    if account["state"] == "interrupted":
        return "interrupted", account["reason"]
    failed = [run for run in account["plain_queries"]["runs"] if run["state"] == "failed"]
    skipped = [run for run in account["plain_queries"]["runs"] if run["state"] == "skipped"]
    named = dict.fromkeys(run["query"] for run in (*failed, *skipped))
    if not named:
        return "complete", None
    asked = len(account["plain_queries"]["queries"])
    first = next(iter(failed or skipped))
    others = asked - len(named)
    rest = f"; the other {others} were answered" if others else ""
    what = f"{len(named)} of {asked} queries failed"
    which = f"{first['query']} ({first['kind']} run {first['number']})"
    return "failed", f"{what}: {which}: {first['reason']}{rest}"


def compare_queries(account: Document, others: Sequence[tuple[str, Document]]) -> list[Document]:
    """Compare answers with those of other targets, each by its id; returns checks of phase.json.

    Each query is compared with the first target that has an answer to it. One that differs is marked
    `wrong` in the account.
    """
    checks = []
    equal: dict[str, int] = {}
    for query in account["plain_queries"]["queries"]:
        found = _first_answer(query["name"], others)
        if query["answer"] is None or found is None:
            continue
        other, expected = found
        words = compare(expected, query["answer"])
        if words is None:
            equal[other] = equal.get(other, 0) + 1
            continue
        query["wrong"] = f"the answer differs from {other}'s: {words} (here: {other})"
        checks.append(_check(f"the answer to {query['name']} is that of {other}", 1, 0, words))
    detail = "count, sums and checksums of every answer, independent of order"
    checks += [_check(f"answers are those of {other}", n, n, detail) for other, n in equal.items()]
    return checks


def rows_of(queries: PlainQueries, context: PhaseContext) -> int | None:
    """Count the rows of the table that the queries read; None where that is unknown."""
    table, server = queries.table, context.server
    if not table:
        return None
    if table not in server.counted:
        engine = server.engine
        troubles = engine.troubles
        place = engine.tables.qualified(table)
        text = engine.translate(f"select count(*) from {place}")  # noqa: S608 - a quoted name
        try:
            control = context.control()
            with engine.at_most(control, queries.timeout_s):
                server.counted[table] = server.count(text)
        except troubles as error:
            context.signals.check()
            words = words_of(error)
            context.log(f"the rows of {table} could not be counted: {words}")
            return None
    return server.counted[table]


def write(account: Document, folder: PhaseFolder) -> None:
    """Replace drive.json."""
    folder.write_drive(to_json(account, indent=1))


def _as_load(
    queries: PlainQueries,
    context: PhaseContext,
    folder: PhaseFolder,
    signals: Signals,
    duration_s: float | None,
) -> Document:
    """Repeat the queries for that time, or until stopped during a load, whose answers change."""
    mixed = duration_s is None
    options = QueryOptions(
        workers=queries.clients,
        duration_s=_UNTIL_STOPPED_S if mixed else duration_s,
        timeout_s=queries.timeout_s,
        seed=queries.seed,
        answers="none" if mixed else "digest",
        resting=not mixed,
        prepared=0,
        interval_s=SHORT_S,
        schema=context.server.schema,
        drive=None if mixed else context.drive,
    )
    show = None if mixed else context.show
    account = perform_together(queries, context.server.opened, folder.path, signals, show, options)
    account["plain_queries"] = {
        "table": queries.table or None,
        "rows": None,
        "clients": queries.clients,
        "distinct": queries.distinct if queries.draws else 1,
        "draws": [{"name": d.name, "least": d.least, "most": d.most} for d in queries.draws],
    }
    return account


def _first_answer(name: str, others: Sequence[tuple[str, Document]]) -> tuple[str, Document] | None:
    for target, account in others:
        for query in account["plain_queries"]["queries"]:
            if query["name"] == name and query["answer"] is not None:
                return target, query["answer"]
    return None


def _check(name: str, expected: int, actual: int, detail: str) -> Document:
    answers = {0: "no equal answer", 1: "1 equal answer"}
    return {
        "name": name,
        "expected": answers.get(expected, f"{expected} equal answers"),
        "actual": answers.get(actual, f"{actual} equal answers"),
        "passed": expected == actual,
        "detail": detail,
    }
