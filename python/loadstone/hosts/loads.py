"""Loads on several hosts: whose batches are whose is in the core; here, steps begin and end together.

Batches have numbers over all hosts, those that one host would give them, and a host makes and sends every
n-th. So the rows come to the server in the order in which one host's come, through time and keys, and
the ledger of batches is the same: a broken load can go on from any number of hosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from loadstone.hosts.fleet import Fleet
    from loadstone.hosts.joint import Share
    from loadstone.signals import Signals
    from loadstone.workload.load.rows import Perform

Document = dict[str, Any]
Step = dict[str, Any]


def performer(fleet: Fleet, say: Callable[[str, str], object]) -> Perform:
    """Return what sends a load's rows from the hosts of a fleet, in place of `workload.drive.perform`."""

    def perform(
        document: Document,
        signals: Signals | None,
        show: Callable[[Document], None] | None,
        on_step: Callable[[Step], None] | None,
    ) -> Document:
        return fleet.perform(document, signals, show, say=say, on_step=on_step)

    return perform


def held(document: Document) -> Document:
    """Return a drive's document whose steps wait for the word to begin, as those of several hosts must."""
    load = document.get("load")
    if not load or not load.get("step_rows"):
        return document
    return document | {"load": load | {"hold": True}}


def note_losses(account: Document, shares: Sequence[Share]) -> None:
    """Say in a load's account what is unknown of the hosts that were lost."""
    lost = [share for share in shares if share.lost is not None]
    if "load" in account and lost:
        account["load"].setdefault("notes", []).extend(
            f"load host {share.name} was lost: the batches that it had sent last are in doubt; what is "
            "committed was read from the server"
            for share in lost
        )


class JointSteps:
    """The steps of a load: each ends when it has ended on all hosts, and then the next one may begin."""

    def __init__(self, shares: Sequence[Share]) -> None:
        """No step has ended."""
        self._shares = shares
        self._reached: dict[int, int] = {}
        self._parts: dict[int, list[Step]] = {}
        self.ended: list[Step] = []
        """All that have ended on all hosts."""

    def take(self) -> Iterator[Step]:
        """Yield the steps that have ended on all hosts since the last look, times on our clock."""
        for share in self._shares:
            self._keep(share)
        for number in sorted(self._parts):
            if not all(self._is_past(share, number) for share in self._shares):
                return
            step = joined_step(self._parts.pop(number))
            if step["batches"]:  # else an earlier load had stored them
                self.ended.append(step)
                yield step

    @property
    def holding(self) -> bool:
        """Whether every host that runs waits for the word to begin the next step."""
        running = [share for share in self._shares if share.running]
        return bool(running) and all(share.progress.get("holding") for share in running)

    def _keep(self, share: Share) -> None:
        for step in share.progress.pop("steps", ()):
            self._reached[share.number] = step["step"]
            self._parts.setdefault(step["step"], []).append(_here(share, step))

    def _is_past(self, share: Share, number: int) -> bool:
        is_whole = share.ended is not None and share.ended["state"] == "complete"
        return is_whole or self._reached.get(share.number, -1) >= number


def joined_step(parts: Sequence[Step]) -> Step:
    """Return a step that has ended on all hosts: from the first begin to the last end."""
    known = [part for part in parts if part["batches"]] or parts
    return {
        **known[0],
        "rows": sum(part["rows"] for part in parts),
        "batches": sum(part["batches"] for part in parts),
        "start_ns": min(part["start_ns"] for part in known),
        "end_ns": max((part["end_ns"] for part in known if part["end_ns"] is not None), default=None),
    }


def _here(share: Share, step: Step) -> Step:
    end_ns = step["end_ns"]
    return step | {
        "start_ns": share.here(step["start_ns"]),
        "end_ns": None if end_ns is None else share.here(end_ns),
    }
