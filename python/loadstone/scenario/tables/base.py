"""What the tables of scenario.toml have in common: types of values, and tables in several forms."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

UNIQUE = {"uniqueItems": True}
"""In a list's `extra_json_schema`: each value once."""

Template = Annotated[str, Meta(pattern=r"\{[{%]")]
Text = Annotated[str, Meta(min_length=1)]
Flag = bool | Template
Connections = Annotated[int, Meta(ge=1, le=1_000_000)] | Template
Millions = Annotated[int, Meta(ge=1, le=10_000_000)] | Template
WholeFromOne = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)] | Template
CountFromOne = WholeFromOne | Template
Drawn = Annotated[int, Meta(ge=-(2**62), le=2**62 - 1)] | Template
Seconds = Annotated[float, Meta(gt=0, le=31_536_000)] | Template
SecondsFromZero = Annotated[float, Meta(ge=0, le=31_536_000)] | Template
Rate = Annotated[float, Meta(gt=0, le=1_000_000_000)] | Template
Pace = Literal["closed", "fixed", "poisson"] | Template
Id = Annotated[
    str,
    Meta(
        pattern="^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
        max_length=60,
        description='Lower-case words joined by hyphens, such as "iot-feed".',
    ),
]
Version = Annotated[
    str,
    Meta(pattern=r"^[0-9]+(\.[0-9]+)*$", description='A server version as text, such as "10" or "9.6".'),
]
ParameterName = Annotated[
    str,
    Meta(
        pattern="^(?!(size|seed|repeat|range)$)[a-z][a-z0-9_]*$",
        description="Lower-case letters, digits and underscores; `size`, `seed`, `repeat` and `range` are "
        "taken.",
    ),
]
VariableName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
        description="A name of a script variable: letters, digits and underscores.",
    ),
]
Value = Annotated[str | int | float | bool, Meta(description="Text, a number, true or false.")]
Values = Annotated[dict[str, Value], Meta(description="Values of parameters: NAME = VALUE.")]
SeveralValues = Annotated[
    list[Value], Meta(min_length=1, extra_json_schema=UNIQUE, description="A list of values, each once.")
]
SizeValue = Annotated[
    str | int | float | bool | SeveralValues,
    Meta(description="Text, a number, true or false; or a list of them."),
]
SizeValues = Annotated[
    dict[str, SizeValue],
    Meta(
        description="Values of parameters: NAME = VALUE, or NAME = [VALUE, VALUE, …] for a parameter that a "
        "phase sweeps."
    ),
]
Variant = Annotated[
    dict[str, Value], Meta(min_length=1, description="One variant: { PARAMETER = VALUE, … }.")
]
Sweep = Annotated[dict[str, SeveralValues], Meta(min_length=1)] | Annotated[list[Variant], Meta(min_length=1)]
Capabilities = Annotated[
    list[Text],
    Meta(description='Names of capabilities, such as ["plpgsql", "extension:pg_prewarm"].'),
]
Sql = Annotated[Text, Meta(description="SQL, or the name of a .sql file in the scenario's folder.")]
ScriptName = Annotated[
    str,
    Meta(pattern=r"\.pgbench$", description="The name of a .pgbench file in the scenario's folder."),
]


class Table(Struct, forbid_unknown_fields=True, kw_only=True):
    """A table of scenario.toml: it has no other keys than these."""


class Forms:
    """A table in one of several forms: the first of which it has the first key, or else the last."""

    forms: ClassVar[tuple[type[Table], ...]]
