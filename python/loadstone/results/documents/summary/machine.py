"""What the machine did, in summary.json."""

from typing import Annotated

from msgspec import Meta

from loadstone.results.documents.summary.units import (
    Bytes,
    BytesPerSecond,
    Figure,
    Figures,
    PerSecond,
    Seconds,
    Share,
)

MachineServerCpu = Annotated[
    Share | None, Meta(description="the server's processes, of all of its machine, by `--watch ssh://…`")
]


class CoursePoint(Figures, kw_only=True):
    """The machine at one time of a phase."""

    t_s: Seconds
    cpu_server: Share | None
    cpu_client: Share | None
    cpu_busy: Share | None
    memory_used_bytes: Bytes | None
    server_rss_bytes: Bytes | None
    client_rss_bytes: Bytes | None
    group_memory_bytes: Bytes | None
    disk_read_ops_per_s: PerSecond | None
    disk_write_ops_per_s: PerSecond | None
    disk_write_bytes_per_s: BytesPerSecond | None
    gpu_utilisation: Share | None
    gpu_memory_bytes: Bytes | None
    machine_cpu: Share | None
    machine_memory_bytes: Bytes | None
    machine_read_ops_per_s: PerSecond | None
    machine_write_ops_per_s: PerSecond | None


class ResourcePoint(CoursePoint, kw_only=True):
    """The machine at one time of the run."""

    cpu_other: Annotated[Share | None, Meta(description="neither the server nor Loadstone")]
    cpu_steal: Share | None
    cpu_iowait: Share | None
    disk_read_bytes_per_s: BytesPerSecond | None
    disk_busy: Share | None
    network_rx_bytes_per_s: BytesPerSecond | None
    network_tx_bytes_per_s: BytesPerSecond | None
    server_write_bytes_per_s: BytesPerSecond | None
    wal_bytes_per_s: BytesPerSecond | None
    commits_per_s: PerSecond | None
    blocks_read_per_s: PerSecond | None
    temp_bytes_per_s: BytesPerSecond | None
    group_read_bytes_per_s: BytesPerSecond | None
    group_write_bytes_per_s: BytesPerSecond | None
    group_cache_bytes: Bytes | None
    group_limit_bytes: Bytes | None
    machine_read_bytes_per_s: BytesPerSecond | None
    machine_write_bytes_per_s: BytesPerSecond | None
    machine_disk_busy: Share | None = None
    machine_rx_bytes_per_s: BytesPerSecond | None = None
    machine_tx_bytes_per_s: BytesPerSecond | None = None
    machine_iowait: Share | None = None
    machine_steal: Share | None = None
    machine_server_cpu: MachineServerCpu = None
    machine_server_rss_bytes: Bytes | None = None
    active_sessions: Figure | None
    dead_tuples: Figure | None
    waits: Annotated[dict[str, Figure], Meta(description="sessions that waited, by wait event")]


class WatchGap(Figures, kw_only=True):
    """A time in which a source of `--watch` said nothing."""

    start_s: Seconds
    end_s: Seconds


class WatchFigures(Figures, kw_only=True):
    """What one `--watch` has shown of the server's machine."""

    source: Annotated[str, Meta(description="the URL, without a password")]
    about: str
    samples: int
    missed: Annotated[int, Meta(description="samples in which it did not answer in time")]
    gaps: list[WatchGap]
    gaps_left_out: int = 0
    clock_offset_s: Annotated[Seconds | None, Meta(description="its wall clock minus ours")] = None
    clock_error_s: Annotated[Seconds | None, Meta(description="how far off that can be")] = None
    not_observed: Annotated[list[str], Meta(description="what it does not show, and why")]


class Resources(Figures, kw_only=True):
    """What the machine did over the run."""

    points: list[ResourcePoint]
    waits: list[str]
    waits_left_out: int
    checkpoints: Annotated[list[Figure], Meta(extra={"unit": "s"})]
    cores: Figure | None
    watch: Annotated[list[WatchFigures] | None, Meta(description="only with `--watch`")] = None


class Usage(Figures, kw_only=True):
    """Means over the measured time of a phase."""

    cpu_server: Share | None
    cpu_client: Share | None
    cpu_other: Share | None
    cpu_steal: Share | None
    cpu_iowait: Share | None
    cpu_busy: Share | None
    disk_busy: Share | None
    server_rss_bytes: Bytes | None
    client_rss_bytes: Bytes | None
    gpu_utilisation: Share | None
    gpu_memory_bytes: Bytes | None
    memory_limit_bytes: Bytes | None
    checkpoints: int
    wal_bytes: Bytes | None
    deadlocks: Figure | None
    machine_cpu: Annotated[Share | None, Meta(description="the server's machine, by `--watch`")] = None
    machine_server_cpu: MachineServerCpu = None
    machine_iowait: Share | None = None
    machine_steal: Share | None = None
    machine_memory_bytes: Bytes | None = None
    machine_server_rss_bytes: Bytes | None = None
    machine_disk_busy: Share | None = None
    machine_read_ops_per_s: PerSecond | None = None
    machine_write_ops_per_s: PerSecond | None = None
    machine_read_bytes_per_s: BytesPerSecond | None = None
    machine_write_bytes_per_s: BytesPerSecond | None = None
    machine_rx_bytes_per_s: BytesPerSecond | None = None
    machine_tx_bytes_per_s: BytesPerSecond | None = None
    server_write_bytes: Annotated[
        Bytes | None, Meta(description="that the server's processes had written to storage")
    ] = None
