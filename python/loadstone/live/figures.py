"""The figures of a run that goes on, as its listener gets them: one interval after the other.

Listeners are called in the thread of the run, ten times a second during a drive; whoever serves the figures
reads them in threads of its own.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from loadstone.results.redact import redact
from loadstone.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadstone.plan.model import Plan, PlannedPhase

INTERVALS_KEPT = 600
"""Ten minutes: memory does not grow with the run."""
SHOWN_FROM_S = 0.05
"""A shorter interval counts, but a rate of it says nothing: queries that run one by one end so soon."""
OUTCOMES = ("done", "failed", "skipped", "dropped")
_NS_PER_S = 1e9
_WHOLE_FROM = 100


@dataclass(frozen=True, slots=True)
class Place:
    """What an interval belongs to."""

    target: str
    scenario: str
    phase: str
    variant: str


@dataclass(frozen=True, slots=True)
class Interval:
    """One interval of a drive, usually a second. Latencies are response times in seconds."""

    number: int
    place: Place
    t_s: float
    """Its end, in seconds since the first interval of the run began."""
    rate_per_s: float
    rows_per_s: float | None
    failed_per_s: float
    clients: int | None
    mean_s: float | None
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    max_s: float | None
    warmup: bool


@dataclass(frozen=True, slots=True)
class LiveTrial:
    """Which trial of an experiment or a search goes on."""

    number: int
    kind: str = ""
    """Of a search, such as `whole`."""
    arm: str = ""
    block: int | None = None
    offered_per_s: float | None = None
    """Transactions that should begin a second; None in a closed loop."""

    def __str__(self) -> str:
        """Return what people read, such as `trial 7, block 3, arm B`."""
        block = "" if self.block is None else f"block {self.block}"
        rate = "" if self.offered_per_s is None else f"{_number(self.offered_per_s)}/s offered"
        arm = f"arm {self.arm}" if self.arm else ""
        return ", ".join(filter(None, (f"trial {self.number}", block, arm, self.kind, rate)))


@dataclass(slots=True)
class Totals:
    """All intervals of a phase so far."""

    outcomes: Counter[str]
    rows: int = 0
    responses: int = 0
    response_s: float = 0.0

    @classmethod
    def none(cls) -> Totals:
        """Return those of no intervals."""
        return cls(Counter(dict.fromkeys(OUTCOMES, 0)))

    def add(self, interval: Mapping[str, Any]) -> None:
        """Count an interval."""
        for outcome in OUTCOMES:
            self.outcomes[outcome] += interval.get(outcome) or 0
        self.rows += interval.get("rows") or 0
        response = interval.get("response")
        if response:
            self.responses += response["count"]
            self.response_s += response["count"] * (response["mean_ns"] or 0) / _NS_PER_S

    def document(self) -> dict[str, int]:
        """Return the counts: `done`, `failed`, `skipped`, `dropped`, `rows`."""
        return {**self.outcomes, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Now:
    """What is going on."""

    doing: str
    phases: int
    phases_ended: int
    ended: str | None
    """How the run ended; None while it goes on."""


class LiveFigures:
    """A listener of a run. `changed` is notified when there is anything new."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.changed = threading.Condition()
        self.intervals: deque[Interval] = deque(maxlen=INTERVALS_KEPT)
        self.totals: dict[Place, Totals] = {}
        self.phase = Totals.none()
        """Of the phase that goes on, or was the last."""
        self.place: Place | None = None
        """Where the phase that goes on is; None between phases."""
        self.ended_phases: Counter[str] = Counter()
        self.trial: LiveTrial | None = None
        """The last trial that has begun, of an experiment or a search."""
        self.version = 0
        self._doing = "starting"
        self._phases = self._phases_before = 0
        self._ended: str | None = None
        self._labels: dict[str, str] = {}
        self._origin_ns: int | None = None
        self._last_ns = 0
        self._drive_ns: int | None = None
        self._length_s = 0.0
        """Of the last interval that was shown, of the drive that began at `_drive_ns`."""
        self._count = 0

    def said(self, message: str) -> None:
        """Keep what is being done."""
        self._update(_doing=_text(message))

    def planned(self, plan: Plan) -> None:
        """Keep the final plan."""
        self._labels = {target.id: _text(target.label) for target in plan.targets}
        self.expect(sum(1 for target in plan.targets for phase in target.phases if phase.skip is None))

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Note that a phase begins."""
        variant = ", ".join(f"{name}={value}" for name, value in phase.variant.items())
        words = [self._labels.get(target, target), phase.title, *([variant] if variant else [])]
        self.enter(Place(target, phase.scenario, phase.id, variant), ": ".join(words))

    def progressed(self, target: str, phase: PlannedPhase, progress: Mapping[str, Any]) -> None:
        """Keep a drive: of each of its intervals, once."""
        del target, phase
        self.take(progress)

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Note that a phase has ended."""
        del target
        self.leave(str(document["state"]))

    def expect(self, phases: int) -> None:
        """Keep how many phases there will be from here on."""
        self._update(_phases=phases, _phases_before=self._ended_phases())

    def try_out(self, trial: LiveTrial) -> None:
        """Note that a trial begins: what follows belongs to it."""
        self._update(trial=trial, _doing="starting", _phases=0, _phases_before=self._ended_phases())

    def enter(self, place: Place, doing: str) -> None:
        """Keep where the intervals that follow belong."""
        shown = Place(place.target, _text(place.scenario), _text(place.phase), _text(place.variant))
        self._update(place=shown, phase=Totals.none(), _doing=_text(doing))

    def take(self, progress: Mapping[str, Any]) -> None:
        """Keep a drive's progress: of its latest interval, or of several where it has them, once."""
        latest = progress.get("latest")
        for interval in progress.get("recent") or ([latest] if latest else []):
            if self.place is not None and interval["start_ns"] > self._last_ns:
                self._take(self.place, interval, progress.get("start_ns"))

    def leave(self, state: str) -> None:
        """Keep how a phase ended."""
        self.ended_phases[state] += 1
        self._update(place=None)

    def end(self, how: str) -> None:
        """Note that the run has ended."""
        self._update(_ended=_text(how), place=None)

    def now(self) -> Now:
        """Return what is going on; `changed` must be held."""
        ended = self._ended_phases() - self._phases_before
        doing = self._doing if self.trial is None else f"{self.trial}: {self._doing}"
        return Now(doing, self._phases, ended, self._ended)

    def _ended_phases(self) -> int:
        return sum(count for state, count in self.ended_phases.items() if state != "skipped")

    def _take(self, place: Place, interval: Mapping[str, Any], drive_ns: int | None) -> None:
        self._last_ns = interval["start_ns"]
        with self.changed:
            self.totals.setdefault(place, Totals.none()).add(interval)
            self.phase.add(interval)
            if self._is_shown(interval, drive_ns):
                self._count += 1
                self.intervals.append(self._interval(place, interval))
                self._notify()

    def _is_shown(self, interval: Mapping[str, Any], drive_ns: int | None) -> bool:
        """Return whether a rate of an interval says something: the last one of a drive is cut off."""
        length_s = (interval["end_ns"] - interval["start_ns"]) / _NS_PER_S
        is_rest = drive_ns == self._drive_ns and 2 * length_s < self._length_s
        if is_rest or length_s < SHOWN_FROM_S:
            return False
        self._drive_ns, self._length_s = drive_ns, length_s
        return True

    def _update(self, **values: object) -> None:
        with self.changed:
            for name, value in values.items():
                setattr(self, name, value)
            self._notify()

    def _notify(self) -> None:
        self.version += 1
        self.changed.notify_all()

    def _interval(self, place: Place, latest: Mapping[str, Any]) -> Interval:
        if self._origin_ns is None:
            self._origin_ns = latest["start_ns"]
        seconds = max(1e-9, (latest["end_ns"] - latest["start_ns"]) / _NS_PER_S)
        response = latest.get("response") or {}
        latencies = {
            f"{name}_s": None if response.get(f"{name}_ns") is None else response[f"{name}_ns"] / _NS_PER_S
            for name in ("mean", "p50", "p95", "p99", "max")
        }
        return Interval(
            number=self._count,
            place=place,
            t_s=(latest["end_ns"] - self._origin_ns) / _NS_PER_S,
            rate_per_s=latest["done"] / seconds,
            rows_per_s=latest["rows"] / seconds if latest.get("rows") is not None else None,
            failed_per_s=latest["failed"] / seconds,
            clients=latest.get("connected"),
            warmup=bool(latest["warmup"]),
            **latencies,
        )


def announce(listener: object, trial: LiveTrial) -> None:
    """Tell a listener that a trial begins, where it shows trials."""
    if isinstance(listener, LiveFigures):
        listener.try_out(trial)


class Listeners:
    """Several listeners of one run."""

    def __init__(self, *listeners: Any) -> None:
        """Tell each of them, in this order."""
        self._listeners = listeners

    def said(self, message: str) -> None:
        """Keep what is being done."""
        for listener in self._listeners:
            listener.said(message)

    def planned(self, plan: Plan) -> None:
        """Keep the final plan."""
        for listener in self._listeners:
            listener.planned(plan)

    def began(self, target: str, phase: PlannedPhase) -> None:
        """Note that a phase begins."""
        for listener in self._listeners:
            listener.began(target, phase)

    def progressed(self, target: str, phase: PlannedPhase, progress: dict[str, Any]) -> None:
        """Keep how a drive goes."""
        for listener in self._listeners:
            listener.progressed(target, phase, progress)

    def ended(self, target: str, document: Mapping[str, Any]) -> None:
        """Note that a phase has ended."""
        for listener in self._listeners:
            listener.ended(target, document)


def as_document(interval: Interval) -> dict[str, Any]:
    """Return an interval as plain values."""
    return asdict(interval)


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= _WHOLE_FROM else f"{rate:.3g}"


def _text(value: object) -> str:
    """Return what may be shown: no secrets, no control characters."""
    return visible(redact("" if value is None else str(value)))
