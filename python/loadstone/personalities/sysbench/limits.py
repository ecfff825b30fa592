"""What a run is to do, out of the options: sysbench's checks, in its order and words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loadstone.errors import ExitCode
from loadstone.model import RATE_MAX_PER_S
from loadstone.personalities.sysbench.complaint import ComplaintError, EndedError
from loadstone.personalities.sysbench.log import VERBOSITY_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.personalities.sysbench.settings import Settings

    Write = Callable[[str], object]

CHECKPOINTS_MAX = 256
PERCENTILE_MAX = 100
DISTRIBUTIONS = ("uniform", "gaussian", "special", "pareto")
_OLD = {"max-requests": "events", "max-time": "time"}
_DEFAULT_PART = 20
"""Without a value, --forced-shutdown is this part of the time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """One run, apart from script and server."""

    threads: int
    events: int
    time_s: int
    grace_s: int | None
    """Seconds after the end in which events may go on; None: as long as they need."""
    rate_per_s: float
    report_interval_s: int
    checkpoints_s: tuple[int, ...]
    debug: bool
    validate: bool
    seed: int
    distribution: str
    verbosity: int
    percentile: int
    histogram: bool
    percentiles: tuple[float, ...]
    warmup_s: float
    load_threads: int
    init_s: int
    """Seconds in which clients must get ready; 0: no limit."""


def limits_of(settings: Settings, out: Write) -> Limits:
    """Read the options; old names are warned of on standard output. Raises ComplaintError."""
    threads = _threads(settings, out)
    for old, new in _OLD.items():
        if settings.integer(old) > 0:
            _take_old(settings, old, new, out)
    events, time_s = settings.integer("events"), settings.integer("time")
    if not events and not time_s:
        out("WARNING: Both event and time limits are disabled, running an endless test\n")
    grace_s = _grace(settings, time_s) if time_s > 0 else None
    _check_stack(settings)
    _check_distribution(settings)
    return Limits(
        threads=threads,
        events=max(events, 0),
        time_s=max(time_s, 0),
        grace_s=grace_s,
        seed=settings.integer("rand-seed"),
        distribution=settings.string("rand-type") or "",
        rate_per_s=_rate(settings, out),
        report_interval_s=max(settings.integer("report-interval"), 0),
        checkpoints_s=_checkpoints(settings),
        debug=settings.flag("debug"),
        validate=settings.flag("validate"),
        verbosity=_verbosity(settings, out),
        percentile=_percentile(settings),
        histogram=_histogram(settings),
        percentiles=_percentiles(settings),
        warmup_s=_positive(settings, "warmup"),
        load_threads=max(settings.integer("load-threads"), 0),
        init_s=max(settings.integer("thread-init-timeout"), 0),
    )


def _take_old(settings: Settings, old: str, new: str, out: Write) -> None:
    out(f"WARNING: --{old} is deprecated, use --{new} instead\n")
    settings.copy(new, old)


def _threads(settings: Settings, out: Write) -> int:
    if settings.integer("num-threads") > 1:
        _take_old(settings, "num-threads", "threads", out)
    threads = settings.integer("threads")
    if threads <= 0:
        raise ComplaintError(f"Invalid value for --threads: {threads}.", fatal=True, gap=True)
    return threads


def _grace(settings: Settings, time_s: int) -> int | None:
    text = settings.string("forced-shutdown")
    if text is None:
        return time_s // _DEFAULT_PART
    if text.lower() == "off":
        return None
    match = re.fullmatch(r"\s*([0-9]+)(%?)", text)
    if match is None:
        raise ComplaintError(f"Invalid value for --forced-shutdown: '{text}'", fatal=True)
    number = int(match[1])
    return number * time_s // 100 if match[2] else number


def _check_stack(settings: Settings) -> None:
    if settings.size("thread-stack-size") <= 0:
        raise ComplaintError("Invalid value for thread-stack-size: 0.", fatal=True, gap=True)


def _check_distribution(settings: Settings) -> None:
    settings.integer("rand-seed")
    name = settings.string("rand-type") or ""
    if name not in DISTRIBUTIONS:
        raise ComplaintError(f"Invalid random numbers distribution: {name}.", fatal=True)


def _rate(settings: Settings, out: Write) -> float:
    if settings.integer("tx-rate") > 0:
        _take_old(settings, "tx-rate", "rate", out)
    text = settings.string("rate") or "0"
    if not re.fullmatch(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", text):
        settings.integer("rate")  # complains, in sysbench's words
    rate_per_s = max(settings.double("rate"), 0.0)
    if rate_per_s > RATE_MAX_PER_S:
        raise ComplaintError(f"Invalid value for --rate: {text}", "It is at most ten million.", fatal=True)
    return rate_per_s


def _checkpoints(settings: Settings) -> tuple[int, ...]:
    found = []
    for text in settings.listed("report-checkpoints"):
        if not re.fullmatch(r"\s*\+?[0-9]{1,9}", text):
            raise ComplaintError(f"Invalid value for --report-checkpoints: '{text}'", fatal=True)
        found.append(int(text))
        if len(found) > CHECKPOINTS_MAX:
            raise ComplaintError(
                f"Too many checkpoints in --report-checkpoints (up to {CHECKPOINTS_MAX} can be defined)",
                fatal=True,
            )
    return tuple(sorted(found))


def _verbosity(settings: Settings, out: Write) -> int:
    if settings.flag("debug"):
        settings.assign("verbosity", str(VERBOSITY_MAX), "int")
    verbosity = settings.integer("verbosity") & 0xFF  # a byte in sysbench
    if verbosity > VERBOSITY_MAX:
        out(f"Invalid value for verbosity: {verbosity}\n")
        raise EndedError(ExitCode.BAD_INPUT)
    return verbosity


def _percentile(settings: Settings) -> int:
    percentile = settings.integer("percentile")
    if not 0 <= percentile <= PERCENTILE_MAX:
        raise ComplaintError(
            f"Invalid value for --percentile: {percentile}",
            "For others, such as 99.9, there is --percentiles.",
            fatal=True,
        )
    return percentile


def _histogram(settings: Settings) -> bool:
    wanted = settings.flag("histogram")
    if wanted and settings.integer("percentile") == 0:
        raise ComplaintError("--histogram cannot be used with --percentile=0", fatal=True)
    return wanted


def _percentiles(settings: Settings) -> tuple[float, ...]:
    found = []
    for text in settings.listed("percentiles"):
        value = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) else -1.0
        if not 0 < value <= PERCENTILE_MAX:
            raise ComplaintError(
                f"Invalid value for --percentiles: '{text}'",
                "Give numbers above 0 and up to 100, such as 50,99,99.9.",
                fatal=True,
            )
        found.append(value)
    return tuple(found)


def _positive(settings: Settings, name: str) -> float:
    text = settings.string(name)
    if text is None:
        return 0.0
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        raise ComplaintError(f"Invalid value for --{name}: '{text}'", "Give a number of seconds.", fatal=True)
    return float(text)
