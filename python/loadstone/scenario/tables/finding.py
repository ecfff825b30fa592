"""[[finding]]: a question that the report answers as sentences, and what is compared for the answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.scenario.tables.base import UNIQUE, Id, ParameterName, Table, Text


class Finding(Table):
    """A question and the comparisons that answer it; the words of the answer come from the figures."""

    question: Annotated[Text, Meta(description="What a reader wants to know, as a question.")]
    compare: Annotated[
        Literal["rates", "sizes", "phases", "targets", "queries", "knee", "scaling", "recovery"],
        Meta(
            description="rates, sizes: of the values of a swept parameter; phases: rates of each of `phases` "
            "and of the first of them; targets: rates of each target and of the first; queries: their times "
            "on each target and on the first; knee: of loads in steps; scaling: the law over clients; "
            "recovery: the load's rate and WAL, and how to time a recovery."
        ),
    ]
    parameter: Annotated[
        ParameterName | UnsetType, Meta(description="The swept parameter, for rates and sizes.")
    ] = UNSET
    phases: Annotated[
        Annotated[list[Id], Meta(min_length=1, extra_json_schema=UNIQUE)] | UnsetType,
        Meta(description="Ids of the phases that count; all, where left out. Needed for phases."),
    ] = UNSET
