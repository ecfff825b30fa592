"""What clients know of their commits, and what the server has of them, as arrays.

The clients' files are written by the core (`crates/drive/src/ledger.rs`); rows come as COPY sends them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from loadstone.errors import LoadstoneError
from loadstone.sqltext import qualified

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from loadstone.model import Connection

Array = NDArray[Any]

PLANNED, SENT, ACKNOWLEDGED, REFUSED = 1, 2, 3, 4
"""States of a record; see the core's file for what they mean."""
TABLE = qualified("loadstone", "commit_ledger")
# unqualified: its name is qualified
CREATE = f"create table if not exists {TABLE} (client int not null, seq bigint not null, crc bigint not null)"
_VALUES = "(:loadstone_client, :loadstone_seq, :loadstone_crc)"
# unqualified: its name is qualified
INSERT = f"insert into {TABLE} (client, seq, crc) values {_VALUES}"  # noqa: S608 - constants
READ = f"copy (select client, seq, crc from {TABLE}) to stdout (format binary)"  # noqa: S608 - a constant

_HEADER = np.dtype([("magic", "S8"), ("version", "<u4"), ("client", "<u4"), ("run", "<u8"), ("rest", "V40")])
_RECORD = np.dtype([("state", "u1"), ("unused", "V3"), ("crc", "<u4"), ("ns", "<u8")])
_ROW = np.dtype([
    ("fields", ">i2"), ("a", ">i4"), ("client", ">i4"), ("b", ">i4"), ("seq", ">i8"), ("c", ">i4"),
    ("crc", ">i8"),
])  # fmt: skip
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_COPY_HEADER_BYTES = 19
_COPY_END = b"\xff\xff"


@dataclass(frozen=True, slots=True)
class Records:
    """Transactions that clients have begun: one entry of each array for each, ordered by client and seq."""

    client: Array
    seq: Array
    """From 1, for each client."""
    state: Array
    crc: Array
    ns: Array
    """When the acknowledgement was read, by the monotonic clock; 0 where none was."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.state)

    def upto(self, last: Sequence[int]) -> Records:
        """Return those of each client up to a number; clients beyond the list have none."""
        ends = np.zeros(int(self.client.max(initial=-1)) + 1, np.int64)
        ends[: len(last)] = last[: len(ends)]
        return self.where(self.seq <= ends[self.client])

    def where(self, keep: Array) -> Records:
        """Return those for which `keep` is true."""
        return Records(*(one[keep] for one in (self.client, self.seq, self.state, self.crc, self.ns)))

    def last(self, clients: int) -> list[int]:
        """Return the number of each client's last transaction, 0 where there is none."""
        counts = np.bincount(self.client, minlength=clients)
        return [int(count) for count in counts]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the ledger table, ordered by client and seq."""

    client: Array
    seq: Array
    crc: Array

    @classmethod
    def of(cls, client: Array, seq: Array, crc: Array) -> Rows:
        """Return rows that come in any order."""
        order = np.lexsort((seq, client))
        return cls(client[order].astype(np.int64), seq[order].astype(np.int64), crc[order].astype(np.int64))

    @classmethod
    def of_copy(cls, data: bytes) -> Rows:
        """Read what `READ` sends. Raises LoadstoneError for anything else."""
        if not data.startswith(_SIGNATURE) or not data.endswith(_COPY_END):
            raise LoadstoneError("the rows of the ledger table were not sent whole", "Try again.")
        body = data[_COPY_HEADER_BYTES : -len(_COPY_END)]
        if len(body) % _ROW.itemsize:
            raise LoadstoneError("the ledger table has rows that are not ours", "Use a database of your own.")
        rows = np.frombuffer(body, _ROW)
        return cls.of(rows["client"], rows["seq"], rows["crc"])

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.seq)

    def where(self, keep: Array) -> Rows:
        """Return those for which `keep` is true."""
        return Rows(*(one[keep] for one in (self.client, self.seq, self.crc)))

    def same_as(self, other: Rows) -> bool:
        """Return whether these are the same rows."""
        pairs = ((self.client, other.client), (self.seq, other.seq), (self.crc, other.crc))
        return all(np.array_equal(one, two) for one, two in pairs)

    def save(self, path: Path) -> None:
        """Write them as a compressed file of NumPy."""
        np.savez_compressed(path, client=self.client, seq=self.seq, crc=self.crc)

    @classmethod
    def load(cls, path: Path) -> Rows:
        """Read what `save` has written. Raises LoadstoneError where that cannot be."""
        try:
            with np.load(path) as found:
                return cls(found["client"], found["seq"], found["crc"])
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise LoadstoneError(
                f"'{path}' cannot be read: {error}", "Use a folder that `loadstone crash` has written whole."
            ) from error


EMPTY = Rows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def keys(client: Array, seq: Array) -> Array:
    """Return one number for each pair; in order where the pairs are."""
    return (client.astype(np.uint64) << np.uint64(40)) | seq.astype(np.uint64)


def read_ledgers(folder: Path) -> Records:
    """Read the files of all clients. Raises LoadstoneError where one is missing or no ledger."""
    paths = sorted(folder.glob("client-*.ledger"), key=lambda path: int(path.stem.partition("-")[2]))
    if not paths:
        raise LoadstoneError(f"'{folder}' has no ledgers", "Use the folder that `loadstone crash` has made.")
    parts = [_records(path, number) for number, path in enumerate(paths)]
    numbers = [np.full(len(part), number, np.int64) for number, part in enumerate(parts)]
    whole = np.concatenate(parts)
    seq = np.concatenate([np.arange(1, len(part) + 1, dtype=np.int64) for part in parts])
    return Records(
        np.concatenate(numbers), seq, whole["state"].copy(), whole["crc"].astype(np.int64),
        whole["ns"].astype(np.int64),
    )  # fmt: skip


def _records(path: Path, client: int) -> Array:
    data = path.read_bytes()
    header = np.frombuffer(data[: _HEADER.itemsize], _HEADER) if len(data) >= _HEADER.itemsize else None
    if header is None or header["magic"][0] != b"LSLEDGER" or header["client"][0] != client:
        raise LoadstoneError(f"'{path}' is not the ledger of client {client}", "It was changed or cut off.")
    rest = len(data) - (len(data) - _HEADER.itemsize) % _RECORD.itemsize
    records = np.frombuffer(data[_HEADER.itemsize : rest], _RECORD)
    unused = np.flatnonzero(records["state"] == 0)
    return records[: unused[0]] if len(unused) else records


def read_rows(connection: Connection) -> Rows:
    """Read the ledger table of a server. Raises psycopg's errors."""
    from loadstone.crash.checks import connected  # noqa: PLC0415 - psycopg is slow to import

    with connected(connection) as control, control.cursor().copy(READ) as copy:
        return Rows.of_copy(b"".join(bytes(part) for part in copy))
