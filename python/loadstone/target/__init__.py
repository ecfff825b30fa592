"""What `--target` names: a private server by its short name, or any server by URL or libpq string."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.engines import all_engines, engine_of_scheme, engine_of_short_name
from loadstone.errors import LoadstoneError
from loadstone.model import TargetName
from loadstone.private_server import NEWEST, check_short_name, is_short_name, short_names
from loadstone.results.redact import redact
from loadstone.target.opening import OpenTarget, is_local, open_target, wire_engine
from loadstone.target.settings import settings_text, shown_settings, split_settings, with_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from loadstone.engine.library.engine import Place
    from loadstone.model import Connection

__all__ = [
    "OpenTarget",
    "Target",
    "is_local",
    "open_target",
    "parse_target",
    "parse_targets",
    "server_target",
]

DEFAULT_ENGINE = "postgres"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_DRIVER_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_ID_MAX = 60
_PRIVATE = "private server "


@dataclass(frozen=True, slots=True)
class Target:
    """One target as asked for, nothing touched yet: one of `embedded`, `connection`, `place` is set."""

    id: str
    """Usable as a folder name, unique among the targets of a run."""
    label: str
    url: str
    """Without password."""
    engine: str
    embedded: str | None = None
    """The short name of a private server."""
    connection: Connection | None = None
    place: Place | None = None
    """Where the database is that its engine opens."""
    notes: tuple[str, ...] = ()
    """What the user should know of how the target was understood."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of this target alone: they win over those of all targets."""

    def name(self, title: str) -> TargetName:
        """Return what it can be named by; `title` is the engine, with its version once that is known."""
        reached = self.connection or (self.place.server if self.place is not None else None)
        if reached is None:
            given = self.label.removeprefix(_PRIVATE) if self.place is None else self.place.label
            return TargetName(title, given=given, settings=self.settings_text)
        return TargetName(
            title,
            reached.host,
            str(reached.port),
            reached.database,
            reached.user,
            redact(reached.parameters.get("options", "")),
            settings=self.settings_text,
        )

    @property
    def settings_text(self) -> str:
        """Its own settings as labels show them; empty where it has none."""
        return settings_text(self.settings)

    def without_password(self) -> str:
        """Return a text that names the same target wherever it is given, but for its secrets."""
        return with_settings(self._place_without_password(), shown_settings(self.settings))

    def _place_without_password(self) -> str:
        if self.connection is not None:
            return wire_engine(self.engine).target_url(self.connection)
        if self.place is not None and self.place.path is not None:
            return f"{self.place.url.partition(':')[0]}:{self.place.path.absolute()}"
        if self.embedded is not None and "/" in self.embedded:
            prefix, _, path = self.embedded.partition(":")
            return f"{prefix}:{Path(path).expanduser().absolute()}"
        return split_settings(self.url)[0]


def parse_targets(texts: Iterable[str]) -> tuple[Target, ...]:
    """Understand all targets of a run, and give each an id of its own."""
    targets: list[Target] = []
    for target in _with_ports([parse_target(text) for text in texts]):
        taken = {other.id for other in targets}
        ids = (target.id if number == 1 else f"{target.id}-{number}" for number in range(1, len(taken) + 2))
        targets.append(replace(target, id=next(found for found in ids if found not in taken)))
    return tuple(targets)


def _with_ports(targets: Sequence[Target]) -> list[Target]:
    """Add the port to the ids of servers that share one and differ by port."""
    ports: dict[str, set[int]] = {}
    for target in targets:
        if target.connection is not None:
            ports.setdefault(target.id, set()).add(target.connection.port)
    found = []
    for target in targets:
        connection = target.connection
        if connection is not None and len(ports[target.id]) > 1:
            words = (*_whereabouts(target.engine, connection), str(connection.port), connection.database)
            found.append(replace(target, id=_slug("-".join((*words, target.settings_text)))))
        else:
            found.append(target)
    return found


def parse_target(text: str) -> Target:
    """Understand the text of one `--target`; raises LoadstoneError that says what could have been written."""
    place, settings = split_settings(text.strip())
    target = _parse_place(place)
    if not settings:
        return target
    named = replace(target, url=with_settings(target.url, shown_settings(settings)), settings=settings)
    return replace(named, id=_slug(f"{target.id}-{named.settings_text}"))


def _parse_place(text: str) -> Target:
    if is_short_name(text):
        return _embedded(text)
    opened = _opened_by_engine(text)
    if opened is not None:
        return opened
    url = _SCHEME.fullmatch(text)
    if url:
        engine = engine_of_scheme(url.group(1))
        if engine is None:
            raise LoadstoneError(f"there is no engine for '{url.group(1)}://'", _known())
        return _server(engine.name, f"//{url.group(2)}")
    if "=" in text:
        return _server(DEFAULT_ENGINE, text)
    # Something like user:password@host must not be repeated.
    shown = "what was given" if "@" in text else f"'{text}'"
    raise LoadstoneError(f"{shown} is not a target", _known())


def _opened_by_engine(text: str) -> Target | None:
    """Understand a target that its engine opens: a client library's, or a private server."""
    named, engine = _DRIVER_SCHEME.fullmatch(text), engine_of_short_name(text)
    if named is not None:
        engine = engine_of_scheme(named[1])
    place = engine.place(named[2] if named else "") if engine is not None else None
    if engine is None or place is None:
        return None
    return Target(_slug(place.id), place.label, place.url, engine.name, place=place)


def _known() -> str:
    forms = ", ".join(form for engine in all_engines().values() for form in engine.target_forms)
    others = [name for engine in all_engines().values() for name in engine.short_names]
    return (
        f"Private servers: {', '.join((*short_names(), *others))}, pg:/path/to/bin, pg:system. "
        f"URLs: {forms}. "
        "libpq strings such as host=… dbname=… are understood too."
    )


def _embedded(name: str) -> Target:
    check_short_name(name)
    shown = f"pg{NEWEST}" if name == "pg" else name
    return Target(
        id=_slug(shown),
        label=_PRIVATE + shown,
        url=name,
        engine=DEFAULT_ENGINE,
        embedded=name,
    )


def _server(engine: str, text: str) -> Target:
    return server_target(engine, *wire_engine(engine).resolve(text))


def server_target(engine: str, connection: Connection, notes: tuple[str, ...] = ()) -> Target:
    """Return the target that is reached by this connection."""
    return Target(
        id=_slug("-".join((*_whereabouts(engine, connection), connection.database))),
        label=f"{wire_engine(engine).address(connection)}, database {connection.database}",
        url=wire_engine(engine).shown_url(connection),
        engine=engine,
        connection=connection,
        notes=notes,
    )


def _whereabouts(engine: str, connection: Connection) -> tuple[str, ...]:
    """Return how an id begins: with the engine where it is not the usual one, with the host if it has one."""
    by_socket = connection.host.startswith("/")
    if engine == DEFAULT_ENGINE:
        return ("socket",) if by_socket else (connection.host,)
    return (engine,) if by_socket else (engine, connection.host)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_ID_MAX] or "target"
