"""The results: pgbench 15's block, line by line, then what pgbench does not measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadstone import __version__
from loadstone.personalities.pgbench.complaint import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.personalities.pgbench.options import Options
    from loadstone.personalities.pgbench.server import ServerFacts
    from loadstone.summary.histograms import Histogram

RETRIABLE = frozenset({"40001", "40P01"})
"""Serialization failure and deadlock: what pgbench counts as a failed transaction."""

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)
_NONE = "-"
Account = dict[str, Any]


def aborting_errors(account: Account) -> list[Mapping[str, Any]]:
    """Return the errors that ended clients."""
    return [error for error in account["errors"] if error["sqlstate"] not in RETRIABLE]


def results(
    options: Options, found: ServerFacts, account: Account, commands: Sequence[Sequence[Mapping[str, Any]]]
) -> str:
    """Return pgbench's block; `commands` are those of each script, measured or not."""
    lines = [*_head(options, found, account), *_counts(options, account)]
    if _attempted(account) > 0:
        lines += [*_latency(options, account), *_speed(options, account)]
        for number in range(len(options.scripts)):
            if len(options.scripts) > 1:
                lines += _script(options, account, number)
            if options.per_command:
                lines += _commands(options, account, number, commands[number])
    return "".join(f"{line}\n" for line in lines)


def beyond(account: Account, responses: Histogram | None) -> str:
    """Return what pgbench does not print, under a heading of its own.

    `responses` is None when there were too few for any percentile.
    """
    lines = ["beyond pgbench, measured by loadstone:", *_percentiles(account, responses)]
    if account["counts"]["dropped"]:
        lines.append(f" - dropped: {account['counts']['dropped']} transactions were due and never started")
    lines += [
        f" - error {e['sqlstate']} (x {e['count']}): {_first_line(e['message'])}" for e in account["errors"]
    ]
    lines.append(f" - random seed: {account['seed']}")
    return "\n" + "".join(f"{line}\n" for line in lines)


def _head(options: Options, found: ServerFacts, account: Account) -> Iterator[str]:
    yield f"{PROGRAM} (loadstone {__version__}, server {found.server_version})"
    single = len(options.scripts) == 1
    yield f"transaction type: {options.scripts[0].name if single else 'multiple scripts'}"
    yield f"scaling factor: {found.scale}"
    if found.partition_method:
        yield f"partition method: {found.partition_method}"
        yield f"partitions: {found.partitions}"
    yield f"query mode: {options.mode}"
    yield f"number of clients: {options.clients}"
    yield f"number of threads: {account['threads']}"
    yield "maximum number of tries: 1"


def _counts(options: Options, account: Account) -> Iterator[str]:
    counts, attempted = account["counts"], _attempted(account)
    processed = "number of transactions actually processed"
    if options.duration_s:
        yield f"duration: {options.duration_s} s"
        yield f"{processed}: {counts['done']}"
    else:
        yield f"number of transactions per client: {options.transactions}"
        yield f"{processed}: {counts['done']}/{(options.transactions or 0) * options.clients}"
    yield f"number of failed transactions: {_share(_failures(account), attempted)}"
    if attempted and options.latency_limit_ms:
        if options.rate_per_s:
            yield f"number of transactions skipped: {_share(counts['skipped'], attempted)}"
        late = f"{account['late']}/{counts['done']} ({_percent(account['late'], max(1, counts['done']))}%)"
        yield f"number of transactions above the {options.latency_limit_ms:.1f} ms latency limit: {late}"


def _latency(options: Options, account: Account) -> Iterator[str]:
    response = account["response"]
    if response["count"]:
        yield f"latency average = {response['mean_ns'] / 1e6:.3f} ms"
        if options.detailed:
            yield f"latency stddev = {response['stddev_ns'] / 1e6:.3f} ms"
    lag = account["lag"]
    if lag and lag["count"]:
        average, highest = lag["mean_ns"] / 1e6, lag["max_ns"] / 1e6
        yield f"rate limit schedule lag: avg {average:.3f} (max {highest:.3f}) ms"


def _speed(options: Options, account: Account) -> Iterator[str]:
    tps = account["counts"]["done"] / _seconds(account)
    connect = account["connect"]
    if options.connect:
        if connect["latency"]["count"]:
            yield f"average connection time = {connect['latency']['mean_ns'] / 1e6:.3f} ms"
        yield f"tps = {tps:.6f} (including reconnection times)"
    else:
        yield f"initial connection time = {connect['wall_ns'] / 1e6:.3f} ms"
        yield f"tps = {tps:.6f} (without initial connection time)"


def _script(options: Options, account: Account, number: int) -> Iterator[str]:
    script, measured = options.scripts[number], account["scripts"][number]
    done, failed = measured["counts"]["done"], measured["counts"]["failed"]
    total = account["counts"]["done"]
    targeted = 100 * script.weight / sum(s.weight for s in options.scripts)
    share = f"{100 * done / total:.1f}" if total else "NaN"
    yield f"SQL script {number + 1}: {script.name}"
    yield f" - weight: {script.weight} (targets {targeted:.1f}% of total)"
    yield f" - {done} transactions ({share}% of total, tps = {done / _seconds(account):.6f})"
    yield f" - number of failed transactions: {_share(failed, done + failed)}"
    service = measured["service"]
    if service["count"]:
        yield f" - latency average = {service['mean_ns'] / 1e6:.3f} ms"
        yield f" - latency stddev = {service['stddev_ns'] / 1e6:.3f} ms"


def _commands(
    options: Options, account: Account, number: int, commands: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    yield f"{' - ' if len(options.scripts) > 1 else ''}statement latencies in milliseconds and failures:"
    measured = {s["index"]: s for s in account["statements"] if s["script"] == number}
    for index, command in enumerate(commands):
        statement = measured.get(index)
        count = statement["service"]["count"] if statement else 0
        figure = f"{statement['service']['mean_ns'] / 1e6:.3f}" if statement and count else _NONE
        failed = statement["failed"] if statement else 0
        yield f"   {figure:>11}  {failed:10d}  {_first_line(command['text'])}"


def _percentiles(account: Account, responses: Histogram | None) -> Iterator[str]:
    supported = [p for p in PERCENTILES if responses and responses.supports(p)]
    left_out = [f"p{percentile:g}" for percentile in PERCENTILES if percentile not in supported]
    if responses and supported:
        figures = (f"p{p:g} = {(responses.percentile_ns(p) or 0) / 1e6:.3f} ms" for p in supported)
        yield f" - response time of {responses.count} transactions: {', '.join(figures)}"
    if left_out:
        count = responses.count if responses else account["response"]["count"]
        yield f" - too few samples ({count}) for {', '.join(left_out)}"


def _failures(account: Account) -> int:
    return sum(error["count"] for error in account["errors"] if error["sqlstate"] in RETRIABLE)


def _attempted(account: Account) -> int:
    counts = account["counts"]
    return int(counts["done"] + counts["skipped"] + _failures(account))


def _seconds(account: Account) -> float:
    lasted_ns: int = account["end_ns"] - account["start_ns"]
    return max(1, lasted_ns) / 1e9


def _percent(part: int, whole: int) -> str:
    # Of nothing there is no share: pgbench prints C's word for that.
    return f"{100 * part / whole:.3f}" if whole else "NaN"


def _share(part: int, whole: int) -> str:
    return f"{part} ({_percent(part, whole)}%)"


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0].rstrip()
