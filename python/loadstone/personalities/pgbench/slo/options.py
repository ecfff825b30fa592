"""The options of `--slo`, and what cannot be asked for beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from loadstone.personalities.pgbench.complaint import ComplaintError
from loadstone.personalities.pgbench.values import integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.personalities.pgbench.options import Options
    from loadstone.slo.limits import Limit

T = TypeVar("T")
WINDOW_S = 30
"""Least length of a whole trial without `-T`."""
_FEWEST, _MOST, _USUAL = 8, 200, 25


@dataclass(slots=True)
class SloOptions:
    """What is searched; without limits nothing is."""

    limits: tuple[Limit, ...] = ()
    errors: float | None = None
    """Largest share of transactions that may fail."""
    required_per_s: float | None = None
    most: int = _USUAL
    """Trials."""
    given: bool = False

    def check(self, options: Options) -> None:
        """Refuse what contradicts a search, and set its length; raises ComplaintError."""
        if not self.given:
            return
        if not self.limits:
            raise ComplaintError("there is no limit to keep", "Add --slo, such as --slo p99=20ms.")
        for name, value, why in _contradicting(options):
            if value:
                raise ComplaintError(f"--slo and {name} exclude each other", why)
        options.duration_s = options.duration_s or WINDOW_S


def _contradicting(options: Options) -> list[tuple[str, object, str]]:
    chosen, one = "The search chooses the rate of each trial.", "It prints the answer of all trials."
    return [
        ("a rate (-R)", options.rate_per_s, chosen),
        ("a number of transactions (-t)", options.transactions, "-T sets the least length of whole trials."),
        ("a latency limit (-L)", options.latency_limit_ms, "Transactions that are late must still be done."),
        ("a ramp-up (--ramp-up)", options.ramp_up_s, "Use --warmup: it comes before each trial."),
        ("progress (-P)", options.progress_s, "Each trial is reported as soon as it ends."),
        ("latencies of statements (-r)", options.per_command, one),
        ("a log of transactions (-l)", options.log, one),
        ("--out", options.out, "Use --report: its folder has the files of every trial."),
        ("--hosts", options.hosts, "Search from one host."),
        ("--exit-on-abort", options.exit_on_abort, "An aborted client ends the search anyway."),
    ]


def _limit(slo: SloOptions, text: str) -> None:
    from loadstone.slo.limits import limit  # noqa: PLC0415 - few runs need it

    slo.limits += (_read(limit, text),)


def _errors(slo: SloOptions, text: str) -> None:
    from loadstone.slo.limits import share  # noqa: PLC0415

    slo.errors = _read(share, text)


def _required(slo: SloOptions, text: str) -> None:
    from loadstone.slo.limits import rate  # noqa: PLC0415

    slo.required_per_s = _read(rate, text)


def _most(slo: SloOptions, text: str) -> None:
    slo.most = integer("--slo-max-trials", text, _FEWEST, _MOST)


def _read(read: Callable[[str], T], text: str) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise ComplaintError(str(error)) from error


def _given(take: Callable[[SloOptions, str], None]) -> Callable[[SloOptions, str], None]:
    def handle(slo: SloOptions, text: str) -> None:
        slo.given = True
        take(slo, text)

    return handle


HANDLERS = {
    "slo": _given(_limit),
    "slo-errors": _given(_errors),
    "slo-require": _given(_required),
    "slo-max-trials": _given(_most),
}
