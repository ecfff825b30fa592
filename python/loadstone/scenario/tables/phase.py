"""The table [[phase]]."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import UNSET, Meta, UnsetType

from loadstone.model import PhaseKind
from loadstone.scenario.tables.base import (
    Connections,
    Count,
    CountFromOne,
    Flag,
    Forms,
    Id,
    Millions,
    Pace,
    Rate,
    ScriptName,
    Seconds,
    SecondsFromZero,
    Sql,
    Sweep,
    Table,
    Template,
    Text,
    Value,
    Values,
    VariableName,
    Version,
)
from loadstone.scenario.tables.rows import Curve, LongTransactions, PlainTable, Rows
from loadstone.scenario.tables.statements import StatementQueries
from loadstone.scenario.tables.timeseries import Series, SeriesTables, TsbsQueries


class Queries(Forms):
    """Queries of TSBS ({ kinds = … }), or plain SQL ({ statements = … })."""

    forms = (TsbsQueries, StatementQueries)


class Data(Forms):
    """A time series ({ use_case = … }), or rows of one plain table ({ set = … } or { files = … })."""

    forms = (Series, Rows)


class ScriptFile(Table):
    """{ file = NAME, weight = NUMBER }."""

    file: ScriptName
    weight: Annotated[
        Annotated[int, Meta(ge=0, le=1_000_000)] | Template | UnsetType,
        Meta(description="A whole number from 0, or a template."),
    ] = UNSET


Script = Annotated[
    ScriptName | ScriptFile,
    Meta(
        description="The name of a .pgbench file in the scenario's folder, or { file = NAME, "
        "weight = NUMBER }."
    ),
]


class RowCheck(Table):
    """{ count = SQL or file }: one integer, which grows by rows_per_transaction for each transaction."""

    count: Sql


class Check(Table):
    """{ name = …, sql = …, expected = … }."""

    name: Annotated[Text, Meta(description="What is checked, as a sentence.")]
    sql: Sql
    expected: Annotated[str, Meta(description="The answer as text, or a template.")]


class Published(Table):
    """A published figure: metric, value, unit, and `when` for the variant it belongs to."""

    metric: Annotated[
        Literal[
            "tps",
            "rows_per_s",
            "metrics_per_s",
            "latency_avg",
            "latency_stddev",
            "latency_max",
            "warm_ms",
            "cold_ms",
            "qps",
            "table_bytes",
            "ratio",
        ],
        Meta(description="The figure of the report to compare it with; latencies are in milliseconds."),
    ]
    value: Annotated[int | float, Meta(description="The figure.")]
    unit: Annotated[Text, Meta(description='Its unit, such as "1/s" or "ms".')]
    note: Annotated[str | UnsetType, Meta(description="A note that readers need.")] = UNSET
    system: Annotated[
        Text | UnsetType, Meta(description='The system that it belongs to, such as "Vertica".')
    ] = UNSET
    query: Annotated[Text | UnsetType, Meta(description="Name of the query that it belongs to.")] = UNSET
    when: Values | UnsetType = UNSET


class Phase(Table):
    """A phase."""

    id: Id
    kind: Annotated[PhaseKind, Meta(description=f"One of {', '.join(get_args(PhaseKind))}.")]
    title: Annotated[Text, Meta(description="A title of one line.")]
    why: Annotated[Text | UnsetType, Meta(description="What the phase shows, in prose.")] = UNSET
    requires: Annotated[
        list[str] | UnsetType,
        Meta(
            description="Names of capabilities that only this phase needs; an empty text (from a template) "
            "counts for nothing."
        ),
    ] = UNSET
    min_server_version: Version | UnsetType = UNSET
    optional: Annotated[
        bool | UnsetType,
        Meta(description="true: a failing setup skips the phase, with the server's words as the reason."),
    ] = UNSET
    setup: Annotated[
        Annotated[list[Sql], Meta(min_length=1)] | UnsetType,
        Meta(description="SQL, or names of .sql files, run in order."),
    ] = UNSET
    setup_estimate_s: Annotated[
        SecondsFromZero | UnsetType,
        Meta(description="About how many seconds the setup takes: a number from 0, or a template."),
    ] = UNSET
    sweep: Annotated[
        Sweep | UnsetType,
        Meta(
            description="{ PARAMETER = [VALUE, VALUE, …] }, every combination; or a list of variants "
            "[{ PARAMETER = VALUE, … }, …]."
        ),
    ] = UNSET
    scripts: Annotated[
        Annotated[list[Script], Meta(min_length=1)] | UnsetType,
        Meta(description="A list of scripts."),
    ] = UNSET
    mode: Annotated[
        Literal["simple", "extended", "prepared"] | Template | UnsetType,
        Meta(description="One of simple, extended, prepared, or a template."),
    ] = UNSET
    clients: Annotated[Connections | UnsetType, Meta(description="A whole number from 1, or a template.")] = (
        UNSET
    )
    threads: Annotated[
        Annotated[int, Meta(ge=1, le=4096)] | Template | UnsetType,
        Meta(description="A whole number from 1, or a template; left out: chosen by the driver."),
    ] = UNSET
    duration_s: Annotated[Seconds | UnsetType, Meta(description="Seconds, more than 0, or a template.")] = (
        UNSET
    )
    transactions_per_client: Annotated[
        CountFromOne | UnsetType, Meta(description="A whole number from 1, or a template.")
    ] = UNSET
    warmup_s: Annotated[SecondsFromZero | UnsetType, Meta(description="Seconds from 0, or a template.")] = (
        UNSET
    )
    pace: Annotated[Pace | UnsetType, Meta(description="One of closed, fixed, poisson, or a template.")] = (
        UNSET
    )
    rate_per_s: Annotated[
        Rate | UnsetType,
        Meta(description="Transactions a second over all clients, more than 0, or a template."),
    ] = UNSET
    latency_limit_ms: Annotated[
        Annotated[float, Meta(gt=0, le=31536000000)] | Template | UnsetType,
        Meta(description="Milliseconds, more than 0, or a template."),
    ] = UNSET
    timeout_s: Annotated[Seconds | UnsetType, Meta(description="Seconds, more than 0, or a template.")] = (
        UNSET
    )
    reconnect: Annotated[bool | UnsetType, Meta(description="true or false.")] = UNSET
    variables: Annotated[
        dict[VariableName, Value] | UnsetType, Meta(description="Variables of the scripts: NAME = VALUE.")
    ] = UNSET
    rows_per_transaction: Annotated[
        Count | UnsetType, Meta(description="A whole number from 0, or a template.")
    ] = UNSET
    row_check: RowCheck | UnsetType = UNSET
    checks: Annotated[
        list[Check] | UnsetType,
        Meta(description="Queries with the answers they must get: { name = …, sql = …, expected = … }."),
    ] = UNSET
    headline: Annotated[
        Literal["tps", "rows_per_s", "metrics_per_s"] | UnsetType,
        Meta(description="tps, rows_per_s or metrics_per_s."),
    ] = UNSET
    data: Data | UnsetType = UNSET
    tables: SeriesTables | UnsetType = UNSET
    table: PlainTable | UnsetType = UNSET
    step_rows: Annotated[
        Count | UnsetType, Meta(description="Rows per step, or a template; 0: all rows are one step.")
    ] = UNSET
    transactions: LongTransactions | UnsetType = UNSET
    after: Annotated[
        list[Sql] | UnsetType,
        Meta(description="SQL, or names of .sql files, run once the rows are in, each timed."),
    ] = UNSET
    settle: Annotated[
        Flag | UnsetType,
        Meta(description="true: after the load, let the engine order the table as its manual recommends."),
    ] = UNSET
    storage: Annotated[
        Flag | UnsetType, Meta(description="true: record what every byte on disk is used for.")
    ] = UNSET
    verify: Annotated[
        Literal["content", "count"] | Template | UnsetType,
        Meta(description="What is compared after the load: content (the default) or count."),
    ] = UNSET
    knee: Annotated[
        Flag | UnsetType,
        Meta(description="true: look for the number of rows from which steps become slower."),
    ] = UNSET
    curves: Annotated[
        list[Curve] | UnsetType,
        Meta(description="Published curves: { name, step_rows, seconds, note, when }."),
    ] = UNSET
    queries: Queries | UnsetType = UNSET
    method: Annotated[
        Literal["copy_binary", "copy_text", "insert", "arrow", "best"] | Template | UnsetType,
        Meta(
            description="How rows are sent: copy_binary, copy_text, insert, arrow, or best for the engine's "
            "own best way."
        ),
    ] = UNSET
    batch_rows: Annotated[
        Millions | UnsetType,
        Meta(description="Rows of one batch over all tables together, from 1, or a template."),
    ] = UNSET
    workers: Annotated[
        Connections | UnsetType,
        Meta(description="Connections that load at the same time, from 1, or a template."),
    ] = UNSET
    hash_workers: Annotated[
        Flag | UnsetType, Meta(description="true: all rows of a device go through the same worker.")
    ] = UNSET
    published: Annotated[list[Published] | UnsetType, Meta(description="Published figures.")] = UNSET
