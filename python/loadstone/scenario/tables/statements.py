"""Queries in plain SQL."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from loadstone.scenario.tables.base import (
    Connections,
    Drawn,
    Flag,
    Millions,
    Seconds,
    Sql,
    Table,
    Template,
    Text,
)


class Statement(Table):
    """{ name = …, sql = SQL or file }: a query in plain SQL; `:NAME` stands for a number that is drawn."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=60)],
        Meta(description='What the query is called, such as "Sql1".'),
    ]
    sql: Sql


class Draw(Table):
    """{ name = …, least = …, most = … }: a whole number, both ends included."""

    name: Annotated[
        Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$")],
        Meta(description="A name of letters, digits and underscores; in the SQL it is `:NAME`."),
    ]
    least: Annotated[Drawn, Meta(description="The smallest number, or a template.")]
    most: Annotated[Drawn, Meta(description="The largest number, or a template.")]


class StatementQueries(Table):
    """Queries in plain SQL: table, statements, and how they run: cold and warm, or as a load."""

    statements: Annotated[
        Annotated[list[Statement], Meta(min_length=1)],
        Meta(description="A list of queries: { name = …, sql = … }."),
    ]
    table: Annotated[
        Text | UnsetType,
        Meta(description="Name of the table that is read: scan rates are of its rows and bytes."),
    ] = UNSET
    cold: Annotated[
        Flag | UnsetType,
        Meta(description="true (the default): empty the caches before each query's first run."),
    ] = UNSET
    warm_runs: Annotated[
        Annotated[int, Meta(ge=0, le=100)] | Template | UnsetType,
        Meta(description="Runs of each query with warm caches, from 0 to 100, or a template."),
    ] = UNSET
    clients: Annotated[
        Connections | UnsetType,
        Meta(description="Connections that query at the same time, from 1, or a template."),
    ] = UNSET
    duration_s: Annotated[
        Seconds | UnsetType,
        Meta(
            description="Repeat the queries for this many seconds; left out: each by itself, cold and warm."
        ),
    ] = UNSET
    draws: Annotated[
        list[Draw] | UnsetType,
        Meta(description="Random numbers for each call: { name = …, least = …, most = … }."),
    ] = UNSET
    distinct: Annotated[
        Millions | UnsetType,
        Meta(description="How many draws are generated beforehand, from 1, or a template."),
    ] = UNSET
    timeout_s: Annotated[
        Seconds | UnsetType, Meta(description="Seconds for one call, more than 0, or a template.")
    ] = UNSET
