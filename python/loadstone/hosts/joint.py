"""One drive on several hosts: prepared everywhere, begun at one instant, watched, ended together."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadstone.errors import HostLostError, LoadstoneError, RunFailedError
from loadstone.hosts import attendant, clocks
from loadstone.hosts.delivery import delivered
from loadstone.hosts.line import LineLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from loadstone.hosts.clocks import Offset
    from loadstone.hosts.line import Line

Message = dict[str, Any]

LEASE_S = 30.0
"""An agent that hears nothing for so long ends its load."""
POLL_S = 1.0
_FIRST_S = 0.05
_SOON_S = 0.02
"""Between looks at the first host, and at all that are about to end, where it has something to do last: until
it hears of the others' end, its time goes on."""
PATIENCE_S = 10.0
"""Beyond what an answer may take anyway, so long a host may be silent before it is lost."""
AGAIN_S = 3.0
"""So long one that was lost by its silence may take to answer once more: what it has recorded may be had."""
CALIBRATION_S = 60.0
_FAR_NS = 20_000_000
"""Of a round trip; the other hosts' traffic is nothing beside it."""
_LEAD_NS = 100_000_000
_LEAD_OF_ONE_NS = 1_000_000


@dataclass(slots=True)
class Share:
    """What one host does in a drive, and what is known of it."""

    name: str
    line: Line
    key: str
    number: int
    folder: str = ""
    """Of its agent, there."""
    prepared: bool = False
    ceiling: Message | None = None
    before: Offset | None = None
    after: Offset | None = None
    progress: Message = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)
    ended: Message | None = None
    """State, reason and output_error of its account, once it has ended."""
    lost: str | None = None
    """Why nothing more comes of it."""
    silent: bool = False
    """It did not answer in time, or could not be reached."""

    @property
    def running(self) -> bool:
        """Whether it is neither over nor lost."""
        return self.ended is None and self.lost is None

    def here(self, there_ns: int) -> int:
        """Return what our clock read when this host's read `there_ns`."""
        return there_ns - (self.before.offset_ns if self.before else 0)

    @property
    def patience_s(self) -> float:
        """How long an answer of its Dask worker is waited for."""
        return AGAIN_S if self.silent else PATIENCE_S


class JointDrive:
    """The shares of one drive. Its coroutines run in the thread of Dask's client."""

    def __init__(self, shares: Sequence[Share], lease_s: float = LEASE_S) -> None:
        """Nothing is asked of any host yet."""
        self.shares = shares
        self._lease_s = lease_s
        self.calibration_s = 0.5
        self._document: Message = {}
        self._first_reported = False
        self.go_ns: int | None = None
        """The common start on our clock."""

    async def prepare(self, document: Message, ceiling_of: tuple[str, int] | None) -> None:
        """Start the agents and let them connect; raises what keeps one of them from it.

        `ceiling_of`: protocol mode and clients for which each measures its own ceiling first.
        """
        await self._each(self._begin)
        if ceiling_of is not None:
            await self._each(lambda share: self._calibrate(share, *ceiling_of))
        await self.measure_clocks()
        self._document = document
        # What the first client of a script does before the others begin, it does before other hosts do.
        await self._prepare_unprepared(1 if "lua" in document else len(self.shares))

    async def _prepare_unprepared(self, numbers_below: int) -> None:
        async def prepare(share: Share) -> None:
            if not share.prepared and share.number < numbers_below:
                await self._prepare(share)

        done = asyncio.Event()
        waking = asyncio.create_task(self._keep_awake(done))
        try:
            await self._each(prepare)
        finally:
            done.set()
            await waking

    async def _keep_awake(self, done: asyncio.Event) -> None:
        """Talk to agents that are prepared while others are not: files may take long to reach them."""

        async def rest(share: Share) -> None:
            if share.prepared:
                await self._rest(share)

        while True:
            try:
                await asyncio.wait_for(done.wait(), self._lease_s / 3)
            except TimeoutError:
                await self._each(rest)
            else:
                return

    async def calibrate(self, wanted: Sequence[tuple[str, int]]) -> list[list[Message]]:
        """Let all hosts measure their ceilings, all at the same time; returns the results of each host."""
        await self._each(self._begin)
        found: list[list[Message]] = [[] for _ in self.shares]
        for mode, clients in wanted:

            async def measure(share: Share, mode: str = mode, clients: int = clients) -> None:
                await self._calibrate(share, mode, clients)

            await self._each(measure)
            for share in self.shares:
                found[share.number].append(share.ceiling or {})
        return found

    async def _begin(self, share: Share) -> None:
        begun = share.line.call(attendant.begin, share.key, self._lease_s, within_s=PATIENCE_S)
        answer = await self._answer(share, begun)
        _refuse(share, answer)
        share.folder = answer["folder"]

    async def _calibrate(self, share: Share, mode: str, clients: int) -> None:
        message = {"do": "calibrate", "mode": mode, "clients": clients, "seconds": self.calibration_s}
        answer = await self._ask(share, message, 2 * self.calibration_s + CALIBRATION_S)
        _refuse(share, answer)
        share.ceiling = answer["ceiling"]

    async def _prepare(self, share: Share) -> None:
        try:
            document = await delivered(
                share.line, share.key, share.folder, self._document, lambda: self._rest(share)
            )
        except LineLostError as error:
            share.silent = True
            _refuse(share, {"lost": str(error)})
            return
        host = {"number": share.number, "of": len(self.shares)}
        message = {"do": "prepare", "document": document | {"host": host}}
        _refuse(share, await self._ask(share, message, PATIENCE_S))
        share.prepared = True

    async def measure_clocks(self) -> None:
        """Measure the clocks of all that can be reached; after the start once more, for their drift.

        Near hosts one after the other, so that they do not delay each other; far ones at once.
        """
        await self._each(lambda share: self._measure_clock(share, 1), reachable=True)
        known = [offset for share in self.shares if (offset := share.after or share.before)]
        is_far = any(offset.round_trip_ns > _FAR_NS for offset in known)
        turns = asyncio.Semaphore(len(self.shares) if is_far else 1)

        async def measure(share: Share) -> None:
            async with turns:
                await self._measure_clock(share, clocks.ROUNDS)

        await self._each(measure, reachable=True)

    async def _measure_clock(self, share: Share, rounds: int) -> None:
        async def read() -> int:
            return int(await share.line.call(attendant.read_clock, within_s=PATIENCE_S))

        try:
            offset = await clocks.measure(read, rounds)
        except LineLostError as error:
            share.lost, share.silent = str(error), True
            if self.go_ns is None:
                _refuse(share, {"lost": share.lost})
            return
        if self.go_ns is None:
            share.before = offset
        else:
            share.after = offset

    async def look_ready(self) -> bool:
        """Look whether all are connected; raises what kept one of them from it."""
        await self._each(lambda share: self._poll(share, "ready") if share.prepared else self._rest(share))
        for share in self.shares:
            if share.ended is not None:
                _refuse(share, {"lost": str(share.ended["reason"])})
            if share.lost is not None:
                _refuse(share, {"lost": share.lost})
        if not all(share.progress.get("ready") for share in self.shares if share.prepared):
            return False
        was_last = all(share.prepared for share in self.shares)
        await self._prepare_unprepared(len(self.shares))
        return was_last

    async def _rest(self, share: Share) -> None:
        """Say something to an agent whose turn comes later, so that its lease does not end."""
        _refuse(share, await self._ask(share, {"do": "rest"}, PATIENCE_S))

    async def go(self) -> None:
        """Let all begin at one instant, far enough ahead that the word is everywhere by then."""
        slowest = max(share.before.round_trip_ns for share in self.shares if share.before)
        lead_ns = _LEAD_NS + len(self.shares) * _LEAD_OF_ONE_NS + 4 * slowest
        go_ns = time.monotonic_ns() + lead_ns
        await self._each(lambda share: self._send_off(share, go_ns))
        self.go_ns = go_ns

    async def _send_off(self, share: Share, go_ns: int) -> None:
        there_ns = share.before.there(go_ns) if share.before else go_ns
        _refuse(share, await self._ask(share, {"do": "go", "at_ns": there_ns}, PATIENCE_S))

    async def look(self) -> None:
        """Look how far all are, for a second at most."""
        await self._each(lambda share: self._poll(share, "end", self._wait_s(share)))

    def _wait_s(self, share: Share) -> float:
        """Return how long to wait for a host's end: shortly where the first host waits for that of all."""
        if not self._document.get("lua", {}).get("done"):
            return POLL_S
        if any(not one.running for one in self.shares):
            return _SOON_S
        if share.number:
            return POLL_S
        deadline_ns = share.progress.get("deadline_ns")
        if deadline_ns is None:
            return _FIRST_S
        return min(POLL_S, max(_SOON_S, (share.here(deadline_ns) - time.monotonic_ns()) / 1e9))

    def first_awaits_others(self) -> bool:
        """Whether the first host of a script is to be told, now, that all others have ended."""
        first, *others = self.shares
        wanted = self._document.get("lua", {}).get("done") and not self._first_reported
        return bool(wanted) and first.running and not any(share.running for share in others)

    async def tell_first(self) -> None:
        """Tell the first host of a script that all others have ended."""
        self._first_reported = True
        answer = await self._ask(self.shares[0], {"do": "proceed"}, PATIENCE_S)
        self.shares[0].lost = self.shares[0].lost or answer.get("lost")

    def take_messages(self) -> list[Any]:
        """Return the lines for the user that have come since the last call."""
        lines = [line for share in self.shares for line in share.messages]
        for share in self.shares:
            share.messages = []
        return lines

    def has_failed(self) -> bool:
        """Whether the drive of some host has failed."""
        return any(share.ended is not None and share.ended["state"] == "aborted" for share in self.shares)

    async def stop(self) -> None:
        """Ask all to end early."""
        await self._tell("stop")

    async def proceed(self) -> None:
        """Let all begin the next step of a load."""
        await self._tell("proceed")

    async def _tell(self, word: str) -> None:
        async def tell(share: Share) -> None:
            answer = await self._ask(share, {"do": word}, PATIENCE_S)
            share.lost = share.lost or answer.get("lost")

        await self._each(tell, running=True)

    async def fetch(self, share: Share, path: Path) -> bool:
        """Copy the records of a host into a file; False when nothing of them can be had."""
        offset = 0
        with path.open("wb") as records:
            try:
                while offset % attendant.CHUNK == 0:
                    chunk = await share.line.call(
                        attendant.fetch, share.key, offset, within_s=share.patience_s
                    )
                    if not chunk:
                        break
                    records.write(chunk)
                    offset += len(chunk)
            except LineLostError as error:  # the lines that came are whole, but for the last
                share.lost, share.silent = share.lost or str(error), True
        return offset > 0

    async def close(self) -> None:
        """End the agents, and remove what they have left."""

        async def close(share: Share) -> None:
            with contextlib.suppress(LineLostError):  # the lease ends it
                await share.line.call(attendant.close, share.key, within_s=share.patience_s)

        await self._each(close)

    async def _poll(self, share: Share, until: str, wait_s: float = POLL_S) -> None:
        if not share.running:
            return
        message = {"do": "poll", "wait_s": wait_s, "until": until}
        answer = await self._ask(share, message, POLL_S + PATIENCE_S)
        if "failed" in answer:
            _refuse(share, answer)
        share.lost = answer.get("lost")
        if share.lost is None:
            share.progress = answer["progress"]
            share.messages += answer["messages"]
            share.ended = answer["account"]

    async def _ask(self, share: Share, message: Message, within_s: float) -> Message:
        return await self._answer(share, share.line.ask(share.key, message, within_s=within_s))

    @staticmethod
    async def _answer(share: Share, asked: Awaitable[Message]) -> Message:
        try:
            return await asked
        except LineLostError as error:
            share.silent = True
            return {"lost": str(error)}

    async def _each(
        self,
        work: Callable[[Share], Awaitable[None]],
        *,
        running: bool = False,
        reachable: bool = False,
    ) -> None:
        """Do something for all hosts at once; raises the first error when all have ended."""
        chosen = [
            share
            for share in self.shares
            if (share.running or not running) and (share.lost is None or not reachable)
        ]
        found = await asyncio.gather(*(work(share) for share in chosen), return_exceptions=True)
        errors = [error for error in found if isinstance(error, BaseException)]
        if errors:
            raise errors[0]


def _refuse(share: Share, answer: Message) -> None:
    """Raise what an answer says went wrong."""
    if "lost" in answer:
        raise HostLostError(
            f"load host {share.name} was lost before the start: {answer['lost']}", "Nothing was measured."
        )
    if "failed" in answer:
        message, hint = answer["failed"]
        kind = LoadstoneError if answer.get("input") else RunFailedError
        raise kind(message if answer.get("input") else f"load host {share.name}: {message}", hint)
