"""TSBS's query files: one stream of Go's encoding/gob, one value a query.

A stream is a row of messages, each its length and then a type's number: a negative one begins the
description of a type, a positive one a value of it. TSBS's type has four fields of bytes; which numbers Go
gives to types depends on its version, so they are read from the stream. (Format: Go's documentation of
encoding/gob.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.workload.tsbs.queries.generator import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TYPE_NAME = "TimescaleDB"
FIELDS = ("HumanLabel", "HumanDescription", "Hypertable", "SqlQuery")
LONGEST_MESSAGE = 1 << 28
"""No query is that long: a larger length is a damaged file's."""

_TYPE = 64
_BYTES, _STRING = 5, 6
_STRUCT_FIELD, _WIRE_FIELDS = 2, 7
"""Of a type's description: which of its alternatives is a struct, and how many alternatives there are."""
_TABLE_FIELDS = ("Hypertable", "Table")
_NONE = b"\xff\xff"
"""No type's number begins like this."""
_WIDEST = 8
_ONE_BYTE = 0x80
"""Numbers below it are one byte; larger ones say how many follow."""


class GobError(LoadstoneError):
    """A file is not a stream of TSBS's queries."""


def write(queries: Iterable[Query], out: IO[bytes]) -> int:
    """Write queries as TSBS does, one after the other; returns how many."""
    count = 0
    for query in queries:
        if not count:
            out.write(_message(_described()))
        fields = (query.label, query.description, query.table, query.sql)
        out.write(_message(_integer(_TYPE) + _fields([text.encode() for text in fields])))
        count += 1
    return count


def read(stream: IO[bytes], name: str) -> Iterator[Query]:
    """Read queries one at a time; `name` is the file's, for messages.

    Raises GobError, with the place in the file, for everything that is not such a stream.
    """
    types: dict[int, _Struct] = {}
    usual = _NONE
    for start, message in _messages(stream, name):
        quick = _usual_query(message, usual)
        if quick is not None:
            yield quick
            continue
        body = _Body(message, start, name)
        number = body.integer()
        if number < 0:
            types[-number] = _description(body)
            continue
        if number not in types:
            raise body.trouble(f"a value of type {number}, which was not described before")
        if types[number].is_usual:
            usual = _integer(number)
        yield _query(body, types[number])


@dataclass(frozen=True, slots=True)
class _Struct:
    name: str
    fields: tuple[tuple[str, int], ...]
    """Name and type's number."""

    @property
    def is_usual(self) -> bool:
        """Whether its fields are those that TSBS writes, in its order."""
        texts = all(kind in (_BYTES, _STRING) for _, kind in self.fields)
        names = tuple("Hypertable" if name in _TABLE_FIELDS else name for name, _ in self.fields)
        return texts and names == FIELDS


def _usual_query(message: bytes, number: bytes) -> Query | None:
    """Read a value of the usual struct whose type has this number and which has all four fields.

    Returns None for everything else, also for what is damaged: then it is read step by step, and it is known
    where the damage is. (Nearly every message is such a value, and this takes a third of the time.)
    """
    if not message.startswith(number):
        return None
    at, texts = len(number), []
    try:
        for _ in FIELDS:
            step, length = message[at], message[at + 1]
            at += 2
            if length >= _ONE_BYTE:
                width = 0x100 - length
                length = int.from_bytes(message[at : at + width])
                at += width
            end = at + length
            texts.append(message[at:end].decode())
            if step != 1:
                return None
            at = end
        # A message that is cut off ends before the zero that ends the struct.
        return Query(*texts) if message[at] == 0 else None
    except (IndexError, UnicodeDecodeError):
        return None


class _Body:
    """One message, read from its beginning."""

    def __init__(self, data: bytes, start: int, name: str) -> None:
        self._data, self._at, self._start, self._name = data, 0, start, name

    def trouble(self, what: str) -> GobError:
        return GobError(
            f"{self._name} is not a file of TSBS's queries: {what}, at byte {self._start + self._at}",
            "Generate it with `loadstone tsbs generate-queries`, or with tsbs_generate_queries for "
            "timescaledb.",
        )

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._data)

    def bytes(self) -> bytes:
        length = self.unsigned()
        found = self._data[self._at : self._at + length]
        if len(found) != length:
            raise self.trouble(f"{length} bytes are announced, but {len(found)} are there")
        self._at += length
        return found

    def text(self) -> str:
        raw = self.bytes()
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.trouble("a text that is not UTF-8") from error

    def unsigned(self) -> int:
        at = self._at
        if at < len(self._data) and (first := self._data[at]) < _ONE_BYTE:
            self._at = at + 1
            return first
        width = 0x100 - self._byte()
        if width > _WIDEST:
            raise self.trouble(f"a number of {width} bytes")
        return int.from_bytes(bytes(self._byte() for _ in range(width)))

    def integer(self) -> int:
        value = self.unsigned()
        return ~(value >> 1) if value & 1 else value >> 1

    def numbered(self, most: int) -> Iterator[int]:
        """Yield the numbers of the fields of a struct that are there; the caller reads each."""
        field = -1
        while (step := self.unsigned()) != 0:
            field += step
            if field >= most:
                raise self.trouble(f"a field {field}, but there are only {most}")
            yield field

    def _byte(self) -> int:
        if self.at_end:
            raise self.trouble("a message that ends too early")
        self._at += 1
        return self._data[self._at - 1]


def _messages(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while True:
        first = stream.read(1)
        if not first:
            return
        length = first[0]
        if length >= _ONE_BYTE:
            head = first + stream.read(0x100 - length)
            length = _Body(head, at, name).unsigned()
            at += len(head)
        else:
            at += 1
        if length > LONGEST_MESSAGE:
            raise _Body(b"", at, name).trouble(f"a message of {length} bytes")
        body = stream.read(length)
        if len(body) != length:
            raise _Body(b"", at + len(body), name).trouble(
                f"a message of {length} bytes, of which only {len(body)} are there (is the file truncated?)"
            )
        yield at, body
        at += length


def _description(body: _Body) -> _Struct:
    described: _Struct | None = None
    for alternative in body.numbered(_WIRE_FIELDS):
        if alternative != _STRUCT_FIELD:
            raise body.trouble("a type that is not a query's")
        described = _struct(body)
    if described is None:
        raise body.trouble("a type without a description")
    return described


def _struct(body: _Body) -> _Struct:
    name, fields = "", []
    for part in body.numbered(2):
        if part == 0:
            name, _ = _named(body)
        else:
            fields = [_named(body) for _ in _counted(body)]
    return _Struct(name, tuple(fields))


def _named(body: _Body) -> tuple[str, int]:
    name, number = "", 0
    for part in body.numbered(2):
        if part == 0:
            name = body.text()
        else:
            number = body.integer()
    return name, number


def _counted(body: _Body) -> Iterator[int]:
    for number in range(body.unsigned()):
        if body.at_end:
            raise body.trouble("a list that ends too early")
        yield number


def _query(body: _Body, struct: _Struct) -> Query:
    found: dict[str, str] = {}
    if "SqlQuery" not in {name for name, _ in struct.fields}:
        raise body.trouble(f"it contains queries of the type {struct.name}, which are not SQL")
    for number in body.numbered(len(struct.fields)):
        name, kind = struct.fields[number]
        if kind not in (_BYTES, _STRING):
            raise body.trouble(f"a field {name} that is not text")
        found[name] = body.text()
    table = next((found[name] for name in _TABLE_FIELDS if name in found), "")
    # Go leaves out what is empty.
    return Query(
        found.get("HumanLabel", ""), found.get("HumanDescription", ""), table, found.get("SqlQuery", "")
    )


def _described() -> bytes:
    members = b"".join(_fields([name.encode(), _integer(_BYTES)], raw={1}) for name in FIELDS)
    common = _fields([TYPE_NAME.encode(), _integer(_TYPE)], raw={1})
    struct = b"\x01" + common + b"\x01" + _unsigned(len(FIELDS)) + members + b"\x00"
    return _integer(-_TYPE) + _unsigned(_STRUCT_FIELD + 1) + struct + b"\x00"


def _fields(values: list[bytes], raw: frozenset[int] | set[int] = frozenset()) -> bytes:
    """Return a struct's fields: those in `raw` as they are, the others with their length, no empty ones."""
    parts, step = [], 1
    for number, value in enumerate(values):
        if not value:
            step += 1
            continue
        parts.append(_unsigned(step) + (value if number in raw else _unsigned(len(value)) + value))
        step = 1
    return b"".join(parts) + b"\x00"


def _message(body: bytes) -> bytes:
    return _unsigned(len(body)) + body


def _unsigned(value: int) -> bytes:
    if value < _ONE_BYTE:
        return bytes([value])
    width = (value.bit_length() + 7) // 8
    return bytes([0x100 - width]) + value.to_bytes(width)


def _integer(value: int) -> bytes:
    return _unsigned(~value << 1 | 1 if value < 0 else value << 1)
