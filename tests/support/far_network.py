"""Network namespaces joined by links that delay packets and lose some, in user space, for tests as root.

One process makes the namespaces and a pair of TUN devices for each link, and carries the packets between
them. So the kernel needs no qdisc for it, and all is gone with the process: nothing here has a name outside.

    python far_network.py links HOSTS              makes them; takes one JSON object a line, answers each
    python far_network.py inside NAMESPACE AHEAD_S COMMAND …       the namespace is a path below /proc
    python far_network.py socket PATH PORT         passes connections to HERE:PORT on to a unix socket
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import random  # noqa: TID251 - which packets are lost is no figure
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = "10.213.77.1"
"""The address of namespace 0, which has a link to each of the others."""
TUN = Path("/dev/net/tun")
_NEW_NET, _NEW_TIME = 0x40000000, 0x80
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_SET_FLAGS, _SET_ADDRESS, _SET_PEER = 0x8914, 0x8916, 0x8918
_UP = 0x1 | 0x40
"""IFF_UP, IFF_RUNNING."""
_PACKET_BYTES = 1 << 16
_SEED = 7
"""With 1 % of loss, each way of a link loses a packet within the first hundred."""


def address(number: int) -> str:
    """Return the address of a namespace."""
    return HERE if number == 0 else f"10.213.77.{10 + number}"


# --- what the process does


def _call(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def _device(name: bytes, own: str | None = None, peer: str | None = None) -> None:
    """Give a device its addresses, and begin to use it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, number in ((_SET_ADDRESS, own), (_SET_PEER, peer)):
            if number is not None:
                place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(number))
                fcntl.ioctl(control, request, struct.pack("16s", name) + place)
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH22x", name, _UP))


def _tun(name: bytes, own: str, peer: str) -> int:
    """Make one end of a link in the namespace of this process; returns what its packets are read from."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name, _IFF_TUN | _IFF_NO_PI))
    _device(name, own, peer)
    return device


def _namespace() -> int:
    _call("unshare", _NEW_NET)
    _device(b"lo")
    return os.open("/proc/self/ns/net", os.O_RDONLY)


@dataclass(slots=True)
class _Way:
    """One direction of a link."""

    source: int
    sink: int
    chance: random.Random
    delay_s: float = 0.0
    loss: float = 0.0
    lost: int = 0
    waiting: deque[tuple[float, bytes]] = field(default_factory=deque)
    """When each is due, in order."""

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while packet := os.read(self.source, _PACKET_BYTES):
                if self.chance.random() < self.loss:
                    self.lost += 1
                    continue
                due = time.monotonic() + self.delay_s
                self.waiting.append((max(due, self.waiting[-1][0]) if self.waiting else due, packet))

    def write(self) -> None:
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            with contextlib.suppress(BlockingIOError):  # a full queue loses packets, as networks do
                os.write(self.sink, self.waiting.popleft()[1])


def _links(hosts: int) -> tuple[list[int], list[tuple[_Way, _Way]]]:
    """Make the namespaces, and a link from the first to each of the others: the ways there and back."""
    namespaces = [_namespace() for _ in range(hosts + 1)]
    links = []
    for number in range(1, hosts + 1):
        ends = []
        for own, other in ((0, number), (number, 0)):
            _call("setns", namespaces[own], _NEW_NET)
            ends.append(_tun(b"far%d" % number, address(own), address(other)))
        near, far = ends
        chances = (random.Random(_SEED + 2 * number + way) for way in (0, 1))
        links.append((_Way(near, far, next(chances)), _Way(far, near, next(chances))))
    return namespaces, links


def _has_clocks() -> bool:
    """Tell whether processes can have monotonic clocks of their own."""
    try:
        _own_clock(0)
    except OSError:
        return False
    return True


def _own_clock(ahead_s: int) -> None:
    _call("unshare", _NEW_TIME)
    Path("/proc/self/timens_offsets").write_text(f"monotonic {ahead_s} 0\n", encoding="ascii")


def _serve(hosts: int) -> None:
    """Carry packets until standard input ends."""
    try:
        namespaces, links = _links(hosts)
    except OSError as error:
        print(json.dumps({"refused": str(error)}), flush=True)
        return
    print(json.dumps({"namespaces": namespaces, "clocks": _has_clocks()}), flush=True)
    ways = {way.source: way for link in links for way in link}
    while True:
        due = min((way.waiting[0][0] for way in ways.values() if way.waiting), default=None)
        left_s = None if due is None else max(0.0, due - time.monotonic())
        for readable in select.select([0, *ways], [], [], left_s)[0]:
            if readable != 0:
                ways[readable].read()
            elif line := sys.stdin.readline():
                print(json.dumps(_do(json.loads(line), links)), flush=True)
            else:
                return
        for way in ways.values():
            way.write()


def _do(order: dict[str, Any], links: list[tuple[_Way, _Way]]) -> dict[str, Any]:
    """Change a link, where there is something to change; returns how many packets each way has lost."""
    ways = links[order["host"] - 1]
    for way, delay_s in zip(ways, order.get("delays_s", ()), strict=False):
        way.delay_s = delay_s
    for way in ways:
        way.loss = order.get("loss", way.loss)
    return {"lost": [way.lost for way in ways]}


def _enter(namespace: str, ahead_s: int, command: list[str]) -> None:
    """Become a command in a namespace whose monotonic clock is so far ahead."""
    descriptor = os.open(namespace, os.O_RDONLY)
    _call("setns", descriptor, _NEW_NET)
    if ahead_s:
        _own_clock(ahead_s)
        clock = os.open("/proc/self/ns/time_for_children", os.O_RDONLY)
        _call("setns", clock, _NEW_TIME)
    os.execvp(command[0], command)


async def _pass_on(path: str, port: int) -> None:
    async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(_PACKET_BYTES):
                sink.write(chunk)
                await sink.drain()
        sink.close()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_unix_connection(path)
        await asyncio.gather(carry(reader, to_server), carry(from_server, writer))

    server = await asyncio.start_server(accepted, HERE, port)
    print("listening", file=sys.stderr, flush=True)
    await server.serve_forever()


def main(arguments: list[str]) -> None:
    match arguments:
        case ["links", hosts]:
            _serve(int(hosts))
        case ["inside", namespace, ahead_s, *command]:
            _enter(namespace, int(ahead_s), command)
        case ["socket", path, port]:
            asyncio.run(_pass_on(path, int(port)))
        case _:
            sys.exit(__doc__)


# --- what tests do


class RefusedError(Exception):
    """Namespaces or TUN devices cannot be made here."""


class FarNetwork:
    """Namespace 0 and the hosts 1 … N, each behind a link of its own."""

    def __init__(self, process: subprocess.Popen[str], made: dict[str, Any]) -> None:
        self._process = process
        self._namespaces: list[int] = made["namespaces"]
        self.has_clocks: bool = made["clocks"]
        """Whether hosts can have clocks of their own."""

    def order(self, host: int, **order: object) -> list[int]:
        """Change the link to a host: `delays_s` there and back, `loss` as a share of the packets each way.

        Returns how many packets were lost, there and back.
        """
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(json.dumps({"host": host, **order}) + "\n")
        to.flush()
        lost: list[int] = json.loads(back.readline())["lost"]
        return lost

    def passing_on(self, path: str, port: int) -> list[str]:
        """Return what passes connections to HERE:PORT on to a unix socket; it says `listening` then."""
        return self.inside(0, sys.executable, __file__, "socket", path, str(port))

    def inside(self, number: int, *command: str, ahead_s: int = 0) -> list[str]:
        """Return what runs a command in a namespace, with a monotonic clock that is so far ahead."""
        namespace = f"/proc/{self._process.pid}/fd/{self._namespaces[number]}"
        ahead = str(ahead_s if self.has_clocks else 0)
        return [sys.executable, __file__, "inside", namespace, ahead, *command]


@contextlib.contextmanager
def far_network(hosts: int) -> Iterator[FarNetwork]:
    """Make a network of so many hosts. Raises RefusedError."""
    if os.geteuid() != 0 or not TUN.exists():
        raise RefusedError(f"needs root and {TUN}")
    command = [sys.executable, __file__, "links", str(hosts)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        made = json.loads(process.stdout.readline() or '{"refused": "it has ended"}')
        if "refused" in made:
            raise RefusedError(f"no network can be made here: {made['refused']}")
        try:
            yield FarNetwork(process, made)
        finally:
            process.kill()


if __name__ == "__main__":
    main(sys.argv[1:])
