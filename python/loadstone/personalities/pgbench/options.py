"""pgbench's command line: the grammar is getopt_long's, the meaning and the complaints are pgbench 15's."""

from __future__ import annotations

import getopt
import math
import os
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from loadstone.model import RATE_MAX_PER_S
from loadstone.personalities.observation.options import ObservationOptions
from loadstone.personalities.pgbench import rates
from loadstone.personalities.pgbench.complaint import PROGRAM, AnswerGivenError, ComplaintError
from loadstone.personalities.pgbench.contradictions import check_together
from loadstone.personalities.pgbench.emulation import d_is_database, emulated
from loadstone.personalities.pgbench.initialization.settings import HANDLERS as INIT_HANDLERS
from loadstone.personalities.pgbench.initialization.settings import InitSettings
from loadstone.personalities.pgbench.scripts import (
    SCRIPTS_MAX,
    Script,
    builtin_list,
    builtin_source,
    from_builtin,
    from_file,
)
from loadstone.personalities.pgbench.slo.options import HANDLERS as SLO_HANDLERS
from loadstone.personalities.pgbench.slo.options import SloOptions
from loadstone.personalities.pgbench.texts import help_text, version_text
from loadstone.personalities.pgbench.values import INT_MAX, integer, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loadstone.model import Pace, QueryMode

_TRY_HELP = f'Try "{PROGRAM} --help" for more information.'
_MODES: tuple[QueryMode, ...] = ("simple", "extended", "prepared")
_SEEDS = 2**64
_PORT_MAX = 2**16 - 1

Kind = Literal["here", "initialization"]


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """One option of pgbench: what it is for, and whether it takes a value."""

    long: str
    short: str = ""
    takes_value: bool = False
    kind: Kind = "here"


def _specs(kind: Kind, text: str) -> list[OptionSpec]:
    found = []
    for word in text.split():
        short, _, long = word.rstrip("=").rpartition(":")
        found.append(OptionSpec(long, short, word.endswith("="), kind))
    return found


# In pgbench's order: a complaint about an ambiguous name lists the possibilities so.
OPTIONS = (
    *_specs("here", "b:builtin= c:client= C:connect D:define= f:file="),
    *_specs("initialization", "F:fillfactor="),
    *_specs("here", "h:host="),
    *_specs("initialization", "i:initialize I:init-steps="),
    *_specs("here", "j:jobs= l:log L:latency-limit= n:no-vacuum p:port= P:progress= M:protocol="),
    *_specs("initialization", "q:quiet"),
    *_specs("here", "r:report-per-command R:rate= s:scale= S:select-only N:skip-some-updates T:time="),
    *_specs("here", "t:transactions= U:username= v:vacuum-all"),
    *_specs("initialization", "unlogged-tables tablespace= index-tablespace="),
    *_specs("here", "sampling-rate= aggregate-interval= progress-timestamp log-prefix="),
    *_specs("initialization", "foreign-keys"),
    *_specs("here", "random-seed= show-script="),
    *_specs("initialization", "partitions= partition-method="),
    *_specs("here", "failures-detailed max-tries= verbose-errors exit-on-abort continue-on-error debug"),
    *_specs("here", "d:dbname= emulate= out= report= progress-percentiles hosts="),
    *_specs("here", "warmup= ramp-up= connect-rate= reconnect"),
    *_specs("here", "slo= slo-errors= slo-require= slo-max-trials="),
    *_specs("here", "watch= watch-token-file= watch-ca= live live-port= openmetrics="),
)
_LONG = {option.long: option for option in OPTIONS}
_SHAPE = {"warmup", "ramp-up", "connect-rate", "reconnect"}
_SEEN = {"watch", "watch-token-file", "watch-ca", "live", "live-port", "openmetrics"}
_BEYOND = _SHAPE | _SEEN | {*SLO_HANDLERS, "emulate", "out", "report", "progress-percentiles", "hosts"}
"""Options that pgbench does not have: to be written in full, so that its own can be shortened as ever."""


@dataclass(slots=True)
class Options:
    """What the command line asks for."""

    scripts: list[Script] = field(default_factory=list)
    clients: int = 1
    threads: int = 1
    transactions: int | None = None
    """Of each client."""
    duration_s: int | None = None
    mode: QueryMode = "simple"
    rate_per_s: float | None = None
    """Of a rate that changes, the highest."""
    varying: Pace | None = None
    warmup_s: float = 0.0
    ramp_up_s: float = 0.0
    connect_rate_per_s: float | None = None
    reconnect: bool = False
    latency_limit_ms: float | None = None
    progress_s: int | None = None
    scale: int | None = None
    variables: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    seed_given: bool = False
    connect: bool = False
    per_command: bool = False
    vacuum: bool = True
    vacuum_all: bool = False
    host: str = ""
    port: str = ""
    user: str = ""
    database: str | None = None
    arguments: tuple[str, ...] = ()
    """The command line, as it was given."""
    out: Path | None = None
    report: Path | None = None
    hosts: str | None = None
    slo: SloOptions = field(default_factory=SloOptions)
    seen: ObservationOptions = field(default_factory=ObservationOptions)
    """What watches the server's machine, and shows the run while it goes on."""
    emulate: int = 17
    """Major version of the pgbench that is imitated."""
    log: bool = False
    log_prefix: str | None = None
    sampling_rate: float | None = None
    aggregate_s: int | None = None
    progress_timestamp: bool = False
    progress_percentiles: bool = False
    failures_detailed: bool = False
    max_tries: int = 1
    """Tries of a transaction; 0 is without limit."""
    verbose_errors: bool = False
    exit_on_abort: bool = False
    continue_on_error: bool = False
    debug: bool = False
    initialize: bool = False
    init: InitSettings = field(default_factory=InitSettings)
    initialization: bool = False
    """An option that only `-i` understands was given."""
    benchmarking: bool = False

    @property
    def builtin(self) -> bool:
        """Whether pgbench's own tables are used."""
        return any(script.builtin for script in self.scripts)

    @property
    def detailed(self) -> bool:
        """Whether pgbench would have measured latencies."""
        return bool(self.rate_per_s or self.progress_s or self.latency_limit_ms)


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Understand the arguments; raises ComplaintError, or AnswerGivenError when a text was requested."""
    version = emulated(arguments, environment)
    _answer_first(arguments, version)
    options = Options(emulate=version, arguments=tuple(arguments))
    _set_seed(options, environment.get("PGBENCH_RANDOM_SEED"), "PGBENCH_RANDOM_SEED environment variable")
    short = _short(version)
    given, rest = _split(arguments, short)
    for written, value in given:
        option = short[written[1:]] if len(written) == 2 else _LONG[written[2:]]  # noqa: PLR2004 - "-x"
        _take(options, option, value)
    _take_database(options, rest)
    _check_kind(options)
    if not options.initialize:
        if not options.scripts:
            options.scripts.append(from_builtin("tpcb-like"))
        check_together(options)
    return options


def _answer_first(arguments: Sequence[str], version: int) -> None:
    if arguments and arguments[0] in {"-?", "--help"}:
        raise AnswerGivenError(out=help_text(version))
    if arguments and arguments[0] in {"-V", "--version"}:
        raise AnswerGivenError(out=version_text(version))


def _short(version: int) -> dict[str, OptionSpec]:
    short = {option.short: option for option in OPTIONS if option.short}
    if not d_is_database(version):
        short["d"] = _LONG["debug"]
    return short


def _split(
    arguments: Sequence[str], short: Mapping[str, OptionSpec]
) -> tuple[list[tuple[str, str]], list[str]]:
    letters = "".join(letter + (":" if option.takes_value else "") for letter, option in short.items())
    written = {argument.partition("=")[0] for argument in arguments}
    names = [
        o.long + ("=" if o.takes_value else "")
        for o in OPTIONS
        if o.long not in _BEYOND or f"--{o.long}" in written
    ]
    try:
        return getopt.gnu_getopt(list(arguments), letters, names)
    except getopt.GetoptError as error:
        raise ComplaintError(_as_in_c(error, arguments), _TRY_HELP, bare=True) from None


def _as_in_c(error: getopt.GetoptError, arguments: Sequence[str]) -> str:
    """Return the C library's words for what Python's getopt found."""
    name = error.opt
    is_short = error.msg.startswith("option -") and not error.msg.startswith("option --")
    if is_short:
        needs = "requires" in error.msg
        return f"option requires an argument -- '{name}'" if needs else f"invalid option -- '{name}'"
    if "requires argument" in error.msg:
        return f"option '--{name}' requires an argument"
    if "must not have" in error.msg:
        return f"option '--{name}' doesn't allow an argument"
    if "unique" in error.msg:
        possible = " ".join(
            f"'--{o.long}'" for o in OPTIONS if o.long.startswith(name) and o.long not in _BEYOND
        )
        return f"option '--{name}' is ambiguous; possibilities: {possible}"
    written = next((a for a in arguments if a.partition("=")[0] == f"--{name}"), f"--{name}")
    return f"unrecognized option '{written}'"


def _take(options: Options, option: OptionSpec, value: str) -> None:
    if option.long == "initialize":
        options.initialize = True
    elif option.long in SLO_HANDLERS:
        options.benchmarking = True
        SLO_HANDLERS[option.long](options.slo, value)
    elif option.kind == "initialization":
        options.initialization = True
        INIT_HANDLERS[option.long](options.init, value)
    else:
        options.benchmarking |= option.long not in _COMMON
        _HANDLERS[option.long](options, value)


def _take_database(options: Options, rest: list[str]) -> None:
    if options.database is None and rest:
        options.database = rest.pop(0)
    if rest:
        raise ComplaintError(f'too many command-line arguments (first is "{rest[0]}")', _TRY_HELP)


def _check_kind(options: Options) -> None:
    if options.initialize and options.benchmarking:
        raise ComplaintError("some of the specified options cannot be used in initialization (-i) mode")
    if options.initialize:
        options.init.check()
        return
    if options.initialization:
        raise ComplaintError("some of the specified options cannot be used in benchmarking mode")


def _positive(complaint: str, text: str) -> float:
    # The number at the beginning counts, as for C's atof.
    found = re.match(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
    value = float(found.group()) if found else 0.0
    if not (value > 0.0 and math.isfinite(value)):
        raise ComplaintError(f'{complaint}: "{text}"')
    return value


def _rate(options: Options, text: str) -> None:
    options.varying = rates.varying(text) if rates.changes(text) else None
    rate = options.varying.rate_per_s if options.varying else None
    options.rate_per_s = rate or _positive("invalid rate limit", text)
    rates.refuse_impossible(text, options.rate_per_s)


def _above_zero(what: str, text: str, most: float) -> float:
    """Read an option that pgbench does not have: the whole text must be a number."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= most:
        raise ComplaintError(f'invalid {what}: "{text}"', f"Use a number above 0, at most {most:g}.")
    return value


def _sampling(options: Options, text: str) -> None:
    options.sampling_rate = _positive("invalid sampling rate", text)
    if options.sampling_rate > 1.0:
        raise ComplaintError(f'invalid sampling rate: "{text}"')


def _max_tries(options: Options, text: str) -> None:
    # As C's atoi reads it: the number at the beginning, or 0.
    found = re.match(r"\s*[+-]?[0-9]+", text)
    tries = whole(found.group()) if found else 0
    if not 0 <= tries <= INT_MAX:
        raise ComplaintError(f'invalid number of maximum tries: "{text}"')
    options.max_tries = tries


def _weighted(text: str) -> tuple[str, int]:
    name, at, weight_text = text.rpartition("@")
    if not at:
        return text, 1
    if not re.fullmatch(r"\s*[+-]?[0-9]+", weight_text):
        raise ComplaintError(f"invalid weight specification: @{weight_text}")
    weight = whole(weight_text)
    if not 0 <= weight <= INT_MAX:
        raise ComplaintError(f"weight specification out of range (0 .. {INT_MAX}): {weight}")
    return name, weight


def _add(options: Options, script: Script) -> None:
    if len(options.scripts) >= SCRIPTS_MAX:
        raise ComplaintError(f"at most {SCRIPTS_MAX} SQL scripts are allowed")
    options.scripts.append(script)


def _builtin(options: Options, text: str) -> None:
    if text == "list":
        raise AnswerGivenError(err=builtin_list())
    name, weight = _weighted(text)
    _add(options, from_builtin(name, weight))


def _file(options: Options, text: str) -> None:
    name, weight = _weighted(text)
    _add(options, from_file(name, weight))


def _define(options: Options, text: str) -> None:
    name, _, value = text.partition("=")
    if not name or not value:
        raise ComplaintError(f'invalid variable definition: "{text}"')
    if not re.fullmatch(r"[A-Za-z0-9_\x80-\U0010ffff]+", name):
        raise ComplaintError(f'option: invalid variable name: "{name}"')
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ComplaintError(f'the variable "{name}" is not UTF-8 text') from None
    options.variables[name] = value


def _mode(options: Options, text: str) -> None:
    found = next((mode for mode in _MODES if mode == text), None)
    if found is None:
        raise ComplaintError(f'invalid query mode (-M): "{text}"')
    options.mode = found


def _set_seed(options: Options, text: str | None, source: str) -> None:
    options.seed_given = text is not None
    if text is None or text == "time":
        options.seed = time.monotonic_ns() // 1000
    elif text == "rand":
        options.seed = int.from_bytes(os.urandom(8))
    elif re.fullmatch(r"\s*[+-]?[0-9]+", text):
        value = whole(text)
        # As scanf does: too large is the largest, below zero wraps around.
        options.seed = value % _SEEDS if abs(value) < _SEEDS else _SEEDS - 1
    else:
        raise ComplaintError(
            f'unrecognized random seed option "{text}"',
            detail='Expecting an unsigned integer, "time" or "rand".',
            further=f"error while setting random seed from {source}",
        )


def _show_script(_: Options, name: str) -> None:
    raise AnswerGivenError(err=builtin_source(name))


def _setter(name: str, convert: Callable[[str], object]) -> Callable[[Options, str], None]:
    def handle(options: Options, text: str) -> None:
        setattr(options, name, convert(text))

    return handle


def _number(field_name: str, option: str) -> Callable[[Options, str], None]:
    return _setter(field_name, lambda text: integer(option, text))


def _seen(name: str, convert: Callable[[str], object]) -> Callable[[Options, str], None]:
    def handle(options: Options, text: str) -> None:
        setattr(options.seen, name, convert(text))

    return handle


def _flag(name: str, *, value: bool = True) -> Callable[[Options, str], None]:
    return _setter(name, lambda _: value)


_COMMON = {"host", "port", "username", "dbname", "no-vacuum", "scale", "jobs", "debug", "emulate"}
"""Options that initialization understands too; `-j` only ours: pgbench has one connection for it."""

_HANDLERS: dict[str, Callable[[Options, str], None]] = {
    "builtin": _builtin,
    "file": _file,
    "select-only": lambda options, _: _add(options, from_builtin("select-only")),
    "skip-some-updates": lambda options, _: _add(options, from_builtin("simple-update")),
    "client": _number("clients", "-c/--clients"),
    "jobs": _number("threads", "-j/--jobs"),
    "transactions": _number("transactions", "-t/--transactions"),
    "time": _number("duration_s", "-T/--time"),
    "progress": _number("progress_s", "-P/--progress"),
    "scale": _number("scale", "-s/--scale"),
    "connect": _flag("connect"),
    "report-per-command": _flag("per_command"),
    "no-vacuum": _flag("vacuum", value=False),
    "vacuum-all": _flag("vacuum_all"),
    "define": _define,
    "protocol": _mode,
    "rate": _rate,
    "latency-limit": _setter("latency_limit_ms", lambda text: _positive("invalid latency limit", text)),
    "random-seed": lambda options, text: _set_seed(options, text, "--random-seed option"),
    "show-script": _show_script,
    "host": _setter("host", str),
    "port": _setter("port", str),
    "username": _setter("user", str),
    "dbname": _setter("database", str),
    "out": _setter("out", Path),
    "report": _setter("report", Path),
    "hosts": _setter("hosts", str),
    "watch": lambda options, text: options.seen.watch.append(text),
    "watch-token-file": _seen("watch_token_file", Path),
    "watch-ca": _seen("watch_ca", Path),
    "live": _seen("live", lambda _: True),
    "live-port": _seen("live_port", lambda text: integer("--live-port", text, 1, _PORT_MAX)),
    "openmetrics": _seen("openmetrics", str),
    "emulate": lambda _options, _text: None,  # it was read before
    "log": _flag("log"),
    "log-prefix": _setter("log_prefix", str),
    "sampling-rate": _sampling,
    "aggregate-interval": _number("aggregate_s", "--aggregate-interval"),
    "progress-timestamp": _flag("progress_timestamp"),
    "progress-percentiles": _flag("progress_percentiles"),
    "failures-detailed": _flag("failures_detailed"),
    "max-tries": _max_tries,
    "verbose-errors": _flag("verbose_errors"),
    "exit-on-abort": _flag("exit_on_abort"),
    "continue-on-error": _flag("continue_on_error"),
    "debug": _flag("debug"),
    "reconnect": _flag("reconnect"),
    "warmup": _setter("warmup_s", lambda text: _above_zero("warm-up", text, INT_MAX)),
    "ramp-up": _setter("ramp_up_s", lambda text: _above_zero("ramp-up", text, INT_MAX)),
    "connect-rate": _setter(
        "connect_rate_per_s", lambda text: _above_zero("connect rate", text, RATE_MAX_PER_S)
    ),
}
