"""Ctrl-C while something private is started or ended: it is raised when all is gone."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.interrupts import interrupt_at
from support.sandbox import make_base

from loadstone.private_server import EmbeddedServer, PrivateFolder, ServerSpec
from loadstone.private_server.registry import Registry
from loadstone.signals import InterruptedRun, Signals

if TYPE_CHECKING:
    from collections.abc import Iterator

REMOVALS = [(Registry, "write"), (shutil, "rmtree"), (Path, "unlink")]


@pytest.fixture
def storage(own_registry: None) -> Iterator[Path]:  # noqa: ARG001
    """Where private things are; it fails when anything of them is left."""
    base = make_base()
    yield base
    records = Path(os.environ["XDG_CACHE_HOME"], "loadstone", "servers")
    left = [*base.iterdir(), *records.iterdir()]
    shutil.rmtree(base)
    assert left == []


@pytest.mark.parametrize(("owner", "name"), REMOVALS)
def test_a_folder_is_gone(owner: Any, name: str, storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private = PrivateFolder(storage).__enter__()
    (private.path / "below").mkdir()
    for folder in (private.path, private.path / "below"):
        (folder / "file").write_text("text")
    interrupt_at(monkeypatch, owner, name)
    with Signals(), pytest.raises(InterruptedRun):
        private.close()


@pytest.mark.parametrize(("owner", "name"), [*REMOVALS, (EmbeddedServer, "_stop_process")])
def test_a_server_that_has_not_started_is_gone(
    owner: Any, name: str, storage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: EmbeddedServer) -> None:
        interrupt_at(monkeypatch, owner, name)
        raise OSError("no room for it")

    monkeypatch.setattr(EmbeddedServer, "_initdb", refused)
    with Signals(), pytest.raises(InterruptedRun), EmbeddedServer(ServerSpec(storage=storage)):
        pytest.fail("it has started")


def test_a_server_that_has_just_started_is_gone(storage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = EmbeddedServer.start

    def started(server: EmbeddedServer) -> None:
        start(server)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(EmbeddedServer, "start", started)
    with Signals(), pytest.raises(InterruptedRun), EmbeddedServer(ServerSpec(storage=storage)):
        pytest.fail("it is used")
