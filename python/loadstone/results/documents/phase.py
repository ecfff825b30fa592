"""phase.json."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from loadstone.results.documents.base import Amount, Count, Ns, Number, Scalar, Struct, Words


class Relation(Struct, frozen=True):
    """A relation of the database."""

    name: Annotated[str, Meta(description="`(others)`: the rest of a kind, summed")]
    kind: Annotated[str | None, Meta(description="table, index, toast or other")] = None
    table: str | None = None
    bytes: Amount | None = None
    rows_estimate: Number | None = None


class Sizes(Struct, frozen=True):
    """Sizes of the database."""

    database_bytes: Amount | None = None
    wal_lsn_bytes: Amount | None = None
    relations: Annotated[list[Relation] | None, Meta(description="largest first, at most 200")] = None
    relations_left_out: Annotated[Count | None, Meta(description="summed in `(others)`")] = None


class BeforeAfter(Struct, frozen=True):
    """Sizes before and after a phase."""

    before: Sizes | None = None
    after: Annotated[Sizes | None, Meta(description="null: not yet")] = None


class StoredIndex(Struct, frozen=True):
    """An index of a table that was looked at."""

    name: str
    bytes: Amount | None = None
    allocated_bytes: Amount | None = None


class StoredTable(Struct, frozen=True):
    """A table that was looked at."""

    name: str
    rows: Amount | None = None
    logical_bytes: Amount | None = None
    heap_bytes: Amount | None = None
    toast_bytes: Annotated[Amount | None, Meta(description="its index and maps included")] = None
    index_bytes: Amount | None = None
    map_bytes: Annotated[Amount | None, Meta(description="free space and visibility maps")] = None
    free_bytes: Annotated[
        Amount | None, Meta(description="space in heap and TOAST by the free space map")
    ] = None
    allocated_bytes: Annotated[
        Amount | None, Meta(description="512 × `st_blocks` of all segments and forks")
    ] = None
    indexes: list[StoredIndex] | None = None
    shared_file: Annotated[
        bool | None,
        Meta(description="free and allocated bytes are those of one file with other tables as well"),
    ] = None


class Look(Struct, frozen=True):
    """All tables at one moment."""

    when: Annotated[str | None, Meta(description="such as after the load, after vacuum")] = None
    tables: list[StoredTable] | None = None


class WrittenBytes(Struct, frozen=True):
    """What was written to get the rows onto the disk."""

    wal_bytes: Amount | None = None
    device_bytes: Amount | None = None
    server_bytes: Annotated[Amount | None, Meta(description="by the server's processes")] = None
    amplification: Annotated[Amount | None, Meta(description="device bytes over logical bytes")] = None
    of: Annotated[str | None, Meta(description="whose writes the device bytes are")] = None


class Storage(Struct, frozen=True):
    """What tables take on disk, looked at one or more times."""

    looks: list[Look] | None = None
    written: WrittenBytes | None = None
    notes: Annotated[list[str] | None, Meta(description="why something is null")] = None


class Statement(Struct, frozen=True):
    """A statement of the setup."""

    text: str
    seconds: Amount | None = None
    when: str | UnsetType = UNSET
    part_of_load: bool | UnsetType = UNSET


class Published(Struct, frozen=True):
    """A figure that was published of another system."""

    metric: Annotated[str, Meta(description="such as `tps`")]
    value: Number | None = None
    unit: str | None = None
    note: str | None = None
    system: Annotated[str | None, Meta(description="empty: there was one")] = None
    query: Annotated[str | None, Meta(description="empty: of the phase")] = None


class Curve(Struct, frozen=True):
    """A published curve of seconds a step."""

    name: Annotated[str | None, Meta(description="such as RAID")] = None
    step_rows: Count | None = None
    seconds: list[Number] | None = None
    note: str | None = None


class Check(Struct, frozen=True):
    """What was compared after a phase."""

    name: str
    expected: Words = None
    actual: Words = None
    passed: bool | None = None
    detail: Words = None


class Phase(Struct, frozen=True):
    """phase.json."""

    number: Count | None = None
    id: str | None = None
    key: Annotated[
        str | None, Meta(description="NNN-PHASE with variant and repeat: the name of its folder")
    ] = None
    kind: Annotated[str | None, Meta(description="sql, drive, load, query, size or check")] = None
    title: str | None = None
    why: str | None = None
    variant: Annotated[dict[str, Scalar] | None, Meta(description="values of the swept parameters")] = None
    round: Annotated[Count | None, Meta(description="value of the swept parameter `round`")] = None
    repeat: Count | None = None
    target: str | None = None
    scenario: str | None = None
    state: Literal["complete", "failed", "interrupted", "skipped", "running"] | None = None
    reason: str | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    statements: Annotated[
        list[Statement] | None, Meta(description="of sql phases, and the setup of script phases")
    ] = None
    headline: Annotated[
        Literal["tps", "rows_per_s", "metrics_per_s"] | None, Meta(description="the main figure")
    ] = None
    rows_per_transaction: Amount | None = None
    published: list[Published] | None = None
    curves: Annotated[list[Curve] | None, Meta(description="published")] = None
    knee: Annotated[bool | None, Meta(description="whether to look for one")] = None
    sizes: BeforeAfter | None = None
    storage: Annotated[Storage | None, Meta(description="a load of plain rows with `storage = true`")] = None
    checks: list[Check] | None = None
