"""[crash]: what `loadstone crash` does with a scenario where its options do not say it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.scenario.tables.base import Id, SeveralValues, Table

Moments = Literal["random", "late"]
"""When servers crash."""


class CrashOfSize(Table):
    """How `loadstone crash` crashes this scenario: moments, cycles, window_s, sweep."""

    moments: Annotated[
        Moments | UnsetType,
        Meta(description="When servers crash: at random, or late in the checkpoint cycle."),
    ] = UNSET
    cycles: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | UnsetType, Meta(description="Crashes to make of each value.")
    ] = UNSET
    window_s: Annotated[
        Annotated[float, Meta(ge=0.5, le=3600)] | UnsetType,
        Meta(description="Longest load before a crash in seconds."),
    ] = UNSET
    sweep: Annotated[
        Annotated[dict[str, SeveralValues], Meta(min_length=1)] | UnsetType,
        Meta(description="{ PARAMETER = [VALUE, VALUE, …] }: a fresh server for each value."),
    ] = UNSET


class Crash(CrashOfSize):
    """How `loadstone crash` crashes this scenario; or a table of these keys for a size."""

    phase: Annotated[Id | UnsetType, Meta(description="Id of the phase of scripts that is the load.")] = UNSET
    tiny: CrashOfSize | UnsetType = UNSET
    small: CrashOfSize | UnsetType = UNSET
    full: CrashOfSize | UnsetType = UNSET
