"""target.json and monitor.jsonl."""

from msgspec import UNSET, UnsetType

from loadstone.results.documents.base import Amount, Count, Ns, Number, Struct, Words


class Setting(Struct, frozen=True):
    """A setting of a server."""

    name: Words = None
    value: Words = None
    source: Words = None


class Durability(Struct, frozen=True):
    """A setting on which it depends whether data survive a crash."""

    setting: str
    value: Words = None
    durable: bool | None = None
    why: str | None = None


class TargetParts(Struct, frozen=True):
    """The parts of a target's labels, which are as short as possible and all different."""

    title: Words = ""
    host: Words = ""
    port: Words = ""
    database: Words = ""
    user: Words = ""
    options: Words = ""
    given: Words = ""


class Target(Struct, frozen=True):
    """target.json."""

    id: str = ""
    label: str = ""
    name: TargetParts | UnsetType = UNSET
    engine: str | None = None
    url: str | None = None
    local: bool | None = None
    version: str | None = None
    version_text: str | None = None
    build: str | None = None
    embedded: bool | None = None
    in_process: bool | None = None
    encrypted: bool | UnsetType | None = UNSET
    authentication: str | UnsetType | None = UNSET
    data_directory: str | None = None
    filesystem: str | UnsetType | None = UNSET
    memory_limit_bytes: Amount | None = None
    settings: list[Setting] | None = None
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
    """The machine that Loadstone runs on."""

    cpu_s: CpuTimes | None = None
    cores: Amount | None = None
    load1: Number | None = None
    memory_total_bytes: Number | None = None
    memory_available_bytes: Number | None = None
    swap_used_bytes: Number | None = None
    disk: DiskCounters | None = None
    network: NetworkCounters | None = None
    pressure: Pressure | None = None
    throttled_s: Number | None = None


class Process(Struct, frozen=True):
    """Processes of the server, or Loadstone's own."""

    processes: Number | None = None
    cpu_user_s: Number | None = None
    cpu_system_s: Number | None = None
    rss_bytes: Number | None = None
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
    cpu_busy: Number | None = None
    memory_total_bytes: Number | None = None
    memory_used_bytes: Number | None = None
    disk: DiskCounters | None = None
    statements: StatementCounters | None = None
    sources: list[str] | None = None


class Engine(Struct, frozen=True):
    """What the server said."""

    counters: Counters | None = None
    gauges: Counters | None = None
    waits: dict[str, Number] | None = None
    machine: Machine | None = None


class ControlGroup(Struct, frozen=True):
    """The control group of the server's first process."""

    memory_bytes: Number | None = None
    cache_bytes: Number | None = None
    limit_bytes: Number | None = None
    oom_kills: Number | None = None
    read_bytes: Number | None = None
    write_bytes: Number | None = None
    read_ops: Number | None = None
    write_ops: Number | None = None
    cpu_s: Number | None = None


class Gpu(Struct, frozen=True):
    """A GPU of the machine that Loadstone runs on."""

    index: Count | None = None
    name: str | None = None
    utilisation: Amount | None = None
    memory_utilisation: Amount | None = None
    memory_used_bytes: Amount | None = None
    memory_total_bytes: Amount | None = None
    power_w: Amount | None = None
    energy_j: Amount | None = None
    pcie_rx_bytes: Amount | None = None
    pcie_tx_bytes: Amount | None = None
    pcie_rx_bytes_per_s: Amount | None = None
    pcie_tx_bytes_per_s: Amount | None = None


class Sample(Struct, frozen=True):
    """A line of monitor.jsonl: counters as they were read, which only grow."""

    t_ns: Ns
    host: Host | None = None
    server: Process | None = None
    client: Process | None = None
    engine: Engine | None = None
    group: ControlGroup | None = None
    gpu: list[Gpu] | None = None
