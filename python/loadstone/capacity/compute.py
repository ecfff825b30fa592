"""The arithmetic of capacity: measured figures times what is wanted, and how far that goes beyond them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.capacity.documents import Capacity, Disk, Extrapolation, Log, Partitions, Servers
from loadstone.errors import LoadstoneError
from loadstone.report import formats
from loadstone.summary.advice import time_partitions
from loadstone.summary.knee.knee import rows_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.capacity.documents import Wanted
    from loadstone.capacity.measured import MeasuredLoad

PERIODS_S = (60, 300, 900, 3600, 6 * 3600, 12 * 3600, 86_400, 7 * 86_400, 28 * 86_400)
"""Spans of a partition that a person would choose."""


def capacity(load: MeasuredLoad, wanted: Wanted) -> Capacity:
    """Return what a measured load says about what is wanted. What was not measured is named, not computed."""
    value = load.rate.value or 0.0
    servers = _servers(load, wanted)
    count = servers.count or servers.by_value
    partitions = _partitions(load, wanted, count)
    return Capacity(
        name=load.name,
        target=load.target,
        phases=list(load.phases),
        measured_rows_per_s=value,
        low_rows_per_s=load.rate.low,
        high_rows_per_s=load.rate.high,
        rate_note=load.rate_note + (f"; no interval: {load.rate.reason}" if load.rate.reason else ""),
        servers=servers,
        disk=_disk(load, wanted),
        log=_log(load, wanted),
        knee=_knee(load, wanted, count),
        partitions=partitions,
        extrapolated=list(_extrapolated(load, wanted, count, partitions)),
        conditions=list(load.conditions),
        not_measured=[*_not_measured(load), *_unpartitioned(load, wanted, count)],
    )


def _servers(load: MeasuredLoad, wanted: Wanted) -> Servers:
    value = load.rate.value or 0.0
    low = load.rate.low if load.rate.low and load.rate.low > 0 else None
    return Servers(
        count=math.ceil(wanted.rows_per_s / low) if low else None,
        by_value=math.ceil(wanted.rows_per_s / value),
        share=wanted.rows_per_s / value,
        devices=math.floor((low or value) * wanted.interval_s / wanted.rows_per_report),
    )


def _disk(load: MeasuredLoad, wanted: Wanted) -> Disk | None:
    per_row = load.per_row
    if per_row is None or per_row.table_bytes_per_row is None:
        return None
    each = per_row.table_bytes_per_row + (per_row.index_bytes_per_row or 0)
    return Disk(
        table_bytes_per_row=per_row.table_bytes_per_row,
        index_bytes_per_row=per_row.index_bytes_per_row,
        bytes_per_day=each * wanted.rows_per_day,
        bytes_kept=each * wanted.rows_kept,
    )


def _log(load: MeasuredLoad, wanted: Wanted) -> Log | None:
    each = load.per_row.wal_bytes_per_row if load.per_row else None
    if each is None:
        return None
    return Log(
        wal_bytes_per_row=each,
        bytes_per_day=each * wanted.rows_per_day,
        bytes_per_s=each * wanted.rows_per_s,
    )


def _knee(load: MeasuredLoad, wanted: Wanted, servers: int) -> str | None:
    """Say where import slows down, and when a table without partitions is that large."""
    if load.knee is None:
        return None
    if not load.knee.found or not load.knee.low:
        return load.knee.sentence
    after_s = load.knee.low / (wanted.rows_per_s / servers)
    when = f" Without partitions, that is after {formats.duration(after_s)} at the needed rate."
    size, limit = load.index_bytes_at_knee, load.memory_limit_bytes
    indexes = f" The indexes had {formats.size(size)} there" if size else ""
    memory = f"; the server's memory was limited to {formats.size(limit)}" if size and limit else ""
    return f"{load.knee.sentence}{indexes}{memory}{'.' if indexes else ''}{when}"


def _partitions(load: MeasuredLoad, wanted: Wanted, servers: int) -> Partitions | None:
    """Return partitions of a usual time: no longer than rows are kept, no more rows than the knee allows."""
    if load.partition_rows is None:
        return None
    longest_s = min(_filled_s(load.partition_rows, wanted, servers), max(wanted.retention_s, PERIODS_S[0]))
    fitting = [period for period in PERIODS_S if period <= longest_s]
    if not fitting:
        return None
    span_s = float(fitting[-1])
    return Partitions(
        rows=load.partition_rows,
        seconds=span_s,
        count=math.ceil(wanted.retention_s / span_s),
        ddl=load.ddl or _ddl(load, int(span_s)),
    )


def _filled_s(rows: int, wanted: Wanted, servers: int) -> float:
    """Return how long it takes until so many rows have arrived on one server."""
    return rows / (wanted.rows_per_s / servers)


def _unpartitioned(load: MeasuredLoad, wanted: Wanted, servers: int) -> Iterator[str]:
    """Say why there are no partitions although they are advised."""
    if load.partition_rows is not None and _partitions(load, wanted, servers) is None:
        filled = formats.duration(_filled_s(load.partition_rows, wanted, servers))
        yield (
            f"usable partitions: the advised {rows_text(load.partition_rows)} rows arrive in {filled} on one "
            "server, so the measured rate does not last; measure with the memory that the server will have"
        )


def _ddl(load: MeasuredLoad, span_s: int) -> str:
    if load.loaded is None or span_s < 1:
        return ""
    try:
        return time_partitions(load.loaded, span_s) or ""
    except LoadstoneError as error:
        return f"-- There is no DDL: {error.message}."


def _extrapolated(
    load: MeasuredLoad, wanted: Wanted, servers: int, partitions: Partitions | None
) -> Iterator[Extrapolation]:
    kept = wanted.rows_kept / servers
    if partitions is not None:
        inside = wanted.rows_per_s / servers * partitions.seconds
        yield Extrapolation(what="rows of one partition", measured=load.rows, wanted=inside, unit="rows")
    if load.rows:
        yield Extrapolation(what="rows on one server", measured=load.rows, wanted=kept, unit="rows")
    if load.seconds:
        yield Extrapolation(
            what="time under this load", measured=load.seconds, wanted=wanted.retention_s, unit="s"
        )


def _not_measured(load: MeasuredLoad) -> Iterator[str]:
    per_row = load.per_row
    if per_row is None or per_row.table_bytes_per_row is None:
        yield "bytes on disk: the run has no sizes of this phase"
    elif per_row.index_bytes_per_row is None:
        yield "bytes of indexes: disk is computed without them"
    if per_row is None or per_row.wal_bytes_per_row is None:
        yield "WAL: the server did not report it"
    elif not load.checkpoints:
        yield "checkpoints: none began in the measured time, so WAL lacks the full pages that follow one"
    if load.knee is None:
        yield "when indexes stop fitting into memory: that needs a load in steps (loadstone run index-import)"
    elif not load.knee.found and load.knee.outcome == "none":
        yield f"tables of more than {rows_text(load.knee.up_to_rows or 0)} rows"
    yield "removing old rows, vacuum, backups and replicas, and queries at the same time"
    if load.driven:
        yield "latency at the needed rate: the rate is the highest one (loadstone slo keeps a latency)"
    yield "peaks: the devices are taken to report evenly"
