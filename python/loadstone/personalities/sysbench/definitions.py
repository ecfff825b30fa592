"""The options: names, kinds and defaults are those of sysbench 1.0.20, what they say is ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "int", "size", "double", "string", "list", "file"]
SHAPES: dict[Kind, str] = {
    "bool": "[=on|off]",
    "int": "=N",
    "size": "=SIZE",
    "double": "=N",
    "string": "=STRING",
    "list": "=[LIST,...]",
    "file": "=FILENAME",
}
"""How a value is shown behind the name of its option."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option; a default of None is not shown."""

    name: str
    description: str
    default: str | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options with the heading under which `--help` shows them."""

    heading: str
    options: tuple[Option, ...]
    gap: bool = False
    """An empty line follows the heading."""


GENERAL = OptionGroup(
    "General options:",
    (
        Option("threads", "clients, each with connections of its own", "1", "int"),
        Option("events", "end after so many events of all clients together; 0: no such end", "0", "int"),
        Option("time", "end after so many seconds; 0: no such end", "10", "int"),
        Option(
            "forced-shutdown",
            "seconds, or N% of --time, that events in flight have after the end; off: all they need",
            "off",
            "string",
        ),
        Option("thread-stack-size", "accepted; clients are not threads here", "64K", "size"),
        Option("rate", "events due in a second, of all clients together; 0: one after the other", "0", "int"),
        Option("report-interval", "print figures every so many seconds; 0: only at the end", "0", "int"),
        Option(
            "report-checkpoints",
            "print all statistics at these seconds after the start, and count from zero again",
            "",
            "list",
        ),
        Option("debug", "print more of what is done", "off", "bool"),
        Option("validate", "accepted; only built-in tests check anything", "off", "bool"),
        Option("help", "print this text and exit", "off", "bool"),
        Option("version", "print which sysbench this is compatible with, and exit", "off", "bool"),
        Option("config-file", "file with lines NAME=VALUE", None, "file"),
        Option("tx-rate", "old name of --rate", "0", "int"),
        Option("max-requests", "old name of --events", "0", "int"),
        Option("max-time", "old name of --time", "0", "int"),
        Option("num-threads", "old name of --threads", "1", "int"),
    ),
)
RANDOM = OptionGroup(
    "Pseudo-Random Numbers Generator options:",
    (
        Option(
            "rand-type", "distribution of numbers: uniform, gaussian, special or pareto", "special", "string"
        ),
        Option("rand-spec-iter", "numbers averaged for one (gaussian and special)", "12", "int"),
        Option("rand-spec-pct", "percent of the range that special numbers come from", "1", "int"),
        Option("rand-spec-res", "percent of all numbers that are special", "75", "int"),
        Option("rand-seed", "seed of all random numbers; 0: a new one each time", "0", "int"),
        Option("rand-pareto-h", "shape of the pareto distribution", "0.2", "double"),
    ),
)
VERBOSITY = OptionGroup(
    "Log options:", (Option("verbosity", "from 0 (what ends a run) to 5 (all)", "3", "int"),)
)
LOG = OptionGroup(
    "",
    (
        Option("percentile", "percentile of latencies to print, 1 to 100; 0: none", "95", "int"),
        Option("histogram", "print the distribution of latencies", "off", "bool"),
    ),
)
DATABASE = OptionGroup(
    "General database options:",
    (
        Option("db-driver", "mysql or pgsql", "mysql", "string"),
        Option("db-ps-mode", "prepared statements: auto or disable", "auto", "string"),
        Option("db-debug", "print more of what is done with the database", "off", "bool"),
    ),
    gap=True,
)
MYSQL = OptionGroup(
    "mysql options:",
    (
        Option("mysql-host", "hosts, which connections take in turns", "localhost", "list"),
        Option("mysql-port", "ports, which connections take in turns", "3306", "list"),
        Option("mysql-socket", "unix sockets, for localhost", None, "list"),
        Option("mysql-user", "user", "sbtest", "string"),
        Option("mysql-password", "password", "", "string"),
        Option("mysql-db", "database", "sbtest", "string"),
        Option("mysql-ssl", "encrypt connections", "off", "bool"),
        Option("mysql-ssl-cipher", "accepted; the cipher is negotiated", "", "string"),
        Option("mysql-compression", "accepted; nothing is compressed", "off", "bool"),
        Option("mysql-debug", "accepted; there is no client library to trace", "off", "bool"),
        Option(
            "mysql-ignore-errors",
            "errors after which an event is run again, by number, or all",
            "1213,1020,1205",
            "list",
        ),
        Option("mysql-dry-run", "answer all statements without a server", "off", "bool"),
    ),
)
PGSQL = OptionGroup(
    "pgsql options:",
    (
        Option("pgsql-host", "PostgreSQL server host", "localhost", "string"),
        Option("pgsql-port", "PostgreSQL server port", "5432", "int"),
        Option("pgsql-user", "PostgreSQL user", "sbtest", "string"),
        Option("pgsql-password", "PostgreSQL password", "", "string"),
        Option("pgsql-db", "PostgreSQL database name", "sbtest", "string"),
    ),
)
BEYOND = OptionGroup(
    "Options beyond sysbench:",
    (
        Option("report", "keep the run in this new folder, with a report", None, "string"),
        Option("percentiles", "print these percentiles below the results, e.g. 50,99,99.9", None, "list"),
        Option("hosts", "drive run from load hosts: local:N, ssh://H1,H2, tcp://HOST:8786", None, "string"),
        Option("warmup", "seconds before the measured time", None, "double"),
        Option(
            "thread-init-timeout",
            "seconds in which all clients must get ready after init(); 0: no limit",
            "30",
            "int",
        ),
        Option("load-threads", "threads of the driver; 0: one for each free core", "0", "int"),
        Option(
            "bulk-copy",
            "outside of runs, send rows of bulk inserts by COPY where that leaves the same table",
            "on",
            "bool",
        ),
        Option(
            "watch", "watch the server's machine: exporters (http://…, https://…), ssh://HOST", None, "list"
        ),
        Option("watch-token-file", "file with the bearer token for exporters", None, "string"),
        Option("watch-ca", "certificate authority to trust for exporters (PEM)", None, "string"),
        Option("live", "show the run in a browser while it continues", "off", "bool"),
        Option("live-port", "port of that page; 0: any that is free", "0", "int"),
        Option("openmetrics", "serve figures for Prometheus at [HOST:]PORT during the run", None, "string"),
    ),
)
GROUPS = (GENERAL, RANDOM, VERBOSITY, LOG, DATABASE, MYSQL, PGSQL, BEYOND)
DRIVERS = {"mysql": "MySQL and MariaDB", "pgsql": "PostgreSQL"}
BUILT_IN = {
    "fileio": "files",
    "cpu": "the processor",
    "memory": "memory",
    "threads": "the scheduler",
    "mutex": "locks",
}
"""sysbench's own tests of a machine, which there are none of here, and what they measure."""


def lines(options: tuple[Option, ...]) -> str:
    """Return the lines about options, with an empty one at the end."""
    width = max(len(o.name) + len(SHAPES[o.kind]) for o in options)
    text = ""
    for option in options:
        shown = f"{option.name}{SHAPES[option.kind]}"
        default = "" if option.default is None else f" [{option.default}]"
        text += f"  --{shown:<{width}} {option.description}{default}\n"
    return f"{text}\n"
