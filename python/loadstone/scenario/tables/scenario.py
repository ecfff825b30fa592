"""scenario.toml as a whole."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.scenario.tables.base import (
    UNIQUE,
    Capabilities,
    Id,
    ParameterName,
    SizeValues,
    Table,
    Text,
    Value,
    Version,
)
from loadstone.scenario.tables.crash import Crash
from loadstone.scenario.tables.finding import Finding
from loadstone.scenario.tables.phase import Phase


class Source(Table):
    """Where the published test comes from."""

    title: Annotated[Text, Meta(description="Title of the publication.")]
    author: Annotated[Text, Meta(description="Who published it.")]
    year: Annotated[Annotated[int, Meta(ge=1970, le=2200)], Meta(description="Year of publication.")]
    hardware: Annotated[Text, Meta(description="The machine that the figures were measured on.")]
    cores: Annotated[
        Annotated[int, Meta(ge=1, le=1000000)],
        Meta(description="Its number of CPU cores, for figures per core."),
    ]
    url: Annotated[
        Annotated[str, Meta(pattern="^https?://")] | UnsetType, Meta(description="An http or https address.")
    ] = UNSET


class Requires(Table):
    """What every phase needs of a target."""

    capabilities: Capabilities | UnsetType = UNSET
    min_server_version: Version | UnsetType = UNSET


class Parameter(Table):
    """A parameter: type, default, help; values for an enum; minimum, maximum and unit for numbers."""

    type: Annotated[
        Literal["enum", "integer", "number", "string", "boolean", "path"],
        Meta(description="One of enum, integer, number, string, boolean, path."),
    ]
    default: Value
    help: Annotated[Text, Meta(description="What the parameter does, in one sentence.")]
    unit: Annotated[Text | UnsetType, Meta(description='Unit of the number, such as "s".')] = UNSET
    values: Annotated[
        Annotated[list[str], Meta(min_length=1, extra_json_schema=UNIQUE)] | UnsetType,
        Meta(description="The values of an enum, as texts."),
    ] = UNSET
    minimum: Annotated[int | float | UnsetType, Meta(description="The smallest value allowed.")] = UNSET
    maximum: Annotated[int | float | UnsetType, Meta(description="The largest value allowed.")] = UNSET


class Sizes(Table):
    """Tables [sizes.tiny], [sizes.small] and [sizes.full], each with values of parameters."""

    tiny: SizeValues | UnsetType = UNSET
    small: SizeValues | UnsetType = UNSET
    full: SizeValues | UnsetType = UNSET


class PrivateServerOfSize(Table):
    """What the scenario wants of a private server: memory, settings."""

    memory: Annotated[
        Text | UnsetType,
        Meta(description='Memory of server and page cache together, such as "96MB", or a template.'),
    ] = UNSET
    settings: Annotated[
        dict[str, str] | UnsetType, Meta(description="Settings of the server as texts: NAME = VALUE.")
    ] = UNSET


class PrivateServer(PrivateServerOfSize):
    """What the scenario wants of a private server: memory, settings; or a table of these for a size."""

    tiny: PrivateServerOfSize | UnsetType = UNSET
    small: PrivateServerOfSize | UnsetType = UNSET
    full: PrivateServerOfSize | UnsetType = UNSET


class Scenario(Table):
    """One load test as data. In a [[phase]], text may be a template over the scenario's parameters."""

    id: Id
    title: Annotated[Text, Meta(description="A title of one line.")]
    version: Annotated[
        Annotated[str, Meta(pattern="^[0-9]+(\\.[0-9]+)*$")],
        Meta(
            description='Version of the scenario as text, such as "1" or "1.2"; raise it when figures '
            "are no longer comparable."
        ),
    ]
    why: Annotated[Text, Meta(description="What the test shows, in prose.")]
    phase: Annotated[
        Annotated[list[Phase], Meta(min_length=1)],
        Meta(description="One table [[phase]] for each phase, in order."),
    ]
    source: Source | UnsetType = UNSET
    finding: Annotated[
        Annotated[list[Finding], Meta(min_length=1)] | UnsetType,
        Meta(description="One table [[finding]] for each question that the report answers as sentences."),
    ] = UNSET
    requires: Requires | UnsetType = UNSET
    parameters: Annotated[
        dict[ParameterName, Parameter] | UnsetType,
        Meta(description="One table [parameters.NAME] for each parameter."),
    ] = UNSET
    sizes: Annotated[
        Sizes | UnsetType,
        Meta(
            description="Tables [sizes.tiny], [sizes.small] and [sizes.full], each with values of parameters."
        ),
    ] = UNSET
    private_server: PrivateServer | UnsetType = UNSET
    crash: Crash | UnsetType = UNSET
