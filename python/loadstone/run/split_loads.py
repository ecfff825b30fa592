"""Which loads several hosts can share; the others are refused before anything is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.plan.model import TimeSeriesLoadWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.model import BulkLoad, Load
    from loadstone.plan.model import TableLoadWorkload

_FROM_ONE = "Load from one host: leave out --hosts."


def refuse_unsplittable_load(workload: TimeSeriesLoadWorkload | TableLoadWorkload) -> None:
    """Refuse a load phase that several hosts cannot share. Raises LoadstoneError."""
    if workload.mixed is not None:
        raise LoadstoneError(
            "--hosts: queries beside a load would all come from this host",
            "Remove them, or leave out --hosts.",
        )
    if isinstance(workload, TimeSeriesLoadWorkload):
        refuse_load(workload.load)
    else:
        _refuse_bulk(workload.load)


def refuse_load(load: Load) -> None:
    """Refuse a load of time series that several hosts cannot share. Raises LoadstoneError."""
    _raise(_troubles(load))


def _troubles(load: Load) -> Iterator[tuple[str, str]]:
    if isinstance(load.data, str):
        yield "rows that are read from a file or a pipe are on one host", "Generate native data (--native)."
    elif not load.data.native:
        yield (
            "TSBS's own data comes from one random stream, so every host would generate all of it",
            "Use native data (--native, in a scenario `native = true`), which begins anywhere.",
        )
    if load.hash_workers:
        yield (
            "rows that are hashed to workers are in no order that hosts could share",
            "Remove --hash-workers.",
        )


def _refuse_bulk(bulk: BulkLoad) -> None:
    troubles = []
    if bulk.rows.files:
        troubles.append(("rows in files are on one host", "Generate the rows of a set."))
    if bulk.transactions is not None:
        troubles.append(("long transactions are made by one host", _FROM_ONE))
    _raise(iter(troubles))


def _raise(troubles: Iterator[tuple[str, str]]) -> None:
    for why, hint in troubles:
        raise LoadstoneError(f"--hosts: {why}", hint)
