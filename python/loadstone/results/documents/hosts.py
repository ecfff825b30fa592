"""hosts.json: the load hosts of one drive."""

from typing import Annotated

from msgspec import Meta

from loadstone.results.documents.base import Amount, Count, Ns, Struct


class HostClock(Struct, frozen=True):
    """A host's monotonic clock against that of the host that merged the records."""

    offset_ns: Annotated[
        int | None, Meta(description="its clock minus ours, by the fastest of 32 round trips")
    ] = None
    error_ns: Annotated[Ns | None, Meta(description="half of that round trip")] = None
    round_trip_ns: Ns | None = None
    drift_ns: Annotated[
        int | None, Meta(description="change of the offset from before the drive to after it")
    ] = None
    drift_error_ns: Ns | None = None


class HostAgent(Struct, frozen=True):
    """What the process of a host's drive cost beside the drive, from the start to its end."""

    cpu_ns_per_s: Annotated[Amount, Meta(description="of the thread that answers questions")] = 0.0
    bytes_per_s: Annotated[Amount, Meta(description="of questions and answers, without Dask's own")] = 0.0


class LoadHost(Struct, frozen=True):
    """One load host; its own files are in `hosts/NAME/`."""

    name: str = ""
    number: Annotated[Count, Meta(description="its clients and starts are those of this number")] = 0
    machine: Annotated[str | None, Meta(description="its host name")] = None
    cpus: Count | None = None
    state: Annotated[str | None, Meta(description="as in drive.json, or `lost`")] = None
    reason: str | None = None
    clock: HostClock = HostClock()
    began_after_go_ns: Annotated[
        int | None, Meta(description="when its last thread began, after the common start, on our clock")
    ] = None
    ceiling_tps: Annotated[
        Amount | None, Meta(description="its own, against a server that answers at once")
    ] = None
    agent: HostAgent | None = None


class Hosts(Struct, frozen=True):
    """hosts.json; only of drives on several load hosts."""

    format: Count = 1
    go_ns: Annotated[Ns | None, Meta(description="the common start")] = None
    start_skew_ns: Annotated[Ns | None, Meta(description="between the first host to begin and the last")] = (
        None
    )
    start_skew_limit_ns: Annotated[
        Ns | None, Meta(description="10 ms, or 1 % of an interval: beyond it a warning is given")
    ] = None
    hosts: list[LoadHost] = []  # noqa: RUF012 - msgspec copies it
