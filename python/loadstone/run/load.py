"""Phases that load plain rows in bulk: step by step, and what a full disk or a broken load means to them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from loadstone.run.mixed import ConcurrentQueries
from loadstone.run.outcome import DISK_FULL, first_error
from loadstone.run.queries import perform_mixed
from loadstone.run.steps import Steps
from loadstone.run.timeseries import SHORT_S
from loadstone.workload.load import TableLoadOptions, perform_bulk

if TYPE_CHECKING:
    from loadstone.model import BulkLoad, PlainQueries
    from loadstone.run.phase_context import PhaseContext

Document = dict[str, Any]

_SCRAPS_BYTES = 16 << 20
"""A server that finds less than this, one segment of its WAL, may end itself."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a bulk load."""

    account: Document
    """drive.json."""
    full: str | None
    """That and for what the server's disk was full, in words; None when it was not."""


def bulk_phase(
    bulk: BulkLoad,
    context: PhaseContext,
    mixed: PlainQueries | None = None,
    *,
    resume: bool = False,
    ignore_space: bool = False,
) -> Outcome:
    """Load into a fresh table, or continue with the one that a killed run has left; writes the steps down.

    `mixed` are the queries that run, again and again, during the load.
    """
    server = context.server
    concurrent = (
        None
        if mixed is None
        else ConcurrentQueries(context.signals, [partial(perform_mixed, mixed, context)])
    )
    if server.opened.private:
        server.engine.checkpoint(server.control)
    with Steps(context, bulk, resume=resume) as steps:
        options = TableLoadOptions(
            schema=server.schema,
            replace=not resume,
            resume=resume,
            interval_s=SHORT_S,
            io=context.io,
            elsewhere=context.elsewhere,
            control=context.control,
            ready=steps.begin,
            on_step=steps.end,
            ignore_space=ignore_space,
        )
        signals = concurrent or context.signals
        account = perform_bulk(bulk, server.opened, context.folder.path, signals, context.show, options)
        full = _full_words(account, context, steps)
        _note_rest(account, steps, full)
    if concurrent is not None:
        concurrent.raise_trouble()
        _note_failed_queries(context)
    return Outcome(account, full)


def _note_failed_queries(context: PhaseContext) -> None:
    """Say what kept queries beside the load from an answer."""
    asked = context.folder.subfolder("queries").written_drive()
    failed = asked["counts"]["failed"] if asked else 0
    if asked and failed:
        calls = failed + asked["counts"]["done"]
        context.log(f"{failed:,} of {calls:,} queries during the load failed{first_error(asked)}")


def _note_rest(account: Document, steps: Steps, full: str | None) -> None:
    """Write down the steps for which `on_step` was not called: the broken one, and the only one."""
    reason = full or f"{account['reason']}{first_error(account)}"
    written = {line["step"] for line in steps.lines}
    broken = "interrupted" if account["state"] == "interrupted" else "failed"
    for step in account["load"].get("steps") or []:
        if step["step"] in written:
            continue
        if step["state"] == "complete":
            steps.end(step)
        else:
            # To the driver a step is interrupted also when it was the server that went away.
            steps.end({**step, "state": broken}, reason)


def _full_words(account: Document, context: PhaseContext, steps: Steps) -> str | None:
    """Say that the disk is full and what the step needed, as the one before tells; None when it is not."""
    if account["state"] in ("complete", "interrupted"):
        return None
    errors = [error for error in account["errors"] if error["sqlstate"] == DISK_FULL]
    data = context.server.opened.data_directory
    # A server that finds no room for its WAL does not say so: it ends itself.
    if not errors and (data is None or shutil.disk_usage(data).free > _SCRAPS_BYTES):
        return None
    said = f": {errors[0]['message']} ({DISK_FULL})" if errors else f"{first_error(account)}"
    return f"the server's disk is full{said}; {_needed_words(steps.lines)}"


def _needed_words(lines: list[Document]) -> str:
    """Say how much the step after these needed, supposing it to be like the last of them."""
    whole = [line for line in lines if line["state"] == "complete" and line["sizes"]]
    if not whole:
        return "how much the step needed is unknown, because it was the first"
    last, before = whole[-1], whole[-2]["sizes"] if len(whole) > 1 else {}
    grown = sum(size - before.get(name, 0) for name, size in last["sizes"].items() if size is not None)
    wal = (last["counters"] or {}).get("wal_bytes", 0)
    return (
        f"the step needed about {_mebibytes(grown + wal)}, like the previous one: {_mebibytes(grown)} "
        f"for table and indexes, and {_mebibytes(wal)} for WAL"
    )


def _mebibytes(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"
