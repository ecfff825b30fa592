"""What a load prints: TSBS's lines to the byte, then what we know beyond them; and the results file."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError, RunFailedError, WrongAnswerError
from loadstone.results.json_files import redact_json
from loadstone.summary.histograms import Histogram, read_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from loadstone.personalities.tsbs.flags import Values
    from loadstone.workload.drive import Progress

HEADER = "time,per. metric/s,metric total,overall metric/s,per. row/s,row total,overall row/s\n"
PERCENTILES = (50.0, 95.0, 99.0)
_BYTES = ("B", "kB", "MB", "GB", "TB")
_KILO = 1024
_RUNNER = {
    "db-name": "text", "batch-size": "number", "workers": "number", "limit": "number", "do-load": "on",
    "do-create-db": "on", "do-abort-on-exist": "on", "reporting-period": "number", "hash-workers": "on",
    "no-flow-control": "on", "channel-capacity": "number", "insert-intervals": "text", "results-file": "text",
    "file": "text", "seed": "number",
}  # fmt: skip
"""TSBS's RunnerConfig, in its order, with the kind of each flag."""
_DISK_FULL = "53100"


def unix_s() -> int:
    """Return the wall clock's seconds since 1970, which TSBS's lines and files carry."""
    return int(time.time())  # noqa: TID251 - it is shown, not subtracted


class Reporter:
    """Prints a line of TSBS's each period."""

    def __init__(self, period_s: float, out: Callable[[str], object]) -> None:
        """Prepare; without a period, nothing is ever printed."""
        self._period_s = period_s
        self._out = out
        self._begun = self._before = 0.0
        self._metrics = self._rows = 0

    def begin(self) -> None:
        """Start the clock and print the header, once."""
        if self._begun:
            return
        self._begun = self._before = time.monotonic()
        if self._period_s > 0:
            self._out(HEADER)

    def show(self, progress: Progress) -> None:
        """Take the driver's totals; print when a period is over."""
        self.begin()
        if self._period_s > 0 and time.monotonic() - self._before >= self._period_s:
            self.line(int(progress.get("metrics") or 0), int(progress.get("rows") or 0))

    def line(self, metrics: int, rows: int) -> None:
        """Print one line of totals and rates."""
        now = time.monotonic()
        took, since = now - self._before, now - self._begun
        line = f"{unix_s()},{(metrics - self._metrics) / took:.2f},{metrics:E},{metrics / since:.2f},"
        rates = f"{(rows - self._rows) / took:.2f},{rows:E},{rows / since:.2f}" if rows else "-,-,-"
        self._out(f"{line}{rates}\n")
        self._metrics, self._rows, self._before = metrics, rows, now


def summary(metrics: int, rows: int, seconds: float, workers: int) -> str:
    """Return TSBS's last lines."""
    lines = f"\nSummary:\nloaded {metrics} metrics in {seconds:.3f}sec with {workers} workers "
    lines += f"(mean rate {metrics / seconds:.2f} metrics/sec)\n"
    if rows:
        lines += f"loaded {rows} rows in {seconds:.3f}sec with {workers} workers "
        lines += f"(mean rate {rows / seconds:.2f} rows/sec)\n"
    return lines


def summary_of(account: Mapping[str, Any]) -> str:
    """Return TSBS's last lines for a load."""
    load = account["load"]
    return summary(load["metrics"], load["rows"], seconds_of(account), account["clients"])


def seconds_of(account: Mapping[str, Any]) -> float:
    """Return how long a load took, from before the workers connect to the last answer, as TSBS counts."""
    connect_ns = (account.get("connect") or {}).get("wall_ns") or 0
    return float(max(1, account["end_ns"] - account["start_ns"] + connect_ns)) / 1e9


def beyond(account: Mapping[str, Any], folder: Path) -> str:
    """Return what Loadstone tells beyond TSBS."""
    return "\nbeyond TSBS, measured by loadstone:\n" + "".join(
        f" - {line}\n" for line in _lines(account, folder)
    )


def _lines(account: Mapping[str, Any], folder: Path) -> Iterator[str]:
    load = account["load"]
    yield from _latency(folder / "latency.hlog")
    if load["resumed"]["batches"]:
        resumed = load["resumed"]
        yield f"resumed: {resumed['batches']:,} batches with {resumed['rows']:,} rows had been loaded before"
    waited = ((load.get("source") or {}).get("wait_ns") or 0) / 1e9
    if waited:
        share = waited / (seconds_of(account) * max(1, account["clients"]))
        yield f"workers waited for rows {100 * share:.1f} % of their time"
    yield from _cpu(load["cpu"])
    if load.get("wal_bytes") is not None and load["rows"]:
        yield f"WAL: {_size(load['wal_bytes'])}, {load['wal_bytes'] / load['rows']:.1f} bytes a row"
    for table in load["tables_bytes"] or ():
        yield _table(table)
    if load["compression"]:
        yield f"compression: {load['compression']:.2f} to 1, including indexes"
    after_s = sum(statement["seconds"] for statement in load["after"])
    if load["after"]:
        yield f"after the load (not in the time above): {after_s:.3f} s for {len(load['after'])} statements"
    yield from _verdict(load)


def _latency(log: Path) -> Iterator[str]:
    histogram = Histogram()
    for line in read_log(log):
        if line.tag == "response":
            histogram.add(line.first, line.counts)
    if not histogram.count:
        return
    supported = [p for p in PERCENTILES if histogram.supports(p)]
    left_out = [f"p{p:g}" for p in PERCENTILES if p not in supported]
    figures = [f"p{p:g} = {(histogram.percentile_ns(p) or 0) / 1e6:.3f} ms" for p in supported]
    figures.append(f"max = {(histogram.percentile_ns(100.0) or 0) / 1e6:.3f} ms")
    few = f" (too few for {', '.join(left_out)})" if left_out else ""
    batches = "1 batch" if histogram.count == 1 else f"{histogram.count:,} batches"
    yield f"latency of {batches}: {', '.join(figures)}{few}"


def _cpu(cpu: Mapping[str, float | None] | None) -> Iterator[str]:
    if cpu is None or cpu["client_s"] is None:
        return
    client = f"client {cpu['client_s']:.2f} s"
    if cpu["in_process"]:
        yield f"CPU: {cpu['client_s']:.2f} s, of the database together with generating and sending rows"
    elif cpu["server_s"] is None:
        yield f"CPU: {client}; the server's cannot be seen from here"
    else:
        share = 100 * (cpu["client_share"] or 0.0)
        yield f"CPU: server {cpu['server_s']:.2f} s, {client} ({share:.1f} % of both)"


def _table(table: Mapping[str, Any]) -> str:
    line = f"table {table['name']}: {table['rows']:,} rows, {_size(table['table_bytes'])} and "
    line += f"{_size(table['index_bytes'])} of indexes"
    if table["bytes_per_row"]:
        line += f", {table['bytes_per_row']:.1f} bytes a row"
    if table["compression"]:
        line += f", compressed {table['compression']:.2f} to 1"
    if table["outside"]:
        line += f"; {table['outside']:,} rows are outside the time range of the partitions"
    return line


def _verdict(load: Mapping[str, Any]) -> Iterator[str]:
    if load["verified"]:
        yield f"verified: count and fingerprint of {len(load['checks'])} tables match the data"
    elif load["verified"] is None:
        yield "not verified"
    else:
        for check in load["checks"]:
            if not check["passed"]:
                yield f"WRONG: {check['name']}: expected {check['expected']}, found {check['actual']}"


def conclude(account: Mapping[str, Any]) -> None:
    """Raise what a load that did not end well is to be reported as."""
    load = account["load"]
    if account["state"] != "complete":
        raise RunFailedError(f"the load is incomplete: {_why(account)}", what_is_there(load))
    if load["verified"] is False:
        wrong = next(check for check in load["checks"] if not check["passed"])
        raise WrongAnswerError(
            f"the tables do not contain what was loaded: {wrong['name']}: expected {wrong['expected']}, "
            f"found {wrong['actual']}",
            "Do not use the figures above. The ledger is kept: a load that was resumed with other data "
            "ends like this.",
        )


def _why(account: Mapping[str, Any]) -> str:
    """Say why it broke off: the driver's reason, and the first error where that does not quote it."""
    errors = account["errors"]
    first = min(errors, key=lambda error: int(error["first_ns"])) if errors else None
    reason = str(account["reason"] or account["state"])
    if account.get("output_error"):
        return f"the results can no longer be recorded: {account['output_error']}"
    if first is None:
        return reason
    full = "the server's disk is full: " if first["sqlstate"] == _DISK_FULL else ""
    if first["message"] in reason:
        return full + reason
    return f"{full}{reason}: {first['message']} ({first['sqlstate']})"


def what_is_there(load: Mapping[str, Any]) -> str:
    """Say what a broken load has left, and how it goes on."""
    committed = load["committed"]
    if committed is None:
        return "The committed batches could not be read; --resume reads them, and loads the rest."
    return (
        f"{committed['batches']:,} batches with {committed['rows']:,} rows are committed; --resume "
        "loads the rest, with the same data and the same flags."
    )


def write_results(path: Path, values: Values, account: Mapping[str, Any], begun_s: int) -> None:
    """Write TSBS's results file, with our account beside."""
    load, seconds = account["load"], seconds_of(account)
    totals = {"metricRate": load["metrics"] / seconds}
    if load["rows"]:
        totals["rowRate"] = load["rows"] / seconds
    document = {
        "ResultFormatVersion": "0.1",
        "RunnerConfig": {name: getattr(values, kind)(name) for name, kind in _RUNNER.items()},
        "StartTime": begun_s,
        "EndTime": int(begun_s + seconds),
        "DurationMillis": int(seconds * 1000),
        "Totals": totals,
        "loadstone": {name: account[name] for name in ("state", "reason", "clients", "counts", "errors")}
        | {"load": load},
    }
    try:
        path.write_text(redact_json(json.dumps(document, indent=1)), encoding="utf-8")
    except OSError as error:
        raise LoadstoneError(
            f"the results cannot be written to {path}: {error.strerror}",
            "Choose another one with --results-file.",
        ) from error


def _size(size: float) -> str:
    for unit in _BYTES[:-1]:
        if abs(size) < _KILO:
            return f"{size:.1f} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= _KILO
    return f"{size:.1f} {_BYTES[-1]}"
