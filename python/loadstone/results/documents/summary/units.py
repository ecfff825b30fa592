"""Figures of summary.json with their units. Whole numbers stay whole: they are written without a point."""

from typing import Annotated, Literal

import msgspec

Figure = int | float
Nanoseconds = Annotated[int | float, msgspec.Meta(extra={"unit": "ns"})]
Seconds = Annotated[int | float, msgspec.Meta(extra={"unit": "s"})]
Bytes = Annotated[int | float, msgspec.Meta(extra={"unit": "bytes"})]
PerSecond = Annotated[int | float, msgspec.Meta(extra={"unit": "1/s"})]
BytesPerSecond = Annotated[int | float, msgspec.Meta(extra={"unit": "bytes/s"})]
BytesPerRow = Annotated[int | float, msgspec.Meta(extra={"unit": "bytes/row"})]
Share = Annotated[int | float, msgspec.Meta(extra={"unit": "0..1"})]
Joules = Annotated[int | float, msgspec.Meta(extra={"unit": "J"})]
Value = str | int | float | bool | None
"""A value of a parameter."""
Variant = dict[str, Value]
"""Values of the parameters that a phase is swept over, by their names."""


class Figures(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A part of summary.json. A key with a default is left out where it says nothing."""

    def __bool__(self) -> Literal[True]:
        """Say that it is there: `phase.steps and phase.steps.knee` is a knee, or None."""
        return True
