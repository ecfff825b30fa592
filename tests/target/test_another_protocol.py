"""A family of engines with another wire protocol is parsed and opened without a change to `target/`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from loadstone.engine.wire import WireEngine
from loadstone.engines import all_engines
from loadstone.model import Connection
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Mapping


class Abacus(WireEngine):
    """An engine whose protocol knows a host, a user and nothing else."""

    name = "abacus"
    title = "Abacus"
    schemes = ("abacus",)

    def __init__(self) -> None:
        self.connected: list[Connection] = []

    def resolve(self, text: str) -> tuple[Connection, tuple[str, ...]]:
        user, _, host = text.removeprefix("//").partition("@")
        return Connection(host, 7, user, "beads", password="secret"), ("beads are slow",)

    def address(self, connection: Connection) -> str:
        return f"{connection.host} ({connection.port} rods)"

    def shown_url(self, connection: Connection) -> str:
        return f"abacus://{connection.user}@{connection.host}"

    target_url = shown_url

    def connect(self, connection: Connection) -> Any:
        self.connected.append(connection)
        return SimpleNamespace(close=lambda: None)

    def with_schema(self, connection: Connection, schema: str = "loadstone") -> Connection:
        del schema
        return connection

    def with_settings(self, connection: Connection, settings: Mapping[str, str]) -> Connection:
        raise NotImplementedError(connection, settings)

    def version(self, connection: Any) -> Any:
        del connection
        return {"version": "3", "version_text": "Abacus 3"}

    def refuse_too_many_clients(self, connection: Any, clients: int) -> None:
        assert clients == 5, connection


@pytest.fixture
def abacus(monkeypatch: pytest.MonkeyPatch) -> Abacus:
    monkeypatch.setattr(Abacus, "__abstractmethods__", frozenset())  # those that no opening needs
    engine = Abacus()  # type: ignore[abstract]
    monkeypatch.setitem(all_engines(), engine.name, engine)
    return engine


def test_its_targets_are_understood_and_opened_by_its_own_methods(abacus: Abacus) -> None:
    target = parse_target("abacus://ann@10.255.255.1")
    assert (target.id, target.url) == ("abacus-10-255-255-1-beads", "abacus://ann@10.255.255.1")
    assert target.label == "10.255.255.1 (7 rods), database beads"
    assert target.without_password() == "abacus://ann@10.255.255.1"
    assert target.notes == ("beads are slow",)
    with open_target(target, clients=5) as opened:
        assert opened.label == f"Abacus 3 at {target.label}"
        assert (opened.url, opened.engine, opened.local) == (target.url, abacus, False)
        opened.connect("watcher")
    assert [connection.application_name for connection in abacus.connected] == ["loadstone", "watcher"]
