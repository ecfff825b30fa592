"""Warnings about queries in plain SQL, each ending in what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from loadstone.summary.cautions import Caution, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class CachesNotEmptied(Caution):
    """Cold runs were asked for, and the caches were still full."""

    note: str

    @property
    def message(self) -> str:
        """Why not."""
        because = f": {self.note.rstrip('.')}" if self.note else ""
        return f"The caches could not be emptied before the first run of each query{because}."

    @property
    def hint(self) -> str:
        """What would make it possible."""
        return (
            "Read its cold times as those of a first run with warm caches. A private server's are emptied by "
            "a restart, with its files out of the page cache."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRuns(Caution):
    """Medians of so few runs may be chance."""

    cold: int | None
    """Of the query with the fewest; None where none were asked for."""
    warm: int
    fewest_cold: int
    fewest_warm: int

    @property
    def message(self) -> str:
        """How many there are."""
        parts = [f"{self.warm} warm"]
        if self.cold is not None:
            parts.insert(0, f"{self.cold} cold")
        runs = " and ".join(parts)
        return (
            f"There are only {runs} runs of a query: to tell a median from chance takes at least "
            f"{self.fewest_cold} cold and {self.fewest_warm} warm ones."
        )

    @property
    def hint(self) -> str:
        """More rounds."""
        return "Ask more rounds, or more warm runs a round, before calling one target faster."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWorkedWhileAsking(Caution):
    """We used a part of the CPU time while one query ran at a time."""

    share: float

    @property
    def message(self) -> str:
        """How large a part."""
        return (
            f"Loadstone itself used {self.share:.0%} of the CPU time that it and the server used while the "
            "queries were asked."
        )

    @property
    def hint(self) -> str:
        """Short queries; another machine."""
        return (
            "Times of short queries hold some of that. Drive from another machine where they matter, or look "
            "at the longer queries."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InOurProcess(Caution):
    """An engine without a server stands beside engines with one."""

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """What its times do not hold."""
        return (
            "This engine works inside Loadstone's own process: its times hold no way between a client and a "
            "server, which those of the other targets do."
        )

    @property
    def hint(self) -> str:
        """Where it matters."""
        return (
            "That way is a fraction of a millisecond on one machine: mind it where a query takes few of them."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionsFailed(Caution):
    """Queries that did not come to their end."""

    name: str
    reason: str

    @property
    def message(self) -> str:
        """Which, and why."""
        return f"{self.name}: {self.reason.rstrip('.')}."

    @property
    def hint(self) -> str:
        """What stands in the report in their place."""
        return (
            "Its median is of the runs that were done, if any; after a failure the rest of the round was "
            "skipped. Mend the cause, or read the query as one that this engine does not hold."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoGpuSeen(Caution):
    """The plan names a GPU, and none was seen at work."""

    name: str

    @property
    def message(self) -> str:
        """Which query."""
        return (
            f"{self.name}: the plan says that a GPU works on it, and none was seen at work while it ran. "
            "It is marked “CPU”."
        )

    @property
    def hint(self) -> str:
        """Which GPU, or longer queries."""
        return (
            "Install nvidia-ml-py so that GPUs are watched, and see that the engine has not fallen back to "
            "the CPU; very short queries may need more runs to be seen."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsDiffer(Caution):
    """The rounds of a measurement do not overlap: something changed between them."""

    names: tuple[str, ...]

    @property
    def message(self) -> str:
        """Of which queries."""
        return (
            "Rounds differ by more than chance: every warm run of one round was slower than every one of "
            f"another ({', '.join(self.names)})."
        )

    @property
    def hint(self) -> str:
        """The interval is too narrow."""
        return (
            "The interval takes all runs as one sample and is too narrow then: look at the runs of each "
            "round, and measure again on a quiet machine."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientBusyBetween(Caution):
    """Fewer queries were under way than there were clients."""

    clients: tuple[int, ...]
    in_flight: tuple[float, ...]
    """Queries under way in the mean, for each number of clients."""

    @property
    def message(self) -> str:
        """How many were under way."""
        counts = "; ".join(
            f"{flight:.3g} of {clients}" for clients, flight in zip(self.clients, self.in_flight, strict=True)
        )
        return (
            "Between answers the client was busy: in the mean fewer queries were under way than there were "
            f"clients ({counts})."
        )

    @property
    def hint(self) -> str:
        """What the figure is then."""
        return (
            "The engine would answer more: read its queries a second as the least that it does, and its "
            "latency as that of the number under way."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSlowerWhileAsked(Caution):
    """An import beside queries was as fast as the same import alone."""

    rate: float
    alone: float

    @property
    def message(self) -> str:
        """Both rates."""
        return (
            f"The import while queries were asked ({self.rate:,.0f} rows/s) was at least as fast as the "
            f"import alone ({self.alone:,.0f} rows/s): one import differs from the next by more than the "
            "queries cost."
        )

    @property
    def hint(self) -> str:
        """More of both."""
        return "Repeat the run (--repeat 3) before reading anything out of the difference of the two."
