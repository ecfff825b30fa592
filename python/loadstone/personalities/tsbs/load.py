"""`loadstone tsbs load`: TSBS's tsbs_load_timescaledb and tsbs_load on Loadstone's driver, for every target.

docs/tsbs.md says what each flag came to, and where this differs from TSBS.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psycopg import conninfo as libpq

from loadstone import _core
from loadstone.engines import engine as engine_named
from loadstone.engines import engine_of_scheme, known_schemes
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.host.open_files import make_room_for
from loadstone.personalities.tsbs import load_flags, load_report
from loadstone.personalities.tsbs.flags import parse
from loadstone.personalities.tsbs.from_hosts import load_hosts, refuse_hosts
from loadstone.personalities.tsbs.observed import bullets, observation_of, observing_of, served
from loadstone.personalities.tsbs.records import records_folder, refuse_unwritable
from loadstone.signals import InterruptedRun, Signals
from loadstone.target import open_target, parse_target
from loadstone.target.opening import wire_engine
from loadstone.workload.tsbs.content import content_of
from loadstone.workload.tsbs.dataset import parse_time
from loadstone.workload.tsbs.load import TimeSeriesLoadOptions, perform_load, table_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from loadstone.model import Load
    from loadstone.personalities.tsbs.flags import Values
    from loadstone.target import OpenTarget, Target
    from loadstone.workload.tsbs.content import Content

    Write = Callable[[str], object]

PROGRAM = "loadstone tsbs load"
_SECOND_NS = 10**9
_REACHED_BY_FLAGS = ("host", "port", "user", "pass", "db-name")


def main(arguments: Sequence[str], out: Write, err: Write) -> int:
    """Load what the arguments say; results go to `out`, all else to `err`. Returns the exit status."""
    word = arguments[0] if arguments and not arguments[0].startswith("-") else None
    rest = load_flags.from_unified(arguments[1:]) if word is not None else list(arguments)
    values = parse(PROGRAM, load_flags.FLAGS, rest)
    target = _target(values, word)
    engine = engine_named(target.engine)
    load = load_flags.load_of(values, engine)
    for note in (*load_flags.notes(values, engine), *target.notes):
        err(f"{PROGRAM}: note: {note}\n")
    refuse_hosts(load, target, values)
    options, settings = _options(values), _settings(values.text("setting"))
    content = content_of(load)
    with Signals() as signals:
        if not values.on("do-load"):
            _refuse_observing(values)
            return _only_read(load, content, values, signals, out)
        order = _Order(load, target, values, replace(options, content=content), settings)
        return _load(order, signals, out, err)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be done, understood and not begun."""

    load: Load
    target: Target
    values: Values
    options: TimeSeriesLoadOptions
    settings: Mapping[str, str]


def _load(order: _Order, signals: Signals, out: Write, err: Write) -> int:
    values, load = order.values, order.load
    refuse_unwritable(values, "results-file")
    make_room_for(load.workers)
    with ExitStack() as stack:
        observer = stack.enter_context(observing_of(values, [order.target], PROGRAM, err))
        hosts = stack.enter_context(load_hosts(values, load, err))
        folder = stack.enter_context(records_folder(values.text("out")))
        _provide_database(order.target, values, err)
        opened = stack.enter_context(_opened(order))
        for note in (*opened.notes, *opened.engine.series.notes(load.tables, table_options(opened))):
            err(f"{PROGRAM}: note: {note}\n")
        err(f"{PROGRAM}: loading into {opened.label}\n")
        reporter = load_report.Reporter(values.number("reporting-period") / _SECOND_NS, out)
        begun_s = load_report.unix_s()

        def driven(account: dict[str, Any]) -> None:
            observer.over(account["state"])
            reporter.begin()
            out(load_report.summary_of(account))

        options = replace(order.options, on_loaded=driven, elsewhere=hosts(opened))
        with observer.measuring([served(opened)], "load"):
            account = perform_load(load, opened, folder, signals, observer.showing(reporter.show), options)
        loaded = account["load"]
        out(load_report.beyond(account, folder) + bullets(observer.lines()))
        _write_results(values, account, begun_s, out)
        observer.end(f"the load is {account['state']}")
        if values.on("keep") and (farewell := opened.farewell()):
            err(f"{farewell}\n")
    if signals.received is not None:
        err(f"{PROGRAM}: {load_report.what_is_there(loaded)}\n")
        raise InterruptedRun(signals.received)
    load_report.conclude(account)
    return ExitCode.OK


def _write_results(values: Values, account: dict[str, Any], begun_s: int, out: Write) -> None:
    if wanted := values.text("results-file"):
        out(f"Saving results json file to {wanted}\n")
        load_report.write_results(Path(wanted), values, account, begun_s)


def _refuse_observing(values: Values) -> None:
    if given := observation_of(values).given:
        raise LoadstoneError(
            f"{given[0]} follows a load, and --do-load=false has none", "Use only one of them."
        )


def _only_read(load: Load, content: Content, values: Values, signals: Signals, out: Write) -> int:
    """Make or read the rows and drop them, as with --do-load=false: TSBS counts no metrics then."""
    reporter = load_report.Reporter(values.number("reporting-period") / _SECOND_NS, out)
    begun = time.monotonic()
    reporter.begin()
    try:
        stream = _core.DataStream(json.dumps(content.data))
        while not load.limit_rows or stream.rows < load.limit_rows:
            left = load.limit_rows - stream.rows if load.limit_rows else load.batch_rows
            if stream.read(min(load.batch_rows, left)) is None:
                break
            reporter.show({"rows": stream.rows, "metrics": 0})
            signals.check()
    except _core.DriveError as error:
        raise LoadstoneError(*error.args) from error
    seconds = max(time.monotonic() - begun, 1e-9)
    out(load_report.summary(0, stream.rows, seconds, load.workers))
    out(f"\nread but not loaded: {stream.metrics} metrics ({stream.metrics / seconds:.2f} metrics/sec)\n")
    return ExitCode.OK


def _target(values: Values, word: str | None) -> Target:
    """Return where to load: what --target says, else TSBS's flags."""
    named = engine_of_scheme(word) if word is not None else None
    if word is not None and named is None:
        raise LoadstoneError(f"there is no target {word!r}", f"Targets: {', '.join(known_schemes())}.")
    text = values.text("target")
    if text:
        clash = sorted(set(_REACHED_BY_FLAGS) & values.given)
        if clash:
            raise LoadstoneError(f"--target and --{clash[0]} exclude each other", "Use only one of them.")
        target = parse_target(text)
        if named is None or named.name == target.engine:
            return target
        return replace(target, engine=named.name)
    if named is None:
        named = engine_named("timescaledb" if values.on("use-hypertable") else "postgres")
    elif named.name == "timescaledb" and not values.on("use-hypertable"):
        named = engine_named("postgres")
    target = parse_target(_conninfo(values))
    if target.connection is None:
        return target
    return replace(target, engine=named.name, url=wire_engine(named.name).shown_url(target.connection))


def _conninfo(values: Values) -> str:
    """Return TSBS's connection string: --postgres, with host, database and user of the other flags."""
    given = {name: value for name, value in _further(values.text("postgres")).items() if value is not None}
    given |= {"host": values.text("host"), "user": values.text("user"), "dbname": values.text("db-name")}
    if values.text("port"):
        given["port"] = values.text("port")
    if values.text("pass"):
        given["password"] = values.text("pass")
    return libpq.make_conninfo("", **given)


def _further(text: str) -> dict[str, Any]:
    try:
        return dict(libpq.conninfo_to_dict(text))
    except Exception as error:  # the text may hold a password, and libpq quotes it
        raise LoadstoneError(
            "libpq does not accept --postgres as a connection string", "Write name=value name=value."
        ) from error


def _provide_database(target: Target, values: Values, err: Write) -> None:
    """Create the database where it is missing. None is ever dropped."""
    engine, connection = engine_named(target.engine).wire, target.connection
    if engine is None or connection is None:
        return
    name = connection.database
    try:
        engine.connect(connection).close()
    except LoadstoneError as missing:
        if not values.on("do-create-db") or not engine.create_database(
            connection, values.text("admin-db-name")
        ):
            raise missing from None
        err(f"{PROGRAM}: the database {name} was created\n")
        return
    if values.on("do-abort-on-exist"):
        raise LoadstoneError(f'database "{name}" exists: aborting.', "Remove --do-abort-on-exist.")


@contextmanager
def _opened(order: _Order) -> Iterator[OpenTarget]:
    values = order.values
    storage = Path(values.text("storage")) if values.text("storage") else None
    clients, settings = order.load.workers, order.settings
    with open_target(
        order.target, clients, storage=storage, settings=settings, keep=values.on("keep")
    ) as opened:
        with closing(opened.connect("loadstone")) as control:
            opened.engine.refuse_read_only(control)
        yield opened


def _settings(text: str) -> dict[str, str]:
    found = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise LoadstoneError(f"{pair!r} is not name=value", "Write --setting=name=value,name=value.")
        found[name] = value
    return found


def _options(values: Values) -> TimeSeriesLoadOptions:
    if values.on("resume") and values.on("replace"):
        raise LoadstoneError("--resume and --replace exclude each other", "Use only one of them.")
    return TimeSeriesLoadOptions(
        schema=None,
        replace=values.on("replace"),
        resume=values.on("resume"),
        make_tables=values.on("create-metrics-table"),
        verify=not values.on("no-verify"),
        span_us=_span(values),
        interval_s=1.0,
        io=values.text("io"),  # type: ignore[arg-type]
    )


def _span(values: Values) -> tuple[int, int] | None:
    """Return the span that the user states, for data that does not say it itself."""
    if not {"timestamp-start", "timestamp-end"} <= values.chosen:
        return None
    start, end = parse_time(values.text("timestamp-start")), parse_time(values.text("timestamp-end"))
    if end <= start:
        raise LoadstoneError("--timestamp-end is not after --timestamp-start", "Set a later one.")
    return start // 1000, -(-end // 1000)
