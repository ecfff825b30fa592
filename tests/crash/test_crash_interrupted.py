"""Ctrl-C in every stage of `loadstone crash`: what there is stays, and nothing is left running or mounted."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import pytest
from click.testing import CliRunner
from support.interrupts import interrupt_at
from support.sandbox import make_base

from loadstone import power_disk
from loadstone.cli.group import loadstone
from loadstone.crash import joint_texts, levels, session
from loadstone.crash.content import Extract
from loadstone.crash.documents import Crash, Crashes
from loadstone.crash.experiment import Bench, CrashTest
from loadstone.crash.session import Session
from loadstone.errors import ExitCode
from loadstone.power_disk import PowerDisk
from loadstone.power_disk.mounts import mounts
from loadstone.private_server import EmbeddedServer
from loadstone.private_server.provision import copy_data

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = ("--size=tiny", "--set=scale=1", "--set=workload=tpcb-like", "--set=clients=4", "--window=0.5",
         "--setting=fsync=off", "--setting=shared_buffers=128MB", "--cycles=1")  # fmt: skip
"""Killed processes lose nothing that was written, synced or not."""
SWEEP = ("recovery-time", "--size=tiny", "--set=rows=100", "--window=0.5", "--setting=fsync=off",
         "--setting=shared_buffers=128MB", "--cycles=1", "--set=max_wal_size=32,64MB")  # fmt: skip
POWER = pytest.mark.skipif(power_disk.available() is not None, reason="no power disk here")


@pytest.fixture(scope="module")
def template(builds: Path) -> Iterator[Path]:
    """The loaded data, from a run that ends under load: no other run starts a server to load them."""
    base = make_base()
    (base / "loadstone").mkdir()
    (base / "loadstone" / "postgresql").symlink_to(builds)
    make = Bench.make_template

    def made(bench: Bench, place: Path) -> None:
        make(bench, place)
        copy_data(place, base / "data")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(base))
        patch.setattr(Bench, "make_template", made)
        interrupt_at(patch, session, "await_moment")
        ended = CliRunner().invoke(loadstone, ["crash", *QUICK, f"--out={base / 'out'}"])
        assert ended.exit_code == ExitCode.INTERRUPTED, ended.output
    yield base / "data"
    shutil.rmtree(base)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, template: Path) -> None:
    monkeypatch.setattr(Bench, "make_template", lambda _, place: copy_data(template, place))


@pytest.fixture
def storage(own_registry: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:  # noqa: ARG001
    """Where servers and disks are; it fails when anything of them is left."""
    monkeypatch.setattr(session, "_AFTER_S", 0.1)
    monkeypatch.setattr(session, "_AFTER_MOST_S", 0.6)
    base = make_base()
    yield base
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            words = " ".join(process.cmdline())
            if str(base) in words or base in Path(process.cwd()).parents:
                left.append(words)
    mounted = [mount.path for mount in mounts() if base in mount.path.parents]
    records = list((Path(os.environ["XDG_CACHE_HOME"]) / "loadstone" / "servers").glob("*.json"))
    folders = list(base.iterdir())
    shutil.rmtree(base, ignore_errors=True)
    assert (left, mounted, records, folders) == ([], [], [], [])


def press(storage: Path, out: Path, *options: str) -> str:
    """Run the command in this process, where Ctrl-C is pressed; returns what `--verify` says then."""
    ended = CliRunner().invoke(loadstone, ["crash", *options, f"--out={out}", f"--storage={storage}"])
    assert ended.exit_code == ExitCode.INTERRUPTED, ended.output
    again = CliRunner().invoke(loadstone, ["crash", f"--verify={out}"])
    assert again.exit_code == ExitCode.UNDECIDED, again.output
    return " ".join(again.output.split())


STAGES = {
    "server of the load": (EmbeddedServer, "_create_database", 1),
    "start of the server": (EmbeddedServer, "_wait_ready", 1),
    "load": (session, "await_moment", 1),
    "kill": (levels, "_pids_below", 1),
    "recovery": (EmbeddedServer, "_wait_ready", 2),
    "verification": (session, "flaws", 1),
    "second restart": (EmbeddedServer, "_wait_ready", 3),
    "hash after the second restart": (Extract, "hashes", 2),
    "row deleted on purpose": (session, "_acknowledged_row", 1),
    "load on the disk itself": (Session, "rate", 1),
    "mount": (PowerDisk, "_line", 1),
    "control crash": (PowerDisk, "_line", 3),
    "recovery of the control": (EmbeddedServer, "_wait_ready", 3),
    "unmount of the control": (PowerDisk, "_end", 1),
}
POWER_STAGES = list(STAGES)[-5:]


@pytest.mark.parametrize("stage", [
    *list(STAGES)[:-5], *(pytest.param(one, marks=POWER) for one in POWER_STAGES),
])  # fmt: skip
def test_ctrl_c_leaves_a_verdict_and_nothing_else(
    stage: str, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if stage != "server of the load":
        request.getfixturevalue("loaded")
    interrupt_at(monkeypatch, *STAGES[stage])
    level = "power" if stage in POWER_STAGES else "process"
    out = tmp_path / "run"
    said = press(storage, out, *QUICK, f"--level={level}")
    document = msgspec.json.decode((out / "crash.json").read_text(), type=Crash)
    assert (document.state, document.verdict) == ("interrupted", "undecided")
    assert document.reason == "stopped by SIGINT"
    is_done = stage == "row deleted on purpose"
    assert [cycle.number for cycle in document.cycles] == ([1] if is_done else [])
    assert "Undecided: stopped by SIGINT." in said


@pytest.mark.usefixtures("loaded")
def test_ctrl_c_at_the_end_waits_until_all_is_removed(
    storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, EmbeddedServer, "_end", 4)
    out = tmp_path / "run"
    options = ["crash", *QUICK, f"--out={out}", f"--storage={storage}"]
    ended = CliRunner().invoke(loadstone, options)
    assert ended.exit_code == ExitCode.INTERRUPTED, ended.output
    document = msgspec.json.decode((out / "crash.json").read_text(), type=Crash)
    assert (document.state, document.verdict, document.checker) == ("interrupted", "kept", True)


@pytest.mark.parametrize(
    ("owner", "name", "begun"),
    [(joint_texts, "before", 0), (CrashTest, "begin", 1),
     (session, "await_moment", 1)],
)  # fmt: skip
def test_ctrl_c_leaves_the_values_of_a_sweep(
    owner: Any, name: str, begun: int, storage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupt_at(monkeypatch, owner, name)
    out = tmp_path / "run"
    said = press(storage, out, *SWEEP)
    document = msgspec.json.decode((out / "crashes.json").read_text(), type=Crashes)
    assert document.state == "interrupted"
    states = ["interrupted", "not begun"] if begun else ["not begun", "not begun"]
    assert [entry.state for entry in document.values] == states
    assert {entry.verdict for entry in document.values} == {"undecided"}
    assert "Not all crashes were made: stopped by SIGINT." in said
