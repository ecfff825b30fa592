"""`loadstone tsbs generate-data`: TSBS's tsbs_generate_data, by all cores, and into more formats."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from loadstone.errors import ExitCode, LoadstoneError
from loadstone.model import UseCase
from loadstone.personalities.tsbs.flags import Flag, Values, parse
from loadstone.signals import InterruptedRun, Signals, end_as_by_sigpipe
from loadstone.visible import Drawn
from loadstone.workload.tsbs.dataset import parse_time
from loadstone.workload.tsbs.generation import FILE_FORMATS, make

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[str], object]

PROGRAM = "loadstone tsbs generate-data"
USE_CASES = get_args(UseCase)
STREAMS = {
    "timescaledb": "timescaledb",
    "clickhouse": "timescaledb",
    "influx": "influx",
    "victoriametrics": "influx",
}
"""TSBS's formats that are one stream, with what the core calls them: some are the same bytes."""
FOLDERS = {"csv": "csv", "copy-binary": "copy_binary", "copy-text": "copy_text"}
"""Formats of one file a table, by the core."""
FORMATS = (*STREAMS, *FILE_FORMATS, *FOLDERS)
_NOT_HERE = ("akumuli", "cassandra", "cratedb", "mongo", "prometheus", "questdb", "siridb", "timestream")
_SECOND_NS = 10**9
_INTERVAL_NS = 10 * _SECOND_NS
_GRACE_S = 2.0
"""How long a write that is running at a signal may still take."""

FLAGS = (
    Flag("compress", "string", "", "Compress the output: gzip, zstd"),
    Flag("debug", "int", 0, "Control level of debug output"),
    Flag(
        "file", "string", "", "Write the output to this path (a folder for formats with one file per table)"
    ),
    Flag("format", "string", "", f"Format to generate. (choices: {', '.join(FORMATS)})"),
    Flag("initial-scale", "uint", 0, "Devices that report in the first epoch, 0 = all of them"),
    Flag(
        "interleaved-generation-group-id",
        "uint",
        0,
        "Which of the interleaved groups of rows to write, from 0",
    ),
    Flag("interleaved-generation-groups", "uint", 1, "Number of interleaved groups"),
    Flag("log-interval", "duration", _INTERVAL_NS, "Time between two rows of one device", "10s"),
    Flag("max-data-points", "uint", 0, "Maximum number of rows, 0 = no limit"),
    Flag("max-metric-count", "uint", 100, "Maximum number of fields of a host; devops-generic only"),
    Flag(
        "native",
        "bool",
        default=False,
        help="Data of the same kind that can be generated in parallel, from any point on; not TSBS's values",
    ),
    Flag("overwrite", "bool", default=False, help="Replace the file or folder of --file"),
    Flag("profile-file", "string", "", "Accepted for compatibility with TSBS; nothing is written"),
    Flag("scale", "uint", 1, "Number of hosts or trucks"),
    Flag("seed", "int", 0, "Seed of all values, 0 = from the clock (the seed is shown)"),
    Flag("slice", "string", "", "Generate slice i of n, from 0, as i/n; with --native only"),
    Flag("threads", "uint", 0, "Threads that format and compress, 0 = one per core"),
    Flag("timestamp-end", "string", "2016-01-02T00:00:00Z", "End of the time range, exclusive (RFC3339)"),
    Flag("timestamp-start", "string", "2016-01-01T00:00:00Z", "Beginning of the time range (RFC3339)"),
    Flag("use-case", "string", "", f"Use case to generate. (choices: {', '.join(USE_CASES)})"),
)


def main(arguments: Sequence[str], out: Write, err: Write) -> int:
    """Generate what the arguments say; the data goes to a file or to standard output.

    Returns 0; a reader of our standard output that goes away ends the process as SIGPIPE does.
    """
    del out  # data is bytes: the core writes them itself
    values = parse(PROGRAM, FLAGS, arguments)
    _check(values)
    document = _data(values, err)
    _check_data(document)
    if values.text("profile-file"):
        err(f"{PROGRAM}: --profile-file is accepted for compatibility with TSBS, but no profile is written\n")
    with Signals() as signals:
        account = _make(values, document, signals, err)
    if account["state"] == "interrupted":
        raise InterruptedRun(signals.received or signal.SIGINT)
    if account["state"] == "reader_gone":
        end_as_by_sigpipe()
    if sys.stderr.isatty() or values.number("debug") > 0:
        err(_summary(account))
    return ExitCode.OK


def _make(values: Values, document: dict[str, Any], signals: Signals, err: Write) -> dict[str, Any]:
    format_, compress = values.text("format"), values.text("compress")
    if format_ in FILE_FORMATS:
        from loadstone.workload.tsbs.files import write_tables  # noqa: PLC0415 - pyarrow, for its formats alone

        folder = values.text("file")
        return write_tables(
            document, format_, folder, signals, compress=compress, overwrite=values.on("overwrite")
        )
    sys.stdout.flush()
    if values.text("file") and not Path(values.text("file")).absolute().parent.is_dir():
        raise LoadstoneError(
            f"the folder of '{values.text('file')}' does not exist",
            "Create it, or choose another file with --file.",
        )
    output = {"path": values.text("file")} if values.text("file") else {"fd": sys.stdout.fileno()}
    specification = {
        "data": document,
        "format": STREAMS.get(format_) or FOLDERS[format_],
        "output": output | {"overwrite": values.on("overwrite")},
        "compress": compress or "none",
        "threads": values.number("threads") or None,
    }
    show = _progress(err) if sys.stderr.isatty() and values.text("file") else None
    return make(specification, signals, show, _GRACE_S)


def _check(values: Values) -> None:
    format_, use_case = values.text("format"), values.text("use-case")
    if format_ in _NOT_HERE:
        raise LoadstoneError(f"TSBS's format {format_} is not supported", f"Choose {_or(FORMATS)}.")
    if format_ not in FORMATS:
        raise LoadstoneError(f"invalid format specified: {format_!r}", f"Choose {_or(FORMATS)}: --format=…")
    if use_case not in USE_CASES:
        raise LoadstoneError(
            f"invalid use case specified: {use_case!r}", f"Choose {_or(USE_CASES)}: --use-case=…"
        )
    if values.text("compress") not in {"", "gzip", "zstd"}:
        raise LoadstoneError(f"unknown compression {values.text('compress')!r}", "Choose gzip or zstd.")
    if format_ not in STREAMS and not values.text("file"):
        raise LoadstoneError(
            f"the format {format_} has one file per table and cannot be written to standard output",
            "Choose a new folder: --file=FOLDER.",
        )
    if values.text("compress") and not values.text("file") and sys.stdout.isatty():
        raise LoadstoneError(
            "compressed data cannot be written to a terminal", "Redirect it to a file or a pipe."
        )
    if values.number("threads") > 256:  # noqa: PLR2004 - as in the message
        raise LoadstoneError(f"--threads={values.number('threads')} is too many", "Use at most 256.")
    _check_native(values)


def _check_native(values: Values) -> None:
    if values.text("slice") and not values.on("native"):
        raise LoadstoneError(
            "TSBS's data cannot be generated in slices: each value depends on all before it",
            "Add --native, or use --interleaved-generation-groups.",
        )
    if not values.on("native"):
        return
    if values.text("format") in STREAMS:
        raise LoadstoneError(
            f"native data cannot be written in TSBS's format {values.text('format')}",
            f"Choose {_or([*FILE_FORMATS, *FOLDERS])}, or remove --native.",
        )
    only_tsbs = {
        "initial-scale",
        "interleaved-generation-group-id",
        "interleaved-generation-groups",
        "max-data-points",
        "max-metric-count",
    }
    for name in sorted(only_tsbs & values.given):
        raise LoadstoneError(f"--{name} works only with TSBS's data", "Remove it, or remove --native.")


def _data(values: Values, err: Write) -> dict[str, Any]:
    common = {
        "use_case": values.text("use-case"),
        "seed": values.number("seed") or _seed_by_clock(err),
        "scale": values.number("scale"),
        "start_ns": parse_time(values.text("timestamp-start")),
        "end_ns": parse_time(values.text("timestamp-end")),
        "interval_ns": values.number("log-interval"),
    }
    if values.on("native"):
        return {"kind": "native", **common, "slice": _slice(values.text("slice"))}
    return {
        "kind": "tsbs",
        **common,
        "initial_scale": values.number("initial-scale"),
        "max_points": values.number("max-data-points"),
        "max_metrics": values.number("max-metric-count"),
        "group": _small(values, "interleaved-generation-group-id"),
        "groups": _small(values, "interleaved-generation-groups"),
    }


def _check_data(document: dict[str, Any]) -> None:
    """Refuse what the core would refuse too, in words of these flags."""
    if document["scale"] == 0:
        raise LoadstoneError("scale cannot be 0", "Set the number of hosts or trucks with --scale.")
    if document["end_ns"] < document["start_ns"]:
        raise LoadstoneError(
            "the time range ends before it begins", "Set --timestamp-end after --timestamp-start."
        )
    if document["interval_ns"] <= 0:
        raise LoadstoneError(
            "the log interval must be above zero",
            "Set --log-interval to the time between two rows of one device, such as 10s.",
        )


def _small(values: Values, name: str) -> int:
    value = values.number(name)
    if value >= 2**32:
        raise LoadstoneError(f"--{name}={value} is too many", "Use a number below 4294967296.")
    return value


def _seed_by_clock(err: Write) -> int:
    seed = time.time_ns() % _SECOND_NS or 1  # noqa: TID251 - as TSBS does
    err(f"{PROGRAM}: the seed is {seed}, from the clock; --seed={seed} generates the same data again\n")
    return seed


def _slice(text: str) -> list[int]:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text or "0/1")
    if found is None or int(found[1]) >= int(found[2]):
        raise LoadstoneError(f"--slice={text} is not a slice", "Write i/n with i from 0 to n - 1: 0/8.")
    return [int(found[1]), int(found[2])]


def _or(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _progress(err: Write) -> Callable[[dict[str, Any]], None]:
    def show(progress: dict[str, Any]) -> None:
        err(Drawn(f"\r{_figures(progress, progress['elapsed_ns'])}\x1b[K"))

    return show


def _summary(account: dict[str, Any]) -> str:
    end = "\r\x1b[K" if sys.stderr.isatty() else ""
    return Drawn(f"{end}{_figures(account, account['duration_ns'])}\n")


def _figures(found: dict[str, Any], took_ns: int) -> str:
    seconds = max(took_ns / _SECOND_NS, 1e-9)
    rows, metrics, size = found["rows"], found["metrics"], found["bytes"]
    return (
        f"{rows} rows, {metrics} metrics, {size} bytes in {seconds:.1f} s"
        f" ({rows / seconds / 1e6:.2f} M rows/s, {metrics / seconds / 1e6:.1f} M metrics/s)"
    )
