"""The proxy that tests use does to bytes what its plan says, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from support.fault_proxy import SHARES, Fault, FaultProxy, plan_of

SENT = b"abcdefgh"


async def _exchange(faults: list[Fault], connections: int) -> tuple[list[bytes], list[bytes]]:
    """Send the same bytes on connections one after the other; returns what server and client got."""
    received: list[bytearray] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(got := bytearray())
        with contextlib.suppress(OSError):
            while data := await reader.read(100):
                got += data
                writer.write(data)
        writer.close()

    answers: list[bytes] = []

    async def clients() -> None:
        for number in range(connections):
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(SENT)
            writer.write_eof()
            answer = bytearray()
            # A stalled connection ends with its server's, which the plans below end by themselves.
            with contextlib.suppress(OSError):
                while len(answer) < wanted.get(number, 100) and (data := await reader.read(100)):
                    answer += data
            answers.append(bytes(answer))
            writer.transport.abort()

    wanted = {fault.connection: fault.offset for fault in faults if fault.action == "stall"}
    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        proxy = FaultProxy(faults, "127.0.0.1", server.sockets[0].getsockname()[1])
        await proxy.serve(clients())
    return [bytes(got) for got in received], answers


def exchanged(*faults: Fault, connections: int = 1) -> tuple[list[bytes], list[bytes]]:
    return asyncio.run(_exchange(list(faults), connections))


@pytest.mark.parametrize(
    ("fault", "server", "client"),
    [
        (Fault(1, "up", 0, "garble", 1), SENT, SENT),
        (Fault(0, "up", 5, "delay", 1), SENT, SENT),
        (Fault(0, "up", 5, "repeat", 3), b"abcdecdefgh", b"abcdecdefgh"),
        (Fault(0, "down", 5, "repeat", 3), SENT, b"abcdecdefgh"),
        (Fault(0, "up", 1, "garble", 1), b"accdefgh", b"accdefgh"),
        (Fault(0, "down", 1, "garble", 1), SENT, b"accdefgh"),
        (Fault(0, "up", 3, "swallow", 2), b"abcfgh", b"abcfgh"),
        (Fault(0, "up", 3, "swallow", 100), b"abc", b"abc"),
        (Fault(0, "down", 4, "stall", 0), SENT, b"abcd"),
        (Fault(0, "up", 4, "stall", 0), b"abcd", b"abcd"),
    ],
    ids=str,
)
def test_a_fault_changes_its_own_bytes_alone(fault: Fault, server: bytes, client: bytes) -> None:
    assert exchanged(fault) == ([server], [client])


@pytest.mark.parametrize("action", ["cut", "reset"])
def test_a_connection_ends_where_the_plan_says_and_others_go_on(action: str) -> None:
    fault = Fault(0, "up", 3, action, 0)  # type: ignore[arg-type]
    received, answers = exchanged(fault, connections=2)
    assert SENT.startswith(answers[0])
    assert len(answers[0]) <= 3
    assert (received[1], answers[1]) == (SENT, SENT)


def test_the_next_connections_may_fare_alike() -> None:
    _, answers = exchanged(Fault(0, "down", 2, "cut", 1), connections=3)
    assert [len(answer) <= 2 for answer in answers] == [True, True, False]
    assert answers[1] == b""


def test_several_faults_are_done_in_order_of_their_places_as_the_sender_counts() -> None:
    swallow, garble = Fault(0, "up", 1, "swallow", 2), Fault(0, "up", 4, "garble", 1)
    assert exchanged(garble, swallow) == ([b"addfgh"], [b"addfgh"])


def test_a_seed_always_gives_the_same_plan() -> None:
    assert plan_of(1) == plan_of(1)
    assert {fault.action for seed in range(100) for fault in plan_of(seed)} == set(SHARES)
    assert [str(fault) for fault in plan_of(2)] == ["cut 4 on connection 5 up at 7318"]
