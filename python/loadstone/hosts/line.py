"""Calls to one Dask worker: straight to it where it can be reached, else through the scheduler."""

from __future__ import annotations

import asyncio
import json
import pickle
from functools import cache
from typing import TYPE_CHECKING, Any

from loadstone.hosts import attendant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from loadstone.hosts.attendant import Message

CONNECT_S = 3.0


@cache
def _packed(function: Callable[..., Any]) -> bytes:
    """Return a function as Dask sends it: by its name, once for all calls."""
    return pickle.dumps(function)


class LineLostError(Exception):
    """A worker cannot be reached any more, or does not answer."""


class Line:
    """One worker. Nothing that is called there is a task: nothing is run again elsewhere when it fails."""

    def __init__(self, client: Any, address: str) -> None:
        """Connect to nothing yet."""
        self.address = address
        self._client = client
        self._direct = True

    async def call(self, function: Callable[..., Any], *arguments: Any, within_s: float) -> Any:
        """Call a function of `attendant` there and return its result.

        Raises LineLostError when no answer comes within `within_s` seconds, and what it raises there.
        """
        return await _in_time(self._call(function, arguments), within_s)

    async def ask(self, key: str, message: Message, *, within_s: float) -> Message:
        """Pass a message to an agent that was begun there. Raises LineLostError as `call` does.

        Each host is asked once a second: by the operation that `begin` has added, at two thirds of the CPU.
        """
        packed = json.dumps(message).encode()
        if self._direct:
            asked = getattr(self._client.rpc(self.address), attendant.ASK)(key=key, message=packed)
        else:
            asked = self._call(attendant.ask, (key, packed))
        answer = await _in_time(asked, within_s)
        return dict(attendant.RESTARTED if answer is None else json.loads(answer))

    async def _call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if not self._direct:
            results = await self._client._run(function, *arguments, workers=[self.address])  # noqa: SLF001
            return results[self.address]
        answer = await self._client.rpc(self.address).run(
            function=_packed(function), args=pickle.dumps(arguments)
        )
        if answer["status"] != "OK":
            raise answer["exception"]
        return answer["result"]

    async def find_way(self) -> None:
        """Find out whether the worker can be reached from here; else the scheduler passes everything on."""
        try:
            await asyncio.wait_for(self._client.rpc(self.address).identity(), CONNECT_S)
        except (OSError, TimeoutError):
            self._direct = False


async def _in_time(answer: Awaitable[Any], within_s: float) -> Any:
    try:
        async with asyncio.timeout(within_s):  # unlike wait_for, it needs no task of its own
            return await answer
    except TimeoutError:
        raise LineLostError(f"it did not answer within {within_s:g} s") from None
    except OSError as error:
        raise LineLostError(f"its Dask worker is gone ({type(error).__name__})") from error
