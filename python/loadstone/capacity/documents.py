"""The types of the answer of `loadstone advise capacity`."""

from typing import Annotated

from msgspec import Meta, Struct

from loadstone.results.documents.summary.units import Bytes, BytesPerRow, Figure, PerSecond, Seconds

FORMAT = 1


class Wanted(Struct, kw_only=True, frozen=True):
    """What is asked for."""

    devices: int
    interval_s: Annotated[Seconds, Meta(description="between two reports of a device")]
    rows_per_report: int
    retention_s: Annotated[Seconds, Meta(description="how long rows are kept")]

    @property
    def rows_per_s(self) -> float:
        """Rows that arrive each second."""
        return self.devices * self.rows_per_report / self.interval_s

    @property
    def rows_per_day(self) -> float:
        """Rows that arrive each day."""
        return self.rows_per_s * DAY_S

    @property
    def rows_kept(self) -> float:
        """Rows that are there once the retention time is over for the first of them."""
        return self.rows_per_s * self.retention_s


DAY_S = 86_400


class Servers(Struct, kw_only=True):
    """How many servers take the rows."""

    count: Annotated[int | None, Meta(description="by the low end of the measured rate")]
    by_value: Annotated[int, Meta(description="by the measured rate itself")]
    share: Annotated[Figure, Meta(description="needed over measured rate, of all servers together one")]
    devices: Annotated[int, Meta(description="most that one server takes, by the low end if there is one")]


class Disk(Struct, kw_only=True):
    """Bytes of the rows, of all servers together."""

    table_bytes_per_row: BytesPerRow
    index_bytes_per_row: BytesPerRow | None
    bytes_per_day: Bytes
    bytes_kept: Bytes


class Log(Struct, kw_only=True):
    """Bytes of the write-ahead log, of all servers together."""

    wal_bytes_per_row: BytesPerRow
    bytes_per_day: Bytes
    bytes_per_s: Figure


class Partitions(Struct, kw_only=True):
    """Partitions of one server."""

    rows: Annotated[int, Meta(description="most rows of one, by the knee")]
    seconds: Annotated[Seconds, Meta(description="time that one spans")]
    count: Annotated[int, Meta(description="in the retention time")]
    ddl: Annotated[str, Meta(description="empty where the table has no column that grows with the rows")]


class Extrapolation(Struct, kw_only=True):
    """How far a figure is used beyond what was measured."""

    what: str
    measured: Figure
    wanted: Figure
    unit: str

    @property
    def times(self) -> float:
        """Wanted over measured."""
        return self.wanted / self.measured


class Capacity(Struct, kw_only=True):
    """The answer for one way of loading rows that was measured."""

    name: str
    target: str
    phases: Annotated[list[str], Meta(description="folders of the phases whose figures are used")]
    measured_rows_per_s: PerSecond
    low_rows_per_s: PerSecond | None
    high_rows_per_s: PerSecond | None
    rate_note: Annotated[str, Meta(description="what the rate comes from, or why it has no interval")]
    servers: Servers
    disk: Disk | None
    log: Log | None
    knee: Annotated[str | None, Meta(description="where import slows down")]
    partitions: Partitions | None
    extrapolated: list[Extrapolation]
    conditions: Annotated[list[str], Meta(description="under which the figures were measured")]
    not_measured: list[str]


class Answer(Struct, kw_only=True):
    """What `--json` prints."""

    format: int
    run: str | None
    wanted: Wanted
    needed_rows_per_s: PerSecond
    rows_per_day: Figure
    rows_kept: Figure
    capacities: list[Capacity]
