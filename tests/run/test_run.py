"""A run from inside: what is refused, what is kept, and that a server which hangs does not hang us."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from itertools import count
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest
from support.sandbox import COUNTED, INSERT, PHASE, SCENARIO, Database

from loadstone.cli.terminal import Quiet
from loadstone.errors import ExitCode, LoadstoneError, RunFailedError
from loadstone.host import environment
from loadstone.private_server import EmbeddedServer, PrivateFolder, ServerSpec
from loadstone.results.folder import RunFolder
from loadstone.run import Request, execute, server
from loadstone.scenario.scenario import find_scenario
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from loadstone.plan.model import PlannedPhase


class Watcher(Quiet):
    """A listener that remembers, and does something when a drive is running."""

    def __init__(self, act: Any = None) -> None:
        self.seen: list[str] = []
        self.act = act

    def began(self, _target: str, phase: PlannedPhase) -> None:
        self.seen.append(f"began {phase.id}")

    def progressed(self, _target: str, _phase: PlannedPhase, progress: dict[str, Any]) -> None:
        if self.act and progress["start_ns"] is not None:
            self.act, act = None, self.act
            act()

    def ended(self, _target: str, document: Mapping[str, Any]) -> None:
        self.seen.append(f"{document['state']} {document['id']}")


def scenario(folder: Path, *phases: tuple[str, str, str]) -> Any:
    folder.mkdir()
    texts = []
    for phase, script, settings in phases:
        (folder / f"{phase}.pgbench").write_text(script)
        texts.append(PHASE.format(id=phase, script=f"{phase}.pgbench", settings=settings))
    (folder / "scenario.toml").write_text(SCENARIO.format(name="own", phases="".join(texts)))
    return find_scenario(str(folder))


@pytest.fixture
def mortal() -> Iterator[Database]:
    with EmbeddedServer(ServerSpec("pg", clients=10)) as embedded:
        yield Database(embedded, embedded.connection.database)


def request(tmp_path: Path, target: str, *phases: tuple[str, str, str]) -> Request:
    return Request(
        scenarios=[scenario(tmp_path / "own", *phases)],
        targets=[target],
        size="tiny",
        out=tmp_path / "out",
        calibrate=False,
    )


INSERTS = ("insert", INSERT, COUNTED.format(seconds=0.3))


def test_the_listener_hears_of_every_phase(tmp_path: Path, database: Database) -> None:
    watcher = Watcher()
    outcome = execute(request(tmp_path, database.socket_url, INSERTS), watcher)
    assert outcome.exit_code is ExitCode.OK
    assert outcome.trouble is None
    assert watcher.seen == ["began prepare", "complete prepare", "began insert", "complete insert"]


@pytest.mark.slow
def test_a_server_that_never_answers_again_ends_the_run(
    tmp_path: Path, mortal: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_ANSWER_S", 1.0)
    monkeypatch.setattr(server, "_RECONNECT_S", 3.0)
    monkeypatch.setattr(server, "_DROP_S", 1.0)
    root = psutil.Process(mortal.server.pid)
    family: list[psutil.Process] = []

    def freeze() -> None:
        family.extend([root, *root.children(recursive=True)])
        for process in family:
            process.suspend()

    asked = request(
        tmp_path,
        f"{mortal.url}?connect_timeout=2",
        ("insert", INSERT, COUNTED.format(seconds=30) + "\ntimeout_s = 1"),
        ("after", INSERT, "duration_s = 1"),
    )
    watcher = Watcher(freeze)
    try:
        outcome = execute(asked, watcher)
    finally:
        for process in family:
            process.resume()
    assert outcome.exit_code is ExitCode.FAILED
    assert watcher.seen == [
        "began prepare", "complete prepare", "began insert", "failed insert", "skipped after",
    ]  # fmt: skip
    assert isinstance(outcome.trouble, RunFailedError)
    assert "was not available again within 3 s" in str(outcome.trouble)
    assert json.loads((tmp_path / "out" / "run.json").read_text())["state"] == "failed"


def test_a_server_that_dies_while_it_is_asked_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its sessions end before its first process is seen to: whoever looks in between sees it run."""
    monkeypatch.setattr(server, "_RECONNECT_S", 2.0)
    running = EmbeddedServer.is_running
    looks = count()

    def late(embedded: EmbeddedServer) -> bool:
        return next(looks) == 0 or running(embedded)

    with (
        contextlib.closing(RunFolder.create(tmp_path / "out", "id")) as folder,
        open_target(parse_target("pg"), clients=2) as opened,
        contextlib.closing(server.Server(opened, folder)) as served,
    ):
        assert opened.server is not None
        opened.server.kill()
        monkeypatch.setattr(EmbeddedServer, "is_running", late)
        served.revive()
        assert served.value("select 1") == "1"
        assert served.gone is None


def test_a_table_that_somebody_reads_does_not_keep_the_run_from_ending(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_DROP_S", 1.0)
    with database.connect() as reader:

        def hold() -> None:
            reader.autocommit = False
            reader.execute("select count(*) from loadstone.t")

        outcome = execute(request(tmp_path, database.socket_url, INSERTS), Watcher(hold))
        reader.rollback()
    assert outcome.exit_code is ExitCode.OK
    events = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()]
    (warning,) = [event for event in events if "could not be dropped" in event["message"]]
    assert "lock timeout" in warning["message"]
    assert warning["level"] == "warning"


def test_a_first_signal_waits_until_a_private_database_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = PrivateFolder.close
    removed = []

    def interrupted(folder: PrivateFolder) -> None:
        removed.append(folder.path)
        os.kill(os.getpid(), signal.SIGINT)
        close(folder)

    monkeypatch.setattr(PrivateFolder, "close", interrupted)
    outcome = execute(request(tmp_path, "duckdb:", ("ask", "select 1;\n", "duration_s = 0.2")), Quiet())
    assert outcome.exit_code is ExitCode.INTERRUPTED
    (folder,) = removed
    assert not folder.exists()


def test_a_bug_of_ours_leaves_no_folder_that_looks_as_if_the_run_went_on(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        message = "oops"
        raise ZeroDivisionError(message)

    monkeypatch.setattr(environment, "collect", broken)
    with pytest.raises(ZeroDivisionError):
        execute(request(tmp_path, database.socket_url, INSERTS), Quiet())
    document = json.loads((tmp_path / "out" / "run.json").read_text())
    assert document["state"] == "failed"
    assert "oops" in document["reason"]
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


def test_a_server_that_fails_between_the_phases_is_no_bug_of_ours(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(server.Server, "describe", broken)
    outcome = execute(request(tmp_path, database.socket_url, INSERTS), Quiet())
    assert outcome.exit_code is ExitCode.FAILED
    assert "the server failed: server closed the connection" in str(outcome.trouble)


def test_words_that_find_no_room_are_still_shown(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise RunFailedError("cannot be written: No space left on device.", "Free some space.")

    monkeypatch.setattr(RunFolder, "event", full)
    outcome = execute(request(tmp_path, database.socket_url, INSERTS), Quiet())
    assert outcome.exit_code is ExitCode.FAILED
    assert "No space left" in str(outcome.trouble)


def test_one_database_named_twice_is_refused(tmp_path: Path, database: Database) -> None:
    asked = request(tmp_path, database.socket_url, INSERTS)
    twice = Request(asked.scenarios, [database.socket_url, database.url], "tiny", out=asked.out)
    with pytest.raises(LoadstoneError, match="another run of Loadstone uses the schema"):
        execute(twice, Quiet())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("phases", "words"),
    [(1, ""), (2, "; 1 more phase failed"), (3, "; 2 more phases failed")],
)
def test_the_reason_names_the_first_failure_and_counts_the_rest(
    tmp_path: Path, database: Database, phases: int, words: str
) -> None:
    failing = [(f"p{number}", "select nothing();\n", "duration_s = 0.1") for number in range(phases)]
    outcome = execute(request(tmp_path, database.socket_url, *failing), Quiet())
    assert outcome.trouble is not None
    assert ": p0: every transaction failed: " in outcome.trouble.message
    assert outcome.trouble.message.endswith(words)
