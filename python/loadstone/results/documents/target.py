"""target.json and monitor.jsonl."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from loadstone.results.documents.base import Amount, Count, Ns, Number, Struct, Words


class Setting(Struct, frozen=True):
    """A setting of a server."""

    name: Words = None
    value: Words = None
    source: Annotated[Words, Meta(description="such as configuration file")] = None


class Durability(Struct, frozen=True):
    """A setting on which it depends whether data survive a crash."""

    setting: str
    value: Words = None
    durable: Annotated[bool | None, Meta(description="whether data survive a crash with this value")] = None
    why: str | None = None


class WatchedBy(Struct, frozen=True):
    """What watches the server's machine (`--watch`)."""

    source: Annotated[str, Meta(description="its URL, without a password")] = ""
    about: Annotated[str, Meta(description="such as exporter, version, machine")] = ""
    clock_offset_s: Annotated[
        Number | None, Meta(description="that machine's wall clock minus ours, when the run began")
    ] = None
    clock_error_s: Annotated[
        Number | None, Meta(description="how far off that can be: half the shortest round trip")
    ] = None
    not_observed: Annotated[tuple[str, ...], Meta(description="what it does not show, and why")] = ()


class TargetParts(Struct, frozen=True):
    """The parts of a target's labels, which are as short as possible and all different."""

    title: Words = ""
    host: Words = ""
    port: Words = ""
    database: Words = ""
    user: Words = ""
    options: Words = ""
    given: Annotated[Words, Meta(description="the target as it was given")] = ""
    settings: Annotated[Words, Meta(description="settings of this target alone")] = ""


class Target(Struct, frozen=True):
    """target.json."""

    id: str = ""
    label: Annotated[str, Meta(description="such as PostgreSQL 18.6 (embedded)")] = ""
    name: TargetParts | UnsetType = UNSET
    engine: str | None = None
    url: Annotated[str | None, Meta(description="without a password")] = None
    local: Annotated[bool | None, Meta(description="the server is on this machine")] = None
    version: str | None = None
    version_text: str | None = None
    build: Annotated[str | None, Meta(description="such as zonky 18.6.0 (gcc 7.5 -Os, no JIT)")] = None
    embedded: Annotated[bool | None, Meta(description="a private server of Loadstone")] = None
    in_process: Annotated[bool | None, Meta(description="the engine is a library in our own process")] = None
    encrypted: bool | UnsetType | None = UNSET
    authentication: str | UnsetType | None = UNSET
    data_directory: str | None = None
    filesystem: str | UnsetType | None = UNSET
    memory_limit_bytes: Annotated[
        Amount | None,
        Meta(description="of a private server's control group, page cache of its files included"),
    ] = None
    watched_by: list[WatchedBy] | UnsetType = UNSET
    settings: Annotated[
        list[Setting] | None,
        Meta(description="every setting that is not at its default, and other important ones"),
    ] = None
    durability: list[Durability] | None = None


Counters = dict[str, Number | None]


class CpuTimes(Struct, frozen=True):
    """Cumulative seconds over all cores."""

    user: Number | None = None
    nice: Number | None = None
    system: Number | None = None
    iowait: Number | None = None
    irq: Number | None = None
    softirq: Number | None = None
    steal: Number | None = None
    idle: Number | None = None


class DiskCounters(Struct, frozen=True):
    """What went to and from all disks."""

    read_ops: Number | None = None
    write_ops: Number | None = None
    read_bytes: Number | None = None
    write_bytes: Number | None = None
    busy_s: Number | None = None


class NetworkCounters(Struct, frozen=True):
    """What went over the network."""

    rx_bytes: Number | None = None
    tx_bytes: Number | None = None
    rx_packets: Number | None = None
    tx_packets: Number | None = None


class Pressure(Struct, frozen=True):
    """Seconds in which tasks waited, by the kernel's pressure stall information."""

    cpu_some_s: Number | None = None
    io_some_s: Number | None = None
    memory_some_s: Number | None = None


class Host(Struct, frozen=True):
    """The machine that Loadstone runs on, or that of the server."""

    cpu_s: CpuTimes | None = None
    cores: Annotated[Amount | None, Meta(description="online")] = None
    load1: Number | None = None
    memory_total_bytes: Number | None = None
    memory_available_bytes: Number | None = None
    swap_used_bytes: Number | None = None
    disk: DiskCounters | None = None
    network: NetworkCounters | None = None
    pressure: Pressure | None = None
    throttled_s: Annotated[Number | None, Meta(description="paused by a control group")] = None


class Process(Struct, frozen=True):
    """Processes of the server, or Loadstone's own."""

    processes: Number | None = None
    cpu_user_s: Number | None = None
    cpu_system_s: Number | None = None
    rss_bytes: Annotated[
        Number | None, Meta(description="private, and shared counted once where /proc allows")
    ] = None
    read_bytes: Number | None = None
    write_bytes: Number | None = None


class StatementCounters(Struct, frozen=True):
    """What statements that have ended used."""

    cpu_user_s: Number | None = None
    cpu_system_s: Number | None = None
    read_bytes: Number | None = None
    write_bytes: Number | None = None


class Machine(Struct, frozen=True):
    """What a remote server reports about its machine."""

    cpu_s: CpuTimes | None = None
    cpu_busy: Annotated[
        Number | None, Meta(description="0 to 1 at that moment, if nothing else is reported")
    ] = None
    memory_total_bytes: Number | None = None
    memory_used_bytes: Annotated[Number | None, Meta(description="without caches")] = None
    disk: Annotated[DiskCounters | None, Meta(description="all whole disks")] = None
    statements: StatementCounters | None = None
    sources: Annotated[list[str] | None, Meta(description="extensions that report it")] = None


class Engine(Struct, frozen=True):
    """What the server said."""

    counters: Annotated[
        Counters | None,
        Meta(description="such as `wal_bytes`, `xact_commit`, `blks_read`, `checkpoints_timed`"),
    ] = None
    gauges: Annotated[
        Counters | None,
        Meta(description="such as `dead_tuples`, `active`; of DuckDB `wal_file_bytes`"),
    ] = None
    waits: Annotated[
        dict[str, Number] | None, Meta(description="sessions, by type and name of the wait event")
    ] = None
    machine: Annotated[Machine | None, Meta(description="of servers that are not on this machine")] = None


class ControlGroup(Struct, frozen=True):
    """The control group of the server's first process."""

    memory_bytes: Number | None = None
    cache_bytes: Annotated[Number | None, Meta(description="pages of files, shared memory left out")] = None
    limit_bytes: Number | None = None
    oom_kills: Annotated[Number | None, Meta(description="processes killed because memory ran out")] = None
    read_bytes: Number | None = None
    write_bytes: Number | None = None
    read_ops: Number | None = None
    write_ops: Number | None = None
    cpu_s: Number | None = None


class Gpu(Struct, frozen=True):
    """A GPU of the machine that Loadstone runs on."""

    index: Count | None = None
    name: str | None = None
    utilisation: Annotated[
        Amount | None,
        Meta(description="0 to 1: share of the driver's last sample period in which a kernel ran"),
    ] = None
    memory_utilisation: Annotated[
        Amount | None, Meta(description="0 to 1: share of it in which memory was read or written")
    ] = None
    memory_used_bytes: Amount | None = None
    memory_total_bytes: Amount | None = None
    power_w: Amount | None = None
    energy_j: Annotated[Amount | None, Meta(description="cumulative, counted by the card")] = None
    pcie_rx_bytes: Annotated[Amount | None, Meta(description="to the GPU, cumulative")] = None
    pcie_tx_bytes: Annotated[Amount | None, Meta(description="from the GPU, cumulative")] = None
    pcie_rx_bytes_per_s: Annotated[
        Amount | None, Meta(description="of 20 ms, if the card does not count")
    ] = None
    pcie_tx_bytes_per_s: Annotated[Amount | None, Meta(description="likewise")] = None


class WatchedMachine(Struct, frozen=True):
    """The server's machine, which is another one, as one `--watch` shows it."""

    t_ns: Annotated[Ns, Meta(description="when it was read, on the clock of `t_ns` of the line")]
    source: Annotated[str, Meta(description="the URL of `--watch`, without a password")] = ""
    clock_offset_s: Annotated[Number | None, Meta(description="its wall clock minus ours")] = None
    clock_error_s: Annotated[Number | None, Meta(description="how far off that can be")] = None
    host: Annotated[Host | None, Meta(description="counters of that machine")] = None
    server: Annotated[Process | None, Meta(description="the server's processes there")] = None
    counters: Annotated[
        Counters | None, Meta(description="of the server, by postgres_exporter; names as in `engine`")
    ] = None
    gauges: Annotated[Counters | None, Meta(description="likewise")] = None


class Sample(Struct, frozen=True):
    """A line of monitor.jsonl: counters as they were read, which only grow."""

    t_ns: Ns
    host: Annotated[Host | None, Meta(description="the machine that Loadstone runs on")] = None
    server: Annotated[Process | None, Meta(description="the server's processes on this machine")] = None
    client: Annotated[Process | None, Meta(description="Loadstone itself")] = None
    engine: Engine | None = None
    group: Annotated[
        ControlGroup | None,
        Meta(description="control group of the server's first process; null where it is ours"),
    ] = None
    gpu: list[Gpu] | None = None
    watch: Annotated[
        tuple[WatchedMachine, ...],
        Meta(description="only with `--watch`: the sources that answered in time"),
    ] = ()
