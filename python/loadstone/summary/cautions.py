"""Warnings in words: one type per situation, each ending in what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caution:
    """Something the reader must know before believing a figure. `phase` is a phase's folder name."""

    severity: ClassVar[Level] = "warning"
    target: str | None = None
    phase: str | None = None

    @property
    def level(self) -> Level:
        """How bad it is: an error means that a figure must not be used."""
        return self.severity

    @property
    def message(self) -> str:
        """What is the case, with its figures."""
        raise NotImplementedError

    @property
    def hint(self) -> str:
        """What to do."""
        raise NotImplementedError

    def document(self) -> dict[str, str | None]:
        """Return the caution as it stands in summary.json."""
        return {
            "kind": type(self).__name__,
            "level": self.level,
            "message": self.message,
            "hint": self.hint,
            "target": self.target,
            "phase": self.phase,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsDoNotAddUp(Caution):
    """The counting equation is violated: the driver lost or doubled transactions."""

    text: str

    severity: ClassVar[Level] = "error"

    @property
    def message(self) -> str:
        """Which counts differ."""
        return f"The counts do not add up: {self.text}."

    @property
    def hint(self) -> str:
        """Report it."""
        return "Do not use this phase's figures; report this run folder as a defect of Loadstone."


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFailed(Caution):
    """The database's content is not what it acknowledged."""

    name: str
    expected: str
    actual: str

    severity: ClassVar[Level] = "error"

    @property
    def message(self) -> str:
        """Expected against actual."""
        return f"The check “{self.name}” failed: expected {self.expected}, found {self.actual}."

    @property
    def hint(self) -> str:
        """Look at the server before the speed."""
        return "A fast wrong answer is a failure: look into the server's log before using any figure."


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIncomplete(Caution):
    """The run did not reach its end."""

    state: str
    reason: str

    @property
    def message(self) -> str:
        """How it ended."""
        words = {
            "killed": "The run was killed before its end",
            "interrupted": "The run was interrupted",
            "failed": "The run failed",
            "running": "The run is still going on",
        }
        because = f": {self.reason}" if self.reason else ""
        return f"{words.get(self.state, self.state)}{because}. What was recorded until then is shown."

    @property
    def hint(self) -> str:
        """Run again."""
        if self.state == "running":
            return "Make the report again when the run has ended."
        return "Run it again to the end before comparing its figures with others."


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDamaged(Caution):
    """The run folder is not as the run has left it."""

    text: str

    severity: ClassVar[Level] = "error"

    @property
    def message(self) -> str:
        """Which file, and what is the matter with it."""
        return f"The run folder is damaged: {self.text}."

    @property
    def hint(self) -> str:
        """Take a copy."""
        return "Use an untouched copy of the folder; figures from this one may be wrong."


@dataclass(frozen=True, slots=True, kw_only=True)
class NoManifest(Caution):
    """Nothing tells whether the files are those that the run wrote."""

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """Say so."""
        return "No manifest: whether the files of this folder are whole was not checked."

    @property
    def hint(self) -> str:
        """Newer runs have one."""
        return "An older version of Loadstone wrote it; runs of this version are checked."


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseIncomplete(Caution):
    """One phase was cut short."""

    state: str
    reason: str

    @property
    def message(self) -> str:
        """What happened to the phase."""
        because = f": {self.reason}" if self.reason else ""
        return f"The phase did not end as planned ({self.state}){because}. Its figures end there."

    @property
    def hint(self) -> str:
        """Do not compare."""
        return "Do not set its figures beside those of a whole phase."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientWasTheLimit(Caution):
    """Our own threads were busy nearly all the time."""

    utilisation: float
    threads: int

    @property
    def message(self) -> str:
        """How busy we were."""
        return (
            f"Loadstone itself was the limit: its {self.threads} driver thread(s) were busy "
            f"{self.utilisation:.0%} of the time."
        )

    @property
    def hint(self) -> str:
        """More threads, or another machine."""
        return "Give it more threads (--set threads=N) or drive the load from another machine."


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMayHaveBeenLate(Caution):
    """The event loop needed long between two waits, against the latencies it measured."""

    lag_p99_ms: float
    median_ms: float

    @property
    def message(self) -> str:
        """Lag against the median."""
        return (
            f"Loadstone may have been the limit: its event loop took up to {self.lag_p99_ms:.3g} ms "
            f"(99th percentile) before it saw new answers, with a median latency of {self.median_ms:.3g} ms."
        )

    @property
    def hint(self) -> str:
        """Fewer clients per thread."""
        return "Use more threads, fewer clients, or a machine of its own: latencies here are upper bounds."


@dataclass(frozen=True, slots=True, kw_only=True)
class NearCeiling(Caution):
    """The measured rate is close to what we reach against a server that does nothing."""

    tps: float
    ceiling: float

    @property
    def message(self) -> str:
        """Rate against ceiling."""
        return (
            f"Loadstone may have been the limit: {self.tps:,.0f} tps is {self.tps / self.ceiling:.0%} of the "
            f"{self.ceiling:,.0f} tps it reaches here against a server that answers at once."
        )

    @property
    def hint(self) -> str:
        """Another machine."""
        return "Drive the load from another machine or with more threads, and calibrate there."


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFewSamples(Caution):
    """A percentile is left out."""

    samples: int
    percentile: float
    needed: int

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """How many there are and how many it takes."""
        return (
            f"{self.samples:,} samples are too few for the {self.percentile:g}th percentile, "
            f"which needs about {self.needed:,}; it is left out."
        )

    @property
    def hint(self) -> str:
        """Measure longer."""
        return "Measure longer (--set duration=SECONDS) if you need it."


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineWasBusy(Caution):
    """Someone else used the machine's processors."""

    other: float
    steal: float

    @property
    def message(self) -> str:
        """Shares of the machine."""
        return (
            f"The machine was busy with something else: {self.other:.0%} of its CPU went neither to the "
            f"server nor to Loadstone, and {self.steal:.0%} was stolen by the hypervisor."
        )

    @property
    def hint(self) -> str:
        """Quiet machine."""
        return "Stop other programs, or use a machine that is not shared, and run again."


@dataclass(frozen=True, slots=True, kw_only=True)
class DurabilityOff(Caution):
    """A setting trades durability for speed."""

    setting: str
    value: str
    why: str

    @property
    def message(self) -> str:
        """Name the setting."""
        because = f" ({self.why})" if self.why else ""
        return (
            f"Not durable: {self.setting} = {self.value}{because}. All figures of this target profit from it."
        )

    @property
    def hint(self) -> str:
        """Say so, or turn it on."""
        return f"Turn {self.setting} on for figures that hold in production, or say it beside every figure."


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugBuild(Caution):
    """Our own core is not optimised."""

    @property
    def message(self) -> str:
        """Say so."""
        return "Loadstone's core is a debug build: the client is several times slower than it should be."

    @property
    def hint(self) -> str:
        """Build it properly."""
        return "Run `make build` and measure again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsteady(Caution):
    """Throughput at the end differs from that at the beginning."""

    change: float
    checkpoints: int

    @property
    def message(self) -> str:
        """How much, and whether checkpoints fell inside."""
        direction = "fell" if self.change < 0 else "rose"
        inside = f"; {self.checkpoints} checkpoint(s) began inside the phase" if self.checkpoints else ""
        moved = f"it {direction} by {abs(self.change):.0%} from the first to the last third"
        return f"Throughput was not steady: {moved}{inside}."

    @property
    def hint(self) -> str:
        """Longer, with warm-up."""
        return (
            "Warm up and measure for longer (several checkpoint intervals), and look at the course over time."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorsHappened(Caution):
    """Transactions failed."""

    failed: int
    scheduled: int
    first: str

    @property
    def message(self) -> str:
        """How many and which."""
        return f"{self.failed:,} of {self.scheduled:,} transactions failed, most often with: {self.first}."

    @property
    def hint(self) -> str:
        """Look at the errors."""
        return (
            "See the table of errors by SQLSTATE; mend their cause, or count failures into your conclusion."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage(Caution):
    """Connections were lost for a while."""

    count: int
    longest_s: float
    endless: bool = False

    @property
    def message(self) -> str:
        """How many and how long."""
        until = ", the last time until the end" if self.endless else ""
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"The server could not be reached {times}, for up to {self.longest_s:.1f} s{until}."

    @property
    def hint(self) -> str:
        """Look at the server."""
        return "Look into the server's log at that time; the throughput figure includes the outage."


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLost(Caution):
    """The server did not serve all clients to the end."""

    text: str

    severity: ClassVar[Level] = "error"

    @property
    def message(self) -> str:
        """Who was lost, or for how long nothing was done."""
        return f"The server did not serve the phase to its end: {self.text}."

    @property
    def hint(self) -> str:
        """Look at the server."""
        return (
            "Look into the server's log at that time; the figures of this phase include it: do not use them."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPaused(Caution):
    """Our own process was stopped."""

    paused_s: float
    measured_s: float

    @property
    def message(self) -> str:
        """For how long."""
        return (
            f"Loadstone itself was stopped for {self.paused_s:.1f} of the measured {self.measured_s:.1f} s: "
            "the latencies of that time are its own, not the server's."
        )

    @property
    def hint(self) -> str:
        """Leave it the machine."""
        return "Do not suspend it, leave it CPU time, and measure again."


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDropped(Caution):
    """Under a rate, work was not done in time."""

    skipped: int
    dropped: int
    late: int
    scheduled: int

    @property
    def message(self) -> str:
        """Counts."""
        return (
            f"The server did not keep up with the rate: of {self.scheduled:,} scheduled transactions "
            f"{self.skipped:,} were skipped, {self.dropped:,} dropped at the end, {self.late:,} too late."
        )

    @property
    def hint(self) -> str:
        """Lower rate."""
        return "Lower the rate until nothing is skipped: that is the load this server really holds."


@dataclass(frozen=True, slots=True, kw_only=True)
class InDoubt(Caution):
    """Answers were lost with their connections."""

    count: int

    @property
    def message(self) -> str:
        """How many."""
        return f"{self.count:,} transactions are in doubt: sent, and the connection lost before the answer."

    @property
    def hint(self) -> str:
        """Rows may exceed."""
        return "The tables may hold up to that many more than were acknowledged; the check allows for it."


@dataclass(frozen=True, slots=True, kw_only=True)
class CleartextPassword(Caution):
    """The password crossed the network readably."""

    @property
    def message(self) -> str:
        """Say so."""
        return "The server asked for the password in plain text, over a connection without TLS."

    @property
    def hint(self) -> str:
        """SCRAM."""
        return "Use scram-sha-256 in pg_hba.conf, or sslmode=verify-full, and change the password."


@dataclass(frozen=True, slots=True, kw_only=True)
class NotEncrypted(Caution):
    """A remote server without TLS."""

    severity: ClassVar[Level] = "info"

    @property
    def message(self) -> str:
        """Say so."""
        return (
            "The connection to this remote server was not encrypted: its figures leave out the cost of TLS."
        )

    @property
    def hint(self) -> str:
        """TLS as in production."""
        return "Add sslmode=require to the URL if production uses TLS."


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedBuilds(Caution):
    """The targets differ in more than the engine."""

    builds: tuple[str, ...]

    @property
    def message(self) -> str:
        """Name the builds."""
        builds = "; ".join(self.builds)
        return f"The targets are built differently: {builds}. Part of any difference may come from that."

    @property
    def hint(self) -> str:
        """Same builds."""
        return "Compare servers from the same packager, or mention the builds beside the figures."


@dataclass(frozen=True, slots=True, kw_only=True)
class LogIncomplete(Caution):
    """The histogram log does not hold every sample."""

    logged: int
    counted: int

    @property
    def message(self) -> str:
        """Counts."""
        return (
            f"The latency log holds {self.logged:,} of {self.counted:,} samples; percentiles come from those."
        )

    @property
    def hint(self) -> str:
        """Why that happens."""
        return (
            "This is normal for a killed run; otherwise check that the disk with the run folder was not full."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingDone(Caution):
    """Not one transaction came to its end."""

    severity: ClassVar[Level] = "error"

    @property
    def message(self) -> str:
        """Say so."""
        return "Not one transaction was completed in the measured time."

    @property
    def hint(self) -> str:
        """Errors or time."""
        return "Look at the errors of this phase; without any, a transaction takes longer than the phase."


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Caution):
    """What the run itself warned of while it went on (an event)."""

    text: str
    advice: str
    event_level: Level = "warning"

    @property
    def level(self) -> Level:
        """As the event said."""
        return self.event_level

    @property
    def message(self) -> str:
        """The event's words."""
        return self.text

    @property
    def hint(self) -> str:
        """The event's advice."""
        return self.advice or "See events.jsonl in the run folder."
