"""Phases that load and query time series: what they ask for, and what they leave in the run folder."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone.engine.dialect.timeseries import names
from loadstone.results.json_files import to_json
from loadstone.run.mixed import ConcurrentQueries
from loadstone.sqltext import quoted
from loadstone.workload.load import tables
from loadstone.workload.queries.execution import compare_answers
from loadstone.workload.tsbs.content import content_of
from loadstone.workload.tsbs.execution import options_of, perform_queries
from loadstone.workload.tsbs.load import TimeSeriesLoadOptions, perform_load
from loadstone.workload.tsbs.probe import perform_probe

if TYPE_CHECKING:
    from loadstone.engine.dialect.timeseries import Dataset
    from loadstone.model import Load, QueryMix
    from loadstone.run.phase_context import PhaseContext
    from loadstone.signals import Signals

Document = dict[str, Any]

SHORT_S = 0.25
"""Intervals of a load that goes as fast as it can: it may be over in seconds."""
_UNTIL_STOPPED_S = 1e6
_FIRST_OF_AN_EPOCH = ("readings", "cpu")
"""Tables whose row is the first that a device writes at a new time."""


def load_phase(load: Load, mixed: QueryMix | None, context: PhaseContext) -> tuple[Document, Document | None]:
    """Load into fresh tables, with queries beside it where wanted; returns drive.json and sizes before it."""
    server, folder = context.server, context.folder
    content = content_of(load)
    tables.drop(server.control, server.engine.series, names(content.dataset))
    if server.opened.private:
        server.engine.checkpoint(server.control)
    before = server.sizes()
    options = TimeSeriesLoadOptions(
        schema=server.schema,
        interval_s=SHORT_S if load.pace.kind == "closed" else 1.0,
        io=context.io,
        elsewhere=context.elsewhere,
        control=context.control,
        content=content,
    )
    if mixed is None:
        return perform_load(load, server.opened, folder.path, context.signals, context.show, options), before
    concurrent = ConcurrentQueries(
        context.signals, [partial(_ask, mixed, context), partial(_probe, content.dataset, context)]
    )
    account = perform_load(load, server.opened, folder.path, concurrent, context.show, options)
    concurrent.raise_trouble()
    return account, before


def committed_words(loaded: Document) -> str:
    """Say what a load that was interrupted has left in the tables; `loaded` is drive.json's `load`."""
    booked = loaded["committed"]
    if booked is not None:
        return f"{booked['rows']:,} rows in {booked['batches']:,} batches are committed"
    return f"{loaded['rows']:,} rows in {loaded['batches']:,} batches were acknowledged"


def query_phase(mix: QueryMix, context: PhaseContext) -> Document:
    """Run the queries on what is loaded; returns drive.json."""
    server, folder = context.server, context.folder
    options = replace(options_of(mix), schema=server.schema, interval_s=SHORT_S, drive=context.drive)
    account = perform_queries(mix, server.opened, folder.path, context.signals, context.show, options)
    folder.write_drive(to_json(account, indent=1))
    return account


def answers_check(first: str, expected: Document, actual: Document) -> Document:
    """Compare the answers of two targets to the same queries: one of phase.json's checks."""
    asked = [account["queries"].get("answers") or [] for account in (expected, actual)]
    differing = compare_answers(*asked)
    common = len({a["query"] for a in asked[0]} & {a["query"] for a in asked[1]})
    words = "; ".join(f"query {number}: {difference}" for number, difference in differing[:3])
    return {
        "name": f"answers are those of {first}",
        "expected": f"{common:,} equal answers",
        "actual": f"{common - len(differing):,} equal answers",
        "passed": not differing,
        "detail": words or "count, sums and checksums of every answer, independent of order",
    }


def _ask(mix: QueryMix, context: PhaseContext, stopper: Signals) -> None:
    """Ask the queries of a mix until stopped."""
    folder = context.folder.subfolder("queries")
    options = replace(
        options_of(mix),
        schema=context.server.schema,
        duration_s=_UNTIL_STOPPED_S,
        answers="none",
        resting=False,
    )
    account = perform_queries(mix, context.server.opened, folder.path, stopper, None, options)
    folder.write_drive(to_json(account, indent=1))


def _probe(dataset: Dataset, context: PhaseContext, stopper: Signals) -> None:
    """Ask for the latest row time that can be seen, microseconds since 1970, until stopped."""
    names = [table["name"] for table in dataset["tables"]]
    table = next((name for name in _FIRST_OF_AN_EPOCH if name in names), names[0])
    latest = context.server.engine.series.microseconds(f"max({quoted('time')})")
    place = context.server.engine.series.qualified(table)
    query = f"select {latest} from {place}"  # noqa: S608 - names of our own
    perform_probe(query, context.server.opened, context.folder.subfolder("probe").path, stopper)
