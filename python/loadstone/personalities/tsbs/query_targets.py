"""Where queries are run: what --target names, or the hosts of TSBS's flags."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import conninfo as libpq

from loadstone.engines import engine as engine_named
from loadstone.errors import LoadstoneError
from loadstone.host.open_files import make_room_for
from loadstone.personalities.tsbs.query_replies import ask_postgres, explained
from loadstone.target import open_target, parse_targets
from loadstone.target.opening import wire_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.engine.control import Control
    from loadstone.engine.wire import WireEngine
    from loadstone.personalities.tsbs.flags import Values
    from loadstone.target import OpenTarget, Target

_BY_FLAGS = ("hosts", "port", "user", "pass", "db-name", "postgres")
_NOT_FROM_STRING = re.compile(r"(host|dbname|user)=\S*\b")
"""What TSBS takes out of --postgres: it has flags of its own for these."""
_LOAD_HOSTS = re.compile(r"local:|[a-z]+://")
"""So the names of load hosts begin; those of servers do not."""
_EXTENSION = "select 1 as one from pg_extension where extname = 'timescaledb'"


@dataclass(frozen=True, slots=True)
class Place:
    """One target, which may be several hosts that share the queries."""

    targets: tuple[Target, ...]
    named: bool
    """Whether the user named the engine; TSBS's flags do not."""


def load_hosts_of(values: Values) -> str | None:
    """Return what `--hosts` says where it names load hosts, in place of TSBS's servers."""
    text = values.text("hosts")
    return text if _LOAD_HOSTS.match(text) else None


def places_of(values: Values) -> list[Place]:
    """Return where to run, one place after the other. Raises LoadstoneError."""
    text = values.text("target")
    load_hosts = load_hosts_of(values)
    if not text:
        hosts = ["localhost"] if load_hosts else values.text("hosts").split(",")
        return [Place(parse_targets(_conninfo(values, host) for host in hosts), named=False)]
    clash = sorted((set(_BY_FLAGS) & values.given) - ({"hosts"} if load_hosts else set()))
    if clash:
        raise LoadstoneError(f"--target and --{clash[0]} exclude each other", "Use only one of them.")
    return [Place((target,), named=True) for target in parse_targets(text.split())]


@contextmanager
def opened_at(place: Place, workers: int) -> Iterator[list[OpenTarget]]:
    """Open all hosts of a place; where TSBS's flags named them, look whether they have TimescaleDB."""
    make_room_for(workers)
    with ExitStack() as stack:
        targets = place.targets if place.named else map(_recognised, place.targets)
        yield [stack.enter_context(open_target(target, workers)) for target in targets]


def _recognised(target: Target) -> Target:
    engine, connection = engine_named(target.engine).wire, target.connection
    if engine is None or connection is None:
        return target
    with closing(engine.connect(connection)) as control:
        if not _has_timescale(control, engine):
            return target
    timescale = wire_engine("timescaledb")
    return replace(target, engine=timescale.name, url=timescale.shown_url(connection))


def _has_timescale(control: Control, engine: WireEngine) -> bool:
    try:
        return control.execute(_EXTENSION).fetchone() is not None
    except engine.errors:
        return False  # a relative that has no list of extensions


@dataclass(frozen=True, slots=True)
class PostgresAsker:
    """A server of PostgreSQL's family, asked through psycopg, so that answers can be shown as they come."""

    opened: OpenTarget
    engine: WireEngine
    explain: bool
    arrow: bool = False

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a failing query raises."""
        return self.engine.errors

    def connect(self, name: str) -> Control:
        """Open one worker's connection."""
        assert self.opened.connection is not None, "reached by the wire protocol"  # noqa: S101
        return self.engine.connect(replace(self.opened.connection, application_name=name))

    def answer(self, connection: Control, sql: str) -> Any:
        """Run a query, or show its plan."""
        return ask_postgres(connection, explained(sql) if self.explain else sql)

    def cut_off(self, connection: Control, name: str) -> None:
        """Cancel the query in flight."""
        del name
        if isinstance(connection, psycopg.Connection):
            connection.cancel_safe(timeout=1.0)


def _conninfo(values: Values, host: str) -> str:
    further = _NOT_FROM_STRING.sub("", values.text("postgres"))
    try:
        given: dict[str, Any] = dict(libpq.conninfo_to_dict(further))
    except psycopg.ProgrammingError:  # its words may hold the password
        raise LoadstoneError(
            "libpq does not accept --postgres as a connection string", "Write name=value name=value."
        ) from None
    given |= {"host": host, "dbname": values.text("db-name"), "user": values.text("user")}
    given |= {"port": values.text("port")} if values.text("port") else {}
    given |= {"password": values.text("pass")} if values.text("pass") else {}
    return libpq.make_conninfo("", **given)
