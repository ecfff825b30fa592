"""Which options of a benchmark do not go together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from loadstone.personalities.pgbench.complaint import ComplaintError

if TYPE_CHECKING:
    from loadstone.personalities.pgbench.options import Options

DEFAULT_TRANSACTIONS = 10


def check_together(options: Options) -> None:
    """Refuse options that contradict each other, and set those that follow; raises ComplaintError."""
    options.slo.check(options)
    if sum(script.weight for script in options.scripts) == 0:
        raise ComplaintError("total script weight must not be zero")
    if options.transactions and options.duration_s:
        raise ComplaintError("specify either a number of transactions (-t) or a duration (-T), not both")
    if not options.duration_s and not options.transactions:
        options.transactions = DEFAULT_TRANSACTIONS
    _check_log(options)
    _check_shape(options)
    _check_progress(options)
    options.seen.live_options.check()
    if not options.max_tries and not (options.latency_limit_ms or options.duration_s):
        raise ComplaintError(
            "an unlimited number of transaction tries can only be used with --latency-limit "
            "or a duration (-T)"
        )
    if options.exit_on_abort and options.continue_on_error:
        raise ComplaintError("--exit-on-abort and --continue-on-error exclude each other")
    if options.hosts is not None and options.log:
        raise ComplaintError("--hosts and a log of transactions (-l) exclude each other")
    if options.out is not None and options.report is not None:
        raise ComplaintError(
            "--out and --report exclude each other", "Leave out --out: the report's folder has its files too."
        )


def _check_progress(options: Options) -> None:
    if options.progress_timestamp and not options.progress_s:
        raise ComplaintError("--progress-timestamp is allowed only under --progress")
    if options.progress_percentiles and not options.progress_s:
        raise ComplaintError("--progress-percentiles is allowed only under --progress")


def _check_shape(options: Options) -> None:
    if options.warmup_s and not options.duration_s:
        raise ComplaintError(
            "a warm-up (--warmup) needs a duration (-T)", "The run then takes the warm-up and the duration."
        )
    lasts_s = options.warmup_s + (options.duration_s or math.inf)
    if options.ramp_up_s >= lasts_s:
        raise ComplaintError(
            f"the ramp-up ({options.ramp_up_s:g} s) must end before the run ({lasts_s:g} s)",
            "Raise -T, or the warm-up if the ramp-up is not to be counted.",
        )


def _check_log(options: Options) -> None:
    sampling, seconds = options.sampling_rate, options.aggregate_s
    if sampling and not options.log:
        raise ComplaintError("log sampling (--sampling-rate) is allowed only when logging transactions (-l)")
    if sampling and seconds:
        raise ComplaintError(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) "
            "cannot be used at the same time"
        )
    if seconds and not options.log:
        raise ComplaintError("log aggregation is allowed only when actually logging transactions")
    if options.log_prefix is not None and not options.log:
        raise ComplaintError("log file prefix (--log-prefix) is allowed only when logging transactions (-l)")
    duration = options.duration_s
    if duration and seconds and seconds > duration:
        raise ComplaintError(
            f"number of seconds for aggregation ({seconds}) must not be higher than "
            f"test duration ({duration})"
        )
    if duration and seconds and duration % seconds:
        raise ComplaintError(f"duration ({duration}) must be a multiple of aggregation interval ({seconds})")
