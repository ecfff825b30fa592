"""Warnings about loads in steps and bulk loads, each ending in what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loadstone.summary.cautions import Caution, Level

_MEBI = 2**20
_STEPS_NAMED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWereTheLimit(Caution):
    """The connections waited for rows: making them was slower than the server."""

    starved: float

    @property
    def message(self) -> str:
        """How long they waited."""
        return (
            f"Making the rows may have been the limit: the connections waited for them {self.starved:.0%} "
            "of the time."
        )

    @property
    def hint(self) -> str:
        """Files, fewer connections, another machine."""
        return (
            "Use fewer connections, load rows from files that `loadstone generate` wrote, or drive the load "
            "from another machine: the server can take more than this."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientUsedMore(Caution):
    """In some steps we used more of the machine than the server did."""

    steps: tuple[int, ...]
    total: int
    share: float

    @property
    def message(self) -> str:
        """In how many steps, and how much at most."""
        return (
            f"Loadstone used more CPU than the server in {len(self.steps)} of {self.total} steps "
            f"({named(self.steps)}; up to {self.share:.0%} of what both used): on one machine that slows "
            "the server down."
        )

    @property
    def hint(self) -> str:
        """Binary rows, another machine."""
        return "Send rows in binary form (method copy_binary), or drive the load from another machine."


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortSteps(Caution):
    """Steps so short that chance decides their length."""

    short: int
    total: int
    seconds: float

    @property
    def message(self) -> str:
        """How many, and how short."""
        return (
            f"{self.short} of {self.total} steps took less than {self.seconds:g} s: "
            "one checkpoint or one pause of the machine is a large part of such a step."
        )

    @property
    def hint(self) -> str:
        """Larger steps."""
        return "Take more rows a step (--set step_rows=N), or read the course of many steps, not single ones."


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsInSteps(Caution):
    """Checkpoints fell into single steps, which paid for those beside them."""

    steps: tuple[int, ...]
    total: int
    slower: float

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """In which steps, and how much slower those were."""
        return (
            f"Checkpoints began in {len(self.steps)} of {self.total} steps ({named(self.steps)}), which took "
            f"{self.slower:.2g} times as long as those beside them (median)."
        )

    @property
    def hint(self) -> str:
        """Read the course."""
        return (
            "Do not take such a step for the knee. With larger steps, or a smaller max_wal_size, each step "
            "has its share of checkpoints."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDisk(Caution):
    """What we write down lies on the server's disk."""

    disk: str

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """Which disk."""
        return (
            f"The results are written to the disk that holds the server's data ({self.disk}): our own "
            "writes, about a kilobyte a second, are among those counted for it."
        )

    @property
    def hint(self) -> str:
        """Another disk."""
        return (
            "Name a folder on another disk with --out, or in memory, where single writes must be told apart."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLimited(Caution):
    """A control group held the server's memory down."""

    limit_bytes: int

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """How much it had."""
        return (
            f"The server and the page cache of its files had {self.limit_bytes / _MEBI:,.0f} MiB of memory "
            "together, by a control group: a knee found here is that of so much memory."
        )

    @property
    def hint(self) -> str:
        """Do not carry it over."""
        return "Run the size `full`, or a server without such a limit, for the knee of this machine."


def named(steps: tuple[int, ...]) -> str:
    """Name steps, the first few of many: "steps 3, 7, 9, …"."""
    shown = ", ".join(str(step) for step in steps[:_STEPS_NAMED])
    return f"step{'s' if len(steps) > 1 else ''} {shown}{', …' if len(steps) > _STEPS_NAMED else ''}"
