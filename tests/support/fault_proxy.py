"""A proxy on loopback that mistreats the bytes between a client and PostgreSQL by a plan made from a seed.

`python tests/support/fault_proxy.py SEED [REACH]` prints the plan of a seed, which is always the same.
`tests/support/fault_runs.py` runs Loadstone through the proxy and judges what comes of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

T = TypeVar("T")
Direction = Literal["up", "down"]
"""`up` is towards the server."""
Action = Literal["delay", "cut", "reset", "repeat", "garble", "swallow", "stall"]

SHARES: dict[Action, float] = {
    "delay": 0.1, "cut": 0.2, "reset": 0.1, "repeat": 0.1, "garble": 0.2, "swallow": 0.1, "stall": 0.2,
}  # fmt: skip
"""How often a plan does what."""
ALTERING: frozenset[Action] = frozenset({"repeat", "garble", "swallow"})
"""What TCP itself never does: the bytes that arrive are not those that were sent."""
SPREADING: frozenset[Action] = frozenset({"cut", "reset", "stall"})
"""What may happen to the next connections as well, as when a server or a network is away for a while."""
CONNECTIONS = (0.1, 0.25, 0.1, 0.2, 0.15, 0.1, 0.1)
"""How often a fault is on which connection: a run begins with two that control and one that watches."""
LOG_IN = 700
"""Bytes that a log-in takes in each direction, or a little more."""
CONTROL = 9000
"""Bytes that a connection that controls carries, about."""
LONGEST_REPEAT = 1000
_CHUNK = 1 << 16
_RESET_ON_CLOSE = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
_NAME = re.compile(rb"application_name\0([^\0]*)\0")


class Fault(NamedTuple):
    """What is done to one direction of one connection when so many bytes of it have passed."""

    connection: int
    """In the order of connecting, from 0."""
    direction: Direction
    offset: int
    """Of the byte before which it happens, as the sender counts."""
    action: Action
    amount: int
    """Milliseconds of a delay; bytes that are repeated or swallowed; the mask of the garbled byte; of a cut,
    a reset and a stall how many of the next connections fare alike, at their first byte."""

    def __str__(self) -> str:
        return (
            f"{self.action} {self.amount} on connection {self.connection} {self.direction} at {self.offset}"
        )


def plan_of(seed: int, reach: int = CONTROL) -> list[Fault]:
    """Return one to three faults, in the log-in or at up to so many bytes of a connection."""
    rng = np.random.default_rng(seed)
    return sorted(_fault(rng, reach) for _ in range(int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))))


def _fault(rng: np.random.Generator, reach: int) -> Fault:
    action: Action = rng.choice(list(SHARES), p=list(SHARES.values())).item()
    return Fault(
        connection=int(rng.choice(len(CONNECTIONS), p=CONNECTIONS)),
        direction="up" if rng.random() < 0.5 else "down",
        offset=int(rng.integers(0, rng.choice([LOG_IN, min(reach, CONTROL), reach], p=[0.3, 0.4, 0.3]))),
        action=action,
        amount=_amount(action, rng),
    )


def _amount(action: Action, rng: np.random.Generator) -> int:
    match action:
        case "delay":
            return int(rng.integers(10, 1500))
        case "repeat":
            return int(rng.integers(1, LONGEST_REPEAT))
        case "garble":
            return int(rng.integers(1, 256))
        case "swallow":
            return int(2 ** rng.uniform(0, 10))
        case "cut" | "reset" | "stall":
            return int(rng.choice([0, 0, 1, 4, 1000]))


@dataclass
class Line:
    """One connection through the proxy, its two ends, and what was done to it."""

    number: int
    ends: list[asyncio.StreamWriter] = field(default_factory=list)
    name: str = ""
    """The application_name that the client gave itself."""
    passed: dict[str, int] = field(default_factory=lambda: {"up": 0, "down": 0})
    done: list[Fault] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.number} {self.name}: {self.passed}"

    def cut(self, *, reset: bool) -> None:
        for end in self.ends:
            if reset:
                with contextlib.suppress(OSError):  # it may be closed
                    end.get_extra_info("socket").setsockopt(*_RESET_ON_CLOSE)
            end.transport.abort()


class FaultProxy:
    """Passes bytes on to one server, and does by its plan what is to be done to them."""

    def __init__(self, faults: list[Fault], host: str, port: int) -> None:
        """Listen on a port that is free, and accept nothing yet."""
        self._faults = faults
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._spread: dict[Action, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.lines: list[Line] = []

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def done(self) -> Iterator[tuple[Line, Fault]]:
        """Yield what was done so far: a plan may name connections that were never made."""
        for line in self.lines:
            for fault in line.done:
                yield line, fault

    async def serve(self, until: Coroutine[None, None, T]) -> T:
        """Serve until that has ended, then cut all connections; returns what it gave."""
        async with await asyncio.start_server(self._accept, sock=self._listener) as server:
            result = await until
            server.close()
        for line in self.lines:
            line.cut(reset=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return result

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self._tasks.add(task)
        line = Line(len(self.lines), [writer])
        self.lines.append(line)
        faults = sorted(f for f in self._faults if f.connection == line.number)
        for action, left in self._spread.items():
            if left > 0:
                self._spread[action] -= 1
                faults += [Fault(line.number, "up", 0, action, 0), Fault(line.number, "down", 0, action, 0)]
        with contextlib.suppress(OSError, asyncio.CancelledError):
            to, back = await asyncio.open_connection(*self._server)
            line.ends.append(back)
            up = _Pump(line, "up", reader, back, [f for f in faults if f.direction == "up"], self._note)
            down = _Pump(line, "down", to, writer, [f for f in faults if f.direction == "down"], self._note)
            await asyncio.gather(up.run(), down.run())
        for end in line.ends:
            end.close()

    def _note(self, fault: Fault) -> None:
        if fault.action in SPREADING and fault.amount:
            self._spread[fault.action] = fault.amount


@dataclass
class _Pump:
    """One direction of a connection."""

    line: Line
    direction: Direction
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pending: list[Fault]
    """Those of this direction that are still to come, in order."""
    note: Callable[[Fault], None]
    recent: bytes = b""

    async def run(self) -> None:
        """Pass bytes on until one side ends."""
        while data := await self.reader.read(_CHUNK):
            if self.direction == "up" and not self.line.passed["up"] and (found := _NAME.search(data)):
                self.line.name = found[1].decode()
            while self.pending and self.pending[0].offset < self.line.passed[self.direction] + len(data):
                fault = self.pending.pop(0)
                before = max(fault.offset - self.line.passed[self.direction], 0)
                await self._pass(data[:before])
                data = await self._do(fault, data[before:])
            await self._pass(data)
        if self.writer.can_write_eof():
            self.writer.write_eof()

    async def _pass(self, data: bytes) -> None:
        self.line.passed[self.direction] += len(data)
        self.recent = (self.recent + data)[-LONGEST_REPEAT:]
        self.writer.write(data)
        await self.writer.drain()

    async def _do(self, fault: Fault, data: bytes) -> bytes:
        """Do what the fault says; returns the bytes that go on from here."""
        self.line.done.append(fault)
        self.note(fault)
        match fault.action:
            case "delay":
                await asyncio.sleep(fault.amount / 1000)  # the fault itself
            case "cut" | "reset":
                self.line.cut(reset=fault.action == "reset")
                raise ConnectionAbortedError
            case "stall":
                await asyncio.get_running_loop().create_future()
            case "repeat":
                self.writer.write(self.recent[-fault.amount :])
            case "garble":
                return bytes([data[0] ^ fault.amount]) + data[1:]
            case "swallow":
                return await self._swallow(fault.amount, data)
        return data

    async def _swallow(self, amount: int, data: bytes) -> bytes:
        while len(data) < amount and (more := await self.reader.read(_CHUNK)):
            data += more
        # The offsets of later faults count what was sent.
        self.line.passed[self.direction] += min(amount, len(data))
        return data[amount:]


if __name__ == "__main__":
    for planned in plan_of(*map(int, sys.argv[1:])):
        print(planned)
