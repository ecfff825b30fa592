"""phase.json."""

from typing import Literal

from msgspec import UNSET, UnsetType

from loadstone.results.documents.base import Amount, Count, Ns, Number, Scalar, Struct, Words


class Relation(Struct, frozen=True):
    """A relation of the database."""

    name: str
    kind: str | None = None
    table: str | None = None
    bytes: Amount | None = None
    rows_estimate: Number | None = None


class Sizes(Struct, frozen=True):
    """SIZES."""

    database_bytes: Amount | None = None
    wal_lsn_bytes: Amount | None = None
    relations: list[Relation] | None = None
    relations_left_out: Count | None = None


class BeforeAfter(Struct, frozen=True):
    """Sizes before and after a phase."""

    before: Sizes | None = None
    after: Sizes | None = None


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
    toast_bytes: Amount | None = None
    index_bytes: Amount | None = None
    map_bytes: Amount | None = None
    free_bytes: Amount | None = None
    allocated_bytes: Amount | None = None
    indexes: list[StoredIndex] | None = None
    shared_file: bool | None = None


class Look(Struct, frozen=True):
    """All tables at one moment."""

    when: str | None = None
    tables: list[StoredTable] | None = None


class WrittenBytes(Struct, frozen=True):
    """What was written to get the rows onto the disk."""

    wal_bytes: Amount | None = None
    device_bytes: Amount | None = None
    server_bytes: Amount | None = None
    amplification: Amount | None = None
    of: str | None = None


class Storage(Struct, frozen=True):
    """STORAGE."""

    looks: list[Look] | None = None
    written: WrittenBytes | None = None
    notes: list[str] | None = None


class Statement(Struct, frozen=True):
    """A statement of the setup."""

    text: str
    seconds: Amount | None = None
    when: str | UnsetType = UNSET
    part_of_load: bool | UnsetType = UNSET


class Published(Struct, frozen=True):
    """A figure that was published of another system."""

    metric: str
    value: Number | None = None
    unit: str | None = None
    note: str | None = None
    system: str | None = None
    question: str | None = None


class Curve(Struct, frozen=True):
    """A published curve of seconds a step."""

    name: str | None = None
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
    key: str | None = None
    kind: str | None = None
    title: str | None = None
    why: str | None = None
    variant: dict[str, Scalar] | None = None
    round: Count | None = None
    repeat: Count | None = None
    target: str | None = None
    scenario: str | None = None
    state: Literal["complete", "failed", "interrupted", "skipped", "running"] | None = None
    reason: str | None = None
    start_ns: Ns | None = None
    end_ns: Ns | None = None
    statements: list[Statement] | None = None
    headline: Literal["tps", "rows_per_s", "metrics_per_s"] | None = None
    rows_per_transaction: Amount | None = None
    published: list[Published] | None = None
    curves: list[Curve] | None = None
    knee: bool | None = None
    sizes: BeforeAfter | None = None
    storage: Storage | None = None
    checks: list[Check] | None = None
