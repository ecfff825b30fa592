"""Capacity as text: sentences as SQL comments, then the DDL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.capacity.documents import DAY_S
from loadstone.report import formats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.capacity.documents import (
        Answer,
        Capacity,
        Disk,
        Extrapolation,
        Log,
        Partitions,
        Servers,
        Wanted,
    )

_TIMES = ((DAY_S, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def text(answer: Answer) -> str:
    """Return the answer for people; what is no comment is DDL."""
    lines = [*_comments(_needed(answer))]
    for one in answer.capacities:
        lines += ["", *_comments(_sentences(one, answer.wanted))]
        if one.partitions is not None and one.partitions.ddl:
            lines += one.partitions.ddl.splitlines()
    return "\n".join([*lines, ""])


def span(seconds: float) -> str:
    """Return a time in its largest whole unit: `90 days`, `12 hours`."""
    for length, unit in _TIMES:
        if seconds >= length and seconds % length == 0:
            count = int(seconds // length)
            return f"{count:,} {unit}{'s' if count != 1 else ''}"
    return formats.duration(seconds)


def _comments(lines: Iterator[str]) -> list[str]:
    return [f"-- {' '.join(line.split())}" for line in lines]


def _needed(answer: Answer) -> Iterator[str]:
    wanted = answer.wanted
    rows = f"{wanted.rows_per_report} rows" if wanted.rows_per_report != 1 else "one row"
    yield (
        f"Needed: {wanted.devices:,} devices with {rows} every {span(wanted.interval_s).removeprefix('1 ')}: "
        f"{formats.rate(answer.needed_rows_per_s)} rows/s, {formats.rate(answer.rows_per_day)} rows a day, "
        f"{formats.rate(answer.rows_kept)} rows in {span(wanted.retention_s)}."
    )
    if wanted.retention_s < wanted.interval_s:
        yield "The retention is shorter than the interval: a row is removed before its device reports again."


def _sentences(one: Capacity, wanted: Wanted) -> Iterator[str]:
    yield f"{one.name}:"
    yield _measured(one)
    yield _servers(one.servers)
    if one.disk is not None:
        yield _disk(one.disk, wanted)
    if one.log is not None:
        yield _log(one.log)
    if one.knee is not None:
        yield f"Memory: {one.knee}"
    if one.partitions is not None:
        yield _partitions(one.partitions, wanted, one.disk)
    yield from (f"Condition: {words}." for words in one.conditions)
    yield from (_beyond(each) for each in one.extrapolated)
    yield from (f"Not measured: {words}." for words in one.not_measured)


def _measured(one: Capacity) -> str:
    interval = ""
    if one.low_rows_per_s is not None:
        low, high = formats.rate(one.low_rows_per_s), formats.rate(one.high_rows_per_s)
        interval = f" ({low} to {high})"
    return f"Measured: {formats.rate(one.measured_rows_per_s)} rows/s{interval}, from {one.rate_note}."


def _disk(disk: Disk, wanted: Wanted) -> str:
    indexes = disk.index_bytes_per_row
    more = "" if indexes is None else f" + {formats.digits(indexes)} B of indexes"
    each = f"{formats.digits(disk.table_bytes_per_row)} B a row{more}"
    return (
        f"Disk: {each}: {formats.size(disk.bytes_per_day)} a day, {formats.size(disk.bytes_kept)} in "
        f"{span(wanted.retention_s)}, on all servers together."
    )


def _log(log: Log) -> str:
    return (
        f"WAL: {formats.digits(log.wal_bytes_per_row)} B a row: {formats.size(log.bytes_per_day)} a day, "
        f"{formats.size(log.bytes_per_s)}/s."
    )


def _servers(servers: Servers) -> str:
    share = f"the rate that is needed is {formats.digits(servers.share * 100)} % of the measured one"
    share = f"one takes {servers.devices:,} devices at most; {share}, without any reserve."
    if servers.count is None:
        return (
            f"Servers: {servers.by_value:,} by the measured rate alone, which has no low end to rely on; "
            f"{share} Measure longer."
        )
    more = f" ({servers.by_value:,} by the measured rate itself)" if servers.by_value != servers.count else ""
    return f"Servers: {servers.count:,} by the low end of the interval{more}; {share}"


def _partitions(partitions: Partitions, wanted: Wanted, disk: Disk | None) -> str:
    rows, count = formats.rate(partitions.rows), f"{partitions.count:,}"
    each = span(partitions.seconds)
    more = f", {formats.size(disk.bytes_per_day * partitions.seconds / DAY_S)}" if disk else ""
    return (
        f"Partitions: one for every {each} on each server keeps each below {rows} rows; "
        f"{count} of them cover {span(wanted.retention_s)}. A partition is dropped when its last row is that "
        f"old, so rows of up to {each} more are kept{more}."
    )


def _beyond(one: Extrapolation) -> str:
    shown = [
        span(figure) if one.unit == "s" else f"{formats.rate(figure)} {one.unit}"
        for figure in (one.measured, one.wanted)
    ]
    if one.times <= 1:
        return f"Within what was measured: {one.what}, {shown[1]} of {shown[0]}."
    times = formats.digits(one.times, 2)
    return f"Extrapolated {times} times: {one.what}, {shown[0]} measured, {shown[1]} wanted."
