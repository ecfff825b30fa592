"""Where on our monotonic clock a moment of another clock is, by round trips: the shortest tells most."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A question and its answer: ours are monotonic nanoseconds, `theirs` is their clock's, None without one.

    `wall_lead_ns` is what their wall clock shows more than the clock of `theirs`.
    """

    sent_ns: int
    received_ns: int
    theirs_ns: int | None = None
    wall_lead_ns: int = 0

    @property
    def middle_ns(self) -> int:
        """The middle of the round trip."""
        return (self.sent_ns + self.received_ns) // 2

    @property
    def error_ns(self) -> int:
        """Half the round trip: how far from its middle the answer can have been made."""
        return (self.received_ns - self.sent_ns + 1) // 2


class RemoteClock:
    """Their clock minus ours, by the round trip that took least."""

    def __init__(self) -> None:
        """Begin without any round trip."""
        self.best: RoundTrip | None = None

    def place(self, trip: RoundTrip) -> int:
        """Return when, on our clock, the answer was made: between `sent_ns` and `received_ns`, always.

        A clock that was set, or has drifted out of the round trip, is estimated anew.
        """
        if trip.theirs_ns is None:
            return trip.middle_ns
        if self.best is None or trip.error_ns <= self.best.error_ns:
            self.best = trip
            return trip.middle_ns
        placed = trip.theirs_ns - self._offset_ns(self.best)
        if not trip.sent_ns <= placed <= trip.received_ns:
            self.best = trip
            return trip.middle_ns
        return placed

    def wall_offset_s(self, our_wall_lead_ns: int) -> float | None:
        """Return their wall clock minus ours, in seconds; None where they do not say what it shows.

        `our_wall_lead_ns` is our wall clock minus our monotonic one.
        """
        if self.best is None:
            return None
        return (self._offset_ns(self.best) + self.best.wall_lead_ns - our_wall_lead_ns) / 1e9

    @property
    def error_s(self) -> float | None:
        """How far off the offset can be, in seconds."""
        return None if self.best is None else self.best.error_ns / 1e9

    @staticmethod
    def _offset_ns(trip: RoundTrip) -> int:
        return (trip.theirs_ns or 0) - trip.middle_ns
