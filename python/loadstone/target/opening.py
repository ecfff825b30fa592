"""Opening a target: a private server is started, any other is looked at before anything is touched."""

from __future__ import annotations

import ipaddress
import socket
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import psutil

from loadstone.engine import SCHEMA
from loadstone.engines import all_engines
from loadstone.engines import engine as engine_named
from loadstone.errors import LoadstoneError
from loadstone.model import PrivateServer
from loadstone.private_server import EmbeddedServer, PrivateFolder, ServerSpec
from loadstone.private_server.os_user import server_account
from loadstone.private_server.provision import EMPTY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from loadstone.engine import Engine, Identity
    from loadstone.engine.control import Control
    from loadstone.engine.library.engine import Database, Place
    from loadstone.engine.wire import WireEngine
    from loadstone.model import Connection, TargetName
    from loadstone.private_server import Adoption, Provision
    from loadstone.target import Target


_NO_DEMANDS = PrivateServer()


@dataclass(frozen=True, slots=True)
class OpenTarget:
    """A target that answers, is what it claims to be, and has room for the clients asked for."""

    id: str
    label: str
    name: TargetName
    """What labels are made of that tell it from the other targets of a run."""
    url: str
    """Without password."""
    engine: Engine
    connection: Connection | None
    """How it is reached by the wire protocol, as the user gave it; None where it is not."""
    connect: Callable[[str], Control]
    """Open a control connection of this name; unqualified names mean what is in the schema `loadstone`."""
    connect_as_user: Callable[[], Control]
    """Open a control connection whose unqualified names lead where those of the user's own connection do."""
    identity: Identity
    local: bool
    """Whether the server runs on this machine."""
    server: EmbeddedServer | None = None
    build: str | None = None
    """What reports must say of a private server's build."""
    notes: tuple[str, ...] = ()
    memory_limit_bytes: int | None = None
    """Limit of memory and page cache of a private server; None when it has none."""
    place: Place | None = None
    database: Database | None = None
    """What its engine has opened at that place."""

    def client_connection(self, schema: str | None = SCHEMA) -> Connection | None:
        """Return how the driver's clients connect by the wire protocol; None: they go through a library.

        Unqualified names lead to `schema` first; None: where those of the user's own connection do.
        """
        if self.connection is None:
            return None
        return self.engine.client_connection(self.connection, schema)

    @property
    def private(self) -> bool:
        """Whether the database is ours alone, and goes away with all that it holds."""
        return self.server is not None or (self.place is not None and self.place.private)

    @property
    def data_directory(self) -> Path | None:
        """Where the database's files lie, when they are ours to see."""
        if self.database is not None:
            return self.database.data_directory
        return self.server.data_directory if self.server is not None else None

    def farewell(self) -> str | None:
        """Say how to use and remove what was asked to stay; None when there is nothing."""
        if self.server is not None and self.server.is_running():
            return self.server.farewell()
        engine = self.engine.library or self.engine.wire
        if engine is None or self.database is None or self.place is None or not self.place.needs_folder:
            return None
        return engine.farewell(self.place, self.database)


@contextmanager
def open_target(  # noqa: PLR0913 - all but the first two are for private servers, by name
    target: Target,
    clients: int,
    *,
    storage: Path | None = None,
    settings: Mapping[str, str] | None = None,
    keep: bool = False,
    demands: PrivateServer = _NO_DEMANDS,
    adopt: Adoption | None = None,
    provision: Provision = EMPTY,
) -> Iterator[OpenTarget]:
    """Open a target for so many clients; a private server ends with the context.

    `storage` and `keep` are for private servers: where the data lies, whether the server stays when the
    context ends. So are a scenario's `demands`, `adopt`, a killed run's data to go on with, and
    `provision`, which data the server starts with. `settings` are set on private servers, and for our
    sessions on others; a target's own win. Raises LoadstoneError for everything that would keep the clients
    from working.
    """
    settings = {**(settings or {}), **target.settings}
    if target.place is not None:
        with _open_place(
            target, clients, target.place, _folder(target.place, storage, keep, adopt), settings
        ) as opened:
            yield _without_limit(opened, demands)
        return
    engine = wire_engine(target.engine)
    if target.embedded is not None:
        order = ServerSpec(
            target.embedded,
            clients,
            storage,
            settings,
            keep,
            memory_bytes=demands.memory_bytes,
            wished=demands.settings,
            adopt=adopt,
            provision=provision,
        )
        with EmbeddedServer(order) as server:
            yield _open_embedded(target, engine, server, clients)
        return
    connection = _connection(target)
    if settings:
        connection = engine.with_settings(connection, settings)
    yield _look(target, engine, connection, clients)


def wire_engine(name: str) -> WireEngine:
    """Return an engine that is reached by a wire protocol; another is a TypeError."""
    engine = engine_named(name).wire
    if engine is None:
        raise TypeError(f"{name} is not reached by a wire protocol")
    return engine


def _folder(place: Place, storage: Path | None, keep: bool, adopt: Adoption | None) -> PrivateFolder | None:  # noqa: FBT001
    if not place.needs_folder:
        return None
    user = server_account() if place.serves_as_user else None
    return PrivateFolder(storage, keep=keep, adopt=adopt, user=user)


def _without_limit(opened: OpenTarget, demands: PrivateServer) -> OpenTarget:
    """Note that a private server has no limit of memory where the scenario wants one."""
    if demands.memory_bytes is None or opened.connection is None:
        return opened
    note = (
        f"the memory of a private {opened.engine.title} is not limited to {demands.memory_bytes:,} bytes as "
        "requested: Loadstone limits only PostgreSQL's"
    )
    return replace(opened, notes=(*opened.notes, note))


def _open_place(
    target: Target, clients: int, place: Place, folder: PrivateFolder | None, settings: Mapping[str, str]
) -> AbstractContextManager[OpenTarget]:
    if wire := engine_named(target.engine).wire:
        assert folder is not None, "only private servers are opened at a place"  # noqa: S101
        return _open_private(target, clients, wire, place, folder, settings)
    return _open_by_driver(target, clients, place, folder, settings)


@contextmanager
def _open_private(
    target: Target,
    clients: int,
    engine: WireEngine,
    place: Place,
    private: PrivateFolder,
    settings: Mapping[str, str],
) -> Iterator[OpenTarget]:
    with private as folder, closing(engine.open(place, folder.path, settings, clients)) as database:
        opened = _look(target, engine, database.connection, clients)
        yield replace(
            opened,
            label=f"{engine.label(opened.identity)}, {target.label}{_own_settings(target)}",
            connect=database.connect,
            connect_as_user=database.connect_as_user,
            local=True,
            notes=(*target.notes, *folder.reaped),
            place=place,
            database=database,
        )


@contextmanager
def _open_by_driver(
    target: Target, clients: int, place: Place, private: PrivateFolder | None, settings: Mapping[str, str]
) -> Iterator[OpenTarget]:
    engine = engine_named(target.engine).library
    if engine is None:
        raise TypeError(f"{target.engine} is not opened by a client library")
    with ExitStack() as stack:
        folder = stack.enter_context(private) if private is not None else None
        if settings and not (place.private or engine.sets_sessions):
            raise LoadstoneError(
                f"--setting sets nothing on a {engine.title} server of your own: {target.url}",
                "Set it on the server, and remove it here.",
            )
        database = stack.enter_context(closing(engine.open(place, folder.path if folder else None, settings)))
        with closing(database.connect("loadstone")) as control:
            identity = engine.identify(control)
            # A server that does not tell its limits to everybody refuses nobody here.
            with suppress(*engine.errors):
                engine.refuse_too_many_clients(control, clients)
        yield OpenTarget(
            id=target.id,
            label=f"{engine.label(identity)}, {target.label}{_own_settings(target)}",
            name=target.name(engine.label(identity)),
            url=target.url,
            engine=engine,
            connection=None,
            connect=database.connect,
            connect_as_user=lambda: database.connect("loadstone"),
            identity=identity,
            local=place.server is None or is_local(place.server.host),
            notes=(*target.notes, *(folder.reaped if folder else ())),
            place=place,
            database=database,
        )


def _open_embedded(target: Target, engine: WireEngine, server: EmbeddedServer, clients: int) -> OpenTarget:
    if ":" in server.order.name:
        engine = engine.of_build(server.connection, all_engines().values())
    opened = _look(target, engine, server.connection, clients)
    return replace(
        opened,
        label=f"{engine.label(opened.identity)} ({'system' if ':' in server.order.name else 'embedded'})"
        + _own_settings(target),
        url=engine.shown_url(server.connection),
        local=True,
        server=server,
        build=server.build,
        notes=(*target.notes, *server.reaped, *server.notes),
        memory_limit_bytes=server.memory_limit_bytes,
    )


def _own_settings(target: Target) -> str:
    words = target.settings_text
    return f", {words}" if words else ""


def _look(target: Target, engine: WireEngine, connection: Connection, clients: int) -> OpenTarget:
    with closing(engine.connect(connection)) as control:
        identity = engine.identify(control)
        engine.refuse_too_many_clients(control, clients)
        engine = engine.with_functions(control)
    return OpenTarget(
        id=target.id,
        label=f"{engine.label(identity)} at {target.label}{_own_settings(target)}",
        name=target.name(engine.label(identity)),
        url=target.url,
        engine=engine,
        connection=connection,
        connect=lambda name: engine.connect(replace(engine.with_schema(connection), application_name=name)),
        connect_as_user=lambda: engine.connect(connection),
        identity=identity,
        local=is_local(connection.host),
        notes=target.notes,
    )


def _connection(target: Target) -> Connection:
    assert target.connection is not None, "a target is embedded or has a connection"  # noqa: S101
    return target.connection


def is_local(host: str) -> bool:
    """Return whether a host is this machine: a socket folder, loopback, or an address of ours."""
    if host.startswith("/"):
        return True
    try:
        addresses = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    ours = {entry.address for entries in psutil.net_if_addrs().values() for entry in entries}
    return any(ipaddress.ip_address(found.split("%")[0]).is_loopback or found in ours for found in addresses)
