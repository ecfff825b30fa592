"""`loadstone crash` on private servers: what is kept, what is lost, and every way to end."""

from __future__ import annotations

import json
import signal
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner

from loadstone import power_disk
from loadstone.cli.group import loadstone
from loadstone.crash import session as sessions
from loadstone.crash.checks import connected
from loadstone.crash.documents import Crash
from loadstone.crash.experiment import Bench
from loadstone.crash.ledger import Rows
from loadstone.crash.levels import Crashed, ProcessLevel
from loadstone.crash.session import Session
from loadstone.errors import ExitCode
from loadstone.private_server import EmbeddedServer
from loadstone.private_server.provision import copy_data

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Sandbox

QUICK = ("--size=tiny", "--set=scale=1", "--set=workload=tpcb-like", "--set=clients=4", "--window=0.6",
         "--setting=fsync=off", "--setting=shared_buffers=128MB")  # fmt: skip
"""Killed processes lose nothing that was written, synced or not."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch a recovered server no longer than a test needs."""
    monkeypatch.setattr(sessions, "_AFTER_S", 0.1)
    monkeypatch.setattr(sessions, "_AFTER_MOST_S", 0.6)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load the data once for all tests of this file."""
    kept = tmp_path_factory.getbasetemp() / "crash-template"
    make = Bench.make_template

    def made(bench: Bench, place: Path) -> None:
        if not kept.exists():
            make(bench, place)
            copy_data(place, kept)
        else:
            copy_data(kept, place)

    monkeypatch.setattr(Bench, "make_template", made)


def crash(out: Path, *options: str) -> tuple[int, str, Crash]:
    """Run the command in this process."""
    ended = CliRunner().invoke(loadstone, ["crash", *QUICK, f"--out={out}", *options])
    text = (out / "crash.json").read_text() if (out / "crash.json").exists() else "null"
    return ended.exit_code, ended.output, msgspec.json.decode(text, type=Crash)


@pytest.mark.usefixtures("own_registry", "loaded")
def test_commits_survive_and_a_deleted_row_is_found(tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, said, document = crash(out, "--cycles=2")
    assert code == ExitCode.OK, said
    assert document.verdict == "kept"
    assert document.checker is True
    assert document.amcheck is None
    assert [cycle.restarted for cycle in document.cycles] == [True, True]
    assert "A second restart after each of 2 crashes left the rows of 5 tables" in " ".join(said.split())
    for cycle in document.cycles:
        assert cycle.found is not None
        assert cycle.content is not None
        assert cycle.content.rows > 100_000, "pgbench_accounts"
        assert cycle.content.before == cycle.content.after
        assert cycle.content.hashed_bytes == cycle.content.bytes
        assert cycle.found.acknowledged > 5
        assert cycle.recovery.connection_s
        assert cycle.recovery.wal_bytes is not None
        assert cycle.moment.note in (
            None,
            "the load wrote too little WAL: the segment was switched on request",
        )
    assert "2 crashes (process)" in said
    assert "shows nothing about a loss of power" in said
    assert "<h1>No acknowledged commit was lost in 2 crashes</h1>" in (out / "crash.html").read_text()
    again = CliRunner().invoke(loadstone, ["crash", f"--verify={out}", "--format=json"])
    assert again.exit_code == ExitCode.OK
    judged = json.loads(again.stdout)
    assert judged["cycles"] == json.loads((out / "crash.json").read_text())["cycles"]
    spoil_table(out)
    spoiled = CliRunner().invoke(loadstone, ["crash", f"--verify={out}"])
    assert spoiled.exit_code == ExitCode.WRONG_ANSWER
    assert "acknowledged commits are lost" in spoiled.output


def spoil_table(out: Path) -> None:
    """Take rows from what was read of the table at the end."""
    path = max(out.glob("cycles/*/table.npz"))
    rows = Rows.load(path)
    Rows(rows.client[:-5], rows.seq[:-5], rows.crc[:-5]).save(path)


@pytest.mark.usefixtures("own_registry", "loaded")
def test_damage_after_the_recovery_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = Session.verify

    def damaged(session: Session, *given: Any) -> None:
        with connected(session.server.connection) as control:
            control.execute(
                "delete from loadstone.commit_ledger where client = 1 and seq = "
                "(select max(seq) - 2 from loadstone.commit_ledger where client = 1)"
            )
            control.execute("insert into loadstone.commit_ledger values (2, 900000, 1)")
            control.execute("update loadstone.pgbench_tellers set tbalance = tbalance + 1 where tid = 1")
        verify(session, *given)

    monkeypatch.setattr(Session, "verify", damaged)
    change_at_second_restart(monkeypatch)
    code, said, document = crash(tmp_path / "run", "--cycles=1", "--setting=synchronous_commit=off")
    assert code == ExitCode.WRONG_ANSWER, said
    assert document.verdict == "lost"
    cycle = document.cycles[0]
    assert cycle.found is not None
    assert cycle.allowed_s == 0.6, "three times wal_writer_delay"
    assert cycle.found.lost + cycle.found.holes >= 1
    assert cycle.found.phantom == 1
    flaws = {flaw.check for flaw in cycle.flaws}
    assert {"branches and tellers hold the same sum", "the four sums of pgbench's tables"} <= flaws
    assert "Commits are not safe: see crash 1." in said
    assert cycle.restarted is False
    assert cycle.content is not None
    assert cycle.content.before != cycle.content.after
    (changed,) = (flaw.detail for flaw in cycle.flaws if flaw.check == "second restart")
    assert changed.startswith("loadstone.pgbench_accounts: 100,000 rows, hash ")


def change_at_second_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Change one row of 100,000 once the server is back from its second restart."""
    restart, number = EmbeddedServer.restart, count(1)

    def changing(server: EmbeddedServer) -> None:
        restart(server)
        if next(number) == 2:
            with connected(server.connection) as control:
                control.execute("update loadstone.pgbench_accounts set abalance = abalance + 1 where aid = 7")

    monkeypatch.setattr(EmbeddedServer, "restart", changing)


@pytest.mark.usefixtures("own_registry", "loaded")
def test_data_of_a_server_that_does_not_come_up_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill = ProcessLevel.crash

    def destroyed(level: ProcessLevel, server: EmbeddedServer) -> Crashed:
        crashed = kill(level, server)
        (server.data_directory / "global" / "pg_control").unlink()
        return crashed

    monkeypatch.setattr(ProcessLevel, "crash", destroyed)
    code, said, document = crash(tmp_path / "run", "--cycles=3")
    assert code == ExitCode.WRONG_ANSWER, said
    assert document.verdict == "did not come up"
    assert document.data is not None
    assert (tmp_path / "run" / "data" / "PG_VERSION").exists()
    assert document.data in said


@pytest.mark.slow
@pytest.mark.skipif(power_disk.available() is not None, reason=f"no power disk: {power_disk.available()}")
@pytest.mark.usefixtures("own_registry", "loaded")
def test_what_was_not_synced_is_lost_with_the_power(tmp_path: Path) -> None:
    code, said, document = crash(tmp_path / "run", "--level=power", "--cycles=1", "--setting=fsync=on")
    assert code == ExitCode.OK, said
    assert document.verdict == "kept"
    control = document.control
    assert control is not None
    assert control.forgot is not None
    assert control.found is None or control.found.lost > 0, "without fsync"
    assert document.disk is not None
    assert document.disk["fsyncs"] > 0
    assert document.disk["losses"] == 1
    assert document.rate_plain
    assert "1 crash (power)" in said
    assert "control crash with fsync=off" in said.lower()
    assert "shows nothing about a loss of power" not in said


def test_ctrl_c_leaves_what_there_is(sandbox: Sandbox) -> None:
    running = sandbox.start("crash", *QUICK, "--cycles=50", "--out=run", out="run")
    running.wait_for_words("crash 1,")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == ExitCode.INTERRUPTED
    document = msgspec.json.decode((ended.folder / "crash.json").read_text(), type=Crash)
    assert document.state == "interrupted"
    assert document.verdict == "undecided"
    assert document.cycles
    assert "Undecided: stopped by SIGINT" in ended.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--level=power"], "--level power cannot be used here: no disk"),
        (["--target=postgres://somebody@host/db"], "is not a private PostgreSQL server"),
        (["--target=mariadb"], "is not a private PostgreSQL server"),
        (["--setting=log_checkpoints=off"], "is set by Loadstone"),
        (["--phase=nothing"], "the phase 'nothing' does not exist"),
        (["--phase=protocols"], "set mode, threads with --set"),
        (["flights"], "no phase of scripts"),
        (["iot-feed"], "Choose one with --phase"),
        (["nothing"], "nothing"),
        (["--cycles=0"], "--cycles"),
        (["--verify=.", "--cycles=3"], "--cycles has no meaning with --verify"),
        (["--verify=."], "has no crash.json"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_touched(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(power_disk, "available", lambda: "no disk")
    ended = CliRunner().invoke(loadstone, ["crash", *options])
    assert ended.exit_code == ExitCode.BAD_INPUT
    assert said in ended.output
    assert not list(tmp_path.iterdir())
