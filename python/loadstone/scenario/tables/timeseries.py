"""Time series in a phase: data, tables and TSBS's queries."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.scenario.tables.base import (
    Connections,
    Flag,
    Millions,
    Pace,
    Rate,
    Seconds,
    Table,
    Template,
    Text,
)


class Series(Table):
    """The rows of a time-series data set: use_case, scale, start, end, interval_s, seed."""

    use_case: Annotated[
        Literal["iot", "devops", "cpu-only", "cpu-single", "devops-generic"] | Template,
        Meta(description="One of TSBS's use cases: iot, devops, cpu-only, cpu-single, devops-generic."),
    ]
    start: Annotated[Text, Meta(description="First timestamp, as 2016-01-01T00:00:00Z.")]
    end: Annotated[
        Text | UnsetType, Meta(description="End of the time range, exclusive, as 2016-01-02T00:00:00Z.")
    ] = UNSET
    span_s: Annotated[
        Annotated[float, Meta(gt=0, le=3153600000)] | Template | UnsetType,
        Meta(description="Seconds from start to end, in place of end; a number above 0, or a template."),
    ] = UNSET
    scale: Annotated[
        Annotated[int, Meta(ge=1, le=4294967295)] | Template | UnsetType,
        Meta(description="Number of devices from 1, or a template."),
    ] = UNSET
    seed: Annotated[
        Annotated[int, Meta(ge=1, le=9223372036854775807)] | Template | UnsetType,
        Meta(description="Seed of the data from 1, or a template."),
    ] = UNSET
    interval_s: Annotated[
        Seconds | UnsetType, Meta(description="Seconds between two rows of a device, or a template.")
    ] = UNSET
    native: Annotated[
        Flag | UnsetType,
        Meta(description="true: the native stream, which starts anywhere; false (the default): TSBS's own."),
    ] = UNSET


class SeriesTables(Table):
    """How the tables of a time-series data set are made."""

    time_index: Annotated[Flag | UnsetType, Meta(description="true or false: an index on time.")] = UNSET
    partition_index: Annotated[
        Flag | UnsetType, Meta(description="true or false: an index on device and time.")
    ] = UNSET
    time_partition_index: Annotated[
        Flag | UnsetType,
        Meta(description="true or false: an index on time and device in place of the one on time."),
    ] = UNSET
    field_index_count: Annotated[
        Annotated[int, Meta(ge=-1, le=1600)] | Template | UnsetType,
        Meta(description="How many fields get an index; -1: all."),
    ] = UNSET
    chunk_time_s: Annotated[
        Annotated[float, Meta(gt=0, le=3153600000)] | Template | UnsetType,
        Meta(description="Seconds of one chunk or partition, or a template; left out: not split by time."),
    ] = UNSET
    hash_partitions: Annotated[
        Annotated[int, Meta(ge=0, le=1000000)] | Template | UnsetType,
        Meta(description="Parts by device that each span of time is split into; 0: none."),
    ] = UNSET
    compress: Annotated[
        Flag | UnsetType, Meta(description="true or false: compress what is loaded, where the engine can.")
    ] = UNSET


class TsbsQueries(Table):
    """Queries of TSBS's kinds: kinds, count of each, workers, and when they start."""

    kinds: Annotated[
        Annotated[list[str], Meta(min_length=1)],
        Meta(description='TSBS\'s names of query kinds, such as ["single-groupby-1-1-1", "lastpoint"].'),
    ]
    count: Annotated[
        Millions | UnsetType, Meta(description="Queries of each kind, from 1, or a template.")
    ] = UNSET
    workers: Annotated[
        Connections | UnsetType,
        Meta(description="Connections that query at the same time, from 1, or a template."),
    ] = UNSET
    pace: Annotated[Pace | UnsetType, Meta(description="One of closed, fixed, poisson, or a template.")] = (
        UNSET
    )
    rate_per_s: Annotated[
        Rate | UnsetType, Meta(description="Queries a second over all workers, or a template.")
    ] = UNSET
    duration_s: Annotated[
        Seconds | UnsetType,
        Meta(description="Repeat the queries for this many seconds; left out: each query once."),
    ] = UNSET
