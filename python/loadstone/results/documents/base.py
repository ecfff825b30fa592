"""What the types of the documents are made of.

What is required here is what figures cannot be computed without; anything else may be missing, as in folders
of older versions. Keys that are not named here are allowed: the report does not compute with them.
"""

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Ns = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""A moment or a span on the monotonic clock."""
Number = int | Annotated[float, msgspec.Meta(ge=-1e20, le=1e20)]
Amount = Annotated[int, msgspec.Meta(ge=0)] | Annotated[float, msgspec.Meta(ge=0, le=1e20)]
"""A whole number stays one: it is shown and written without a point."""
Scalar = str | int | float | bool | None
Words = str | int | float | bool | None
"""Shown as it is."""


class Struct(msgspec.Struct, frozen=True):
    """A document, or a part of one."""

    def check(self) -> None:
        """Raise ValueError where fields contradict each other."""

    def __bool__(self) -> Literal[True]:
        """Say that it is there: `drive and drive.load` is a load, or None."""
        return True


class Counts(Struct, frozen=True):
    """Outcomes of transactions."""

    scheduled: Annotated[Count, msgspec.Meta(description="by intended start")]
    done: Annotated[Count, msgspec.Meta(description="outcomes count when they happen")]
    failed: Count
    skipped: Count
    dropped: Count
    carried: Annotated[
        Count | None,
        msgspec.Meta(
            description="scheduled in the warm-up, ended after it; missing in folders of older versions"
        ),
    ] = None


class WarmupCounts(Struct, frozen=True):
    """Outcomes of the warm-up: all 0 where they are missing."""

    scheduled: Count = 0
    carried: Count = 0
    done: Count = 0
    failed: Count = 0
    skipped: Count = 0
    dropped: Count = 0


class Stats(Struct, frozen=True):
    """A distribution."""

    count: Annotated[Count | None, msgspec.Meta(description="0: the others are null")] = None
    mean_ns: Amount | None = None
    stddev_ns: Amount | None = None
    min_ns: Amount | None = None
    max_ns: Amount | None = None
