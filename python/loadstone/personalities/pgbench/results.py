"""The results: pgbench's block, line by line, then what pgbench does not measure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.personalities.pgbench.complaint import PROGRAM
from loadstone.personalities.pgbench.losses import losses
from loadstone.personalities.pgbench.progress import SUPPORT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.personalities.pgbench.options import Options
    from loadstone.personalities.pgbench.server import ServerFacts

RETRIABLE = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: what pgbench counts as a failed transaction."""
_STATE = re.compile("[0-9A-Z]{5}")

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_DETAILED_FROM = 18
"""Since this version a script's block counts its transactions by what became of them."""
DriveResult = dict[str, Any]


def aborting_errors(options: Options, account: DriveResult) -> list[Mapping[str, Any]]:
    """Return the errors that ended clients."""
    if options.reconnect:
        ended: list[Mapping[str, Any]] = account["details"]["ended"]
        return ended
    return [error for error in account["errors"] if not _is_passed(options, error["sqlstate"])]


def _is_passed(options: Options, state: str) -> bool:
    """Return whether a client goes on after an error: errors that no server reported have a longer name."""
    return state in RETRIABLE or (options.continue_on_error and _STATE.fullmatch(state) is not None)


def results(
    options: Options,
    found: ServerFacts,
    account: DriveResult,
    commands: Sequence[Sequence[Mapping[str, Any]]],
) -> str:
    """Return pgbench's block; `commands` are those of each script, measured or not."""
    lines = [*head(options, found, account["threads"]), *_counts(options, account)]
    if account["counts"]["done"] + account["counts"]["skipped"] > 0:
        lines += [*_latency(options, account), *_speed(options, account)]
        for number in range(len(options.scripts)):
            if len(options.scripts) > 1:
                lines += _script(options, account, number)
            if options.per_command:
                lines += _commands(options, account, number, commands[number], commands[:number])
    return "".join(f"{line}\n" for line in lines)


def beyond(account: DriveResult, machine: Sequence[str] = ()) -> str:
    """Return what pgbench does not print, under a heading of its own; `machine`: what `--watch` has shown."""
    lines = ["beyond pgbench, measured by loadstone:", *_percentiles(account)]
    if account["counts"]["dropped"]:
        lines.append(f" - dropped: {account['counts']['dropped']} transactions were due but never started")
    lines += [f" - {line}" for line in losses(account)]
    lines += [
        f" - error {e['sqlstate']} (x {e['count']}): {_first_line(e['message'])}" for e in account["errors"]
    ]
    lines += [f" - {line}" for line in machine]
    lines.append(f" - random seed: {account['seed']}")
    return "\n" + "".join(f"{line}\n" for line in lines)


def head(options: Options, found: ServerFacts, threads: int) -> Iterator[str]:
    """Yield the lines that say what was run."""
    yield f"{PROGRAM} (loadstone {__version__}, server {found.server_version})"
    single = len(options.scripts) == 1
    yield f"transaction type: {options.scripts[0].name if single else 'multiple scripts'}"
    yield f"scaling factor: {found.scale}"
    if found.partition_method:
        yield f"partition method: {found.partition_method}"
        yield f"partitions: {found.partitions}"
    yield f"query mode: {options.mode}"
    yield f"number of clients: {options.clients}"
    yield f"number of threads: {threads}"
    if options.max_tries:
        yield f"maximum number of tries: {options.max_tries}"


def _counts(options: Options, account: DriveResult) -> Iterator[str]:
    counts, attempted = account["counts"], _attempted(account)
    processed = "number of transactions actually processed"
    if options.duration_s:
        yield f"duration: {options.duration_s} s"
        yield f"{processed}: {counts['done']}"
    else:
        yield f"number of transactions per client: {options.transactions}"
        yield f"{processed}: {counts['done']}/{(options.transactions or 0) * options.clients}"
    yield from _failed(options, _all_outcomes(account), attempted)
    if counts["done"] + counts["skipped"] > 0 and options.latency_limit_ms:
        if options.rate_per_s:
            yield f"number of transactions skipped: {_share(counts['skipped'], attempted)}"
        late = f"{account['late']}/{counts['done']} ({_percent(account['late'], max(1, counts['done']))}%)"
        yield f"number of transactions above the {options.latency_limit_ms:.1f} ms latency limit: {late}"


def _latency(options: Options, account: DriveResult) -> Iterator[str]:
    response, failures = account["response"], _failures(account)
    if failures and not options.detailed:
        # As pgbench: what cannot be distinguished is one average.
        average_ms = 1e3 * _seconds(account) * options.clients / _attempted(account)
        yield f"latency average = {average_ms:.3f} ms (including failures)"
    elif response["count"]:
        yield f"latency average = {response['mean_ns'] / 1e6:.3f} ms"
        if options.detailed:
            yield f"latency stddev = {response['stddev_ns'] / 1e6:.3f} ms"
    lag = account["lag"]
    if lag and lag["count"]:
        average, highest = lag["mean_ns"] / 1e6, lag["max_ns"] / 1e6
        yield f"rate limit schedule lag: avg {average:.3f} (max {highest:.3f}) ms"


def _speed(options: Options, account: DriveResult) -> Iterator[str]:
    tps = account["counts"]["done"] / _seconds(account)
    connect = account["connect"]
    if options.connect:
        if connect["latency"]["count"]:
            yield f"average connection time = {connect['latency']['mean_ns'] / 1e6:.3f} ms"
        yield f"tps = {tps:.6f} (including reconnection times)"
    else:
        yield f"initial connection time = {connect['wall_ns'] / 1e6:.3f} ms"
        yield f"tps = {tps:.6f} (without initial connection time)"


def _script(options: Options, account: DriveResult, number: int) -> Iterator[str]:
    script, measured = options.scripts[number], account["scripts"][number]
    done, outcomes = measured["counts"]["done"], account["details"]["scripts"][number]
    attempted, total = done + _failed_count(outcomes), account["counts"]["done"]
    speed = f"tps = {done / _seconds(account):.6f}"
    if options.emulate >= _DETAILED_FROM:
        done, total = attempted, _attempted(account)
    targeted = 100 * script.weight / sum(s.weight for s in options.scripts)
    share = f"{100 * done / total:.1f}" if total else "NaN"
    yield f"SQL script {number + 1}: {script.name}"
    yield f" - weight: {script.weight} (targets {targeted:.1f}% of total)"
    if options.emulate >= _DETAILED_FROM:
        yield f" - {done} transactions ({share}% of total)"
        if done:
            yield f" - number of transactions actually processed: {measured['counts']['done']} ({speed})"
    else:
        yield f" - {done} transactions ({share}% of total, {speed})"
    if done or options.emulate < _DETAILED_FROM:
        for line in _failed(options, outcomes, attempted):
            yield f" - {line}"
    service = measured["service"]
    if service["count"]:
        yield f" - latency average = {service['mean_ns'] / 1e6:.3f} ms"
        yield f" - latency stddev = {service['stddev_ns'] / 1e6:.3f} ms"


def _commands(
    options: Options,
    account: DriveResult,
    number: int,
    commands: Sequence[Mapping[str, Any]],
    earlier: Sequence[Sequence[Mapping[str, Any]]],
) -> Iterator[str]:
    counted = " and failures" if options.max_tries == 1 else ", failures and retries"
    yield f"{' - ' if len(options.scripts) > 1 else ''}statement latencies in milliseconds{counted}:"
    repeated = account["details"]["repeated"]
    first = sum(len(others) for others in earlier)
    gap = " " if options.emulate >= _DETAILED_FROM else "  "
    measured = {s["index"]: s for s in account["statements"] if s["script"] == number}
    for index, command in enumerate(commands):
        statement = measured.get(index)
        latency_ms = _latency_ms(statement, account["details"]["times"][first + index])
        again = repeated[first + index]
        failed = statement["failed"] - again if statement else 0
        retries = "" if options.max_tries == 1 else f"{again:10d}  "
        yield f"   {latency_ms:11.3f}  {failed:10d}{gap}{retries}{_first_line(command['text'])}"


def _latency_ms(statement: Mapping[str, Any] | None, time: Mapping[str, int]) -> float:
    """Return a command's mean; readers expect a number, also of what never ran."""
    if statement is not None and statement["service"]["count"]:
        return float(statement["service"]["mean_ns"]) / 1e6
    return time["sum_ns"] / time["count"] / 1e6 if time["count"] else 0.0


def _percentiles(account: DriveResult) -> Iterator[str]:
    count, lag = account["response"]["count"], account["lag"]
    supported = [p for p in PERCENTILES if count * (1 - p / 100) >= SUPPORT - 1e-6]
    left_out = [f"p{percentile:g}" for percentile in PERCENTILES if percentile not in supported]
    if supported:
        figures = _figures(account["details"]["response_ns"], supported)
        yield f" - response time of {count} transactions: {figures}"
    if left_out:
        yield f" - too few samples ({count}) for {', '.join(left_out)}"
    if supported and lag and lag["count"]:
        yield f" - lag of the rate's schedule: {_figures(account['details']['lag_ns'], supported)}"


def _figures(percentiles: Mapping[str, int], wanted: Sequence[float]) -> str:
    return ", ".join(f"p{p:g} = {percentiles[f'{p:g}'] / 1e6:.3f} ms" for p in wanted)


def _failed(options: Options, outcomes: Mapping[str, int], attempted: int) -> Iterator[str]:
    """Lines about failures and retries, of a script or of all."""
    yield f"number of failed transactions: {_share(_failed_count(outcomes), attempted)}"
    if options.failures_detailed:
        yield f"number of serialization failures: {_share(outcomes['serialization'], attempted)}"
        yield f"number of deadlock failures: {_share(outcomes['deadlock'], attempted)}"
        if options.continue_on_error or options.reconnect:
            yield f"number of other failures: {_share(outcomes['other'], attempted)}"
    if options.max_tries != 1:
        yield f"number of transactions retried: {_share(outcomes['retried'], attempted)}"
        yield f"total number of retries: {outcomes['retries']}"


def _all_outcomes(account: DriveResult) -> dict[str, int]:
    scripts = account["details"]["scripts"]
    return {name: sum(outcomes[name] for outcomes in scripts) for name in scripts[0]}


def _failed_count(outcomes: Mapping[str, int]) -> int:
    return outcomes["serialization"] + outcomes["deadlock"] + outcomes["other"]


def _failures(account: DriveResult) -> int:
    return _failed_count(_all_outcomes(account))


def _attempted(account: DriveResult) -> int:
    counts = account["counts"]
    return int(counts["done"] + counts["skipped"] + _failures(account))


def _seconds(account: DriveResult) -> float:
    lasted_ns: int = account["end_ns"] - account["measure_ns"]
    return max(1, lasted_ns) / 1e9


def _percent(part: int, whole: int) -> str:
    # Of nothing there is no share: pgbench prints C's word for that.
    return f"{100 * part / whole:.3f}" if whole else "NaN"


def _share(part: int, whole: int) -> str:
    return f"{part} ({_percent(part, whole)}%)"


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].rstrip()
