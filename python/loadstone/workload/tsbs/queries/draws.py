"""The random parameters of TSBS's queries, drawn from Go's random stream in TSBS's order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone._core import GoRand
    from loadstone.workload.tsbs.queries.kinds import Kind

FLEETS = ("East", "West", "North", "South")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEVICE = {"devops": "host", "iot": "truck"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """What makes one query of a kind; times as TSBS writes them, `2016-01-01 11:48:31.646325 +0000`."""

    start: str = ""
    end: str = ""
    devices: tuple[str, ...] = ()
    """`host_3` or `truck_3`, in the order of the draws."""
    fleet: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """The data set that queries are drawn for: its devices and its time, nanoseconds since 1970."""

    scale: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """Parameters with the window they come from."""

    parameters: Parameters
    start_ns: int
    end_ns: int


def draw(kind: Kind, data: Range, rand: GoRand) -> Drawn:
    """Draw one query's parameters. Raises LoadstoneError when the data set is too small for the kind."""
    start_ns = end_ns = 0
    devices: tuple[str, ...] = ()
    fleet = ""
    for what in kind.draws:
        if what == "window":
            start_ns = _window(kind, data, rand)
            end_ns = start_ns + kind.window_ns
        elif what == "devices":
            devices = _devices(kind, data.scale, rand)
        else:
            fleet = FLEETS[rand.intn(len(FLEETS))]
    if not kind.window_ns:
        return Drawn(Parameters(devices=devices, fleet=fleet), 0, 0)
    return Drawn(Parameters(_literal(start_ns), _literal(end_ns), devices, fleet), start_ns, end_ns)


def rfc3339(time_ns: int) -> str:
    """Write a time as TSBS's descriptions do: whole seconds, UTC."""
    return f"{_moment(time_ns).isoformat()[:19]}Z"


def _window(kind: Kind, data: Range, rand: GoRand) -> int:
    room = data.end_ns - kind.window_ns - data.start_ns
    if room <= 0:
        hours = (data.end_ns - data.start_ns) / 3.6e12
        raise LoadstoneError(
            f"a query of type {kind.name} needs {kind.window_ns / 3600000000000.0:g} hours, but the "
            f"data set has {hours:g}",
            "Set a later end of the data set: its time range must be longer than the query's.",
        )
    return data.start_ns + rand.int63n(room)


def _devices(kind: Kind, scale: int, rand: GoRand) -> tuple[str, ...]:
    if kind.devices > scale:
        raise LoadstoneError(
            f"a query of type {kind.name} needs {kind.devices} {_DEVICE[kind.family]}s, but the data "
            f"set has {scale}",
            "Set a larger scale.",
        )
    chosen: dict[int, None] = {}
    while len(chosen) < kind.devices:
        chosen.setdefault(rand.intn(scale))
    return tuple(f"{_DEVICE[kind.family]}_{number}" for number in chosen)


def _literal(time_ns: int) -> str:
    # Go's layout with .999999: trailing zeros of the fraction are left out, and the point with them.
    moment = _moment(time_ns)
    text = moment.isoformat(" ")[:-6]  # without Python's "+00:00"
    return f"{text.rstrip('0') if moment.microsecond else text} +0000"


def _moment(time_ns: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_ns // 1000)
