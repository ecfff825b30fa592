"""Places that cannot serve: full disks, closed folders, ports that are taken; and options that cannot be."""

from __future__ import annotations

import os
import re
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COUNTED, INSERT, NOBODY, fill, small_disk

if TYPE_CHECKING:
    from support.sandbox import Database, Sandbox

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


@ROOT
def test_too_little_room_for_results_is_told_before_anything_begins(
    sandbox: Sandbox, database: Database
) -> None:
    with small_disk(sandbox.work / "disk", 32) as disk:
        ended = sandbox.measure(sandbox.inserts(), "--target", database.url, out=disk / "out")
        assert ended.code == 1, ended.err
        assert re.search(r"\d+ MiB are free for results", ended.err), ended.err
        assert "--out" in ended.err


@ROOT
@pytest.mark.slow
def test_results_that_find_no_room_end_the_run_and_what_was_kept_can_be_read(
    sandbox: Sandbox, database: Database
) -> None:
    with small_disk(sandbox.work / "disk", 80) as disk:
        running = sandbox.begin(sandbox.inserts(4), "--target", database.url, out="disk/out")
        running.wait_for_drive("insert")
        ballast = fill(disk, 0)
        ended = running.finish()
        assert ended.code == 2, ended.err
        assert "No space left on device" in ended.err
        assert "Free some space there, or choose another folder with --out" in ended.err
        assert "Traceback" not in ended.err
        ballast.unlink()
        again = sandbox.run("report", "disk/out")
        assert again.code == 0, again.err
        assert (ended.folder / "report.html").is_file()
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@pytest.mark.slow
def test_files_that_may_not_grow_end_the_run_in_words(sandbox: Sandbox, database: Database) -> None:
    """A limit of file sizes (ulimit -f) comes as an error, not as the signal that would end us."""
    limit = ("prlimit", "--fsize=40000")
    ended = sandbox.measure(sandbox.inserts(1), "--target", database.url, prefix=limit)
    assert ended.code == 2, ended.err
    assert "File too large" in ended.err
    assert "Traceback" not in ended.err
    assert database.value("select count(*) from pg_namespace where nspname = 'loadstone'") == 0


@ROOT
def test_too_little_room_for_a_private_server_is_told(sandbox: Sandbox) -> None:
    with small_disk(sandbox.base / "disk", 100) as disk:
        os.chown(disk, NOBODY, NOBODY)
        disk.chmod(0o777)
        ended = sandbox.measure(sandbox.inserts(), "--storage", disk)
        assert ended.code == 1, ended.err
        assert "too little space for a private server" in ended.err
        assert "--storage" in ended.err
        assert list(disk.iterdir()) == []


@ROOT
@pytest.mark.slow
def test_a_private_servers_disk_that_fills_up_fails_the_phase_with_the_servers_words(
    sandbox: Sandbox,
) -> None:
    with small_disk(sandbox.base / "disk", 700) as disk:
        disk.chmod(0o777)
        script = "insert into t select generate_series(1, 20000);\n"
        settings = COUNTED.format(seconds=8).replace("= 1\n", "= 20000\n")
        running = sandbox.begin(sandbox.scenario(("insert", script, settings)), "--storage", disk)
        running.wait_for_drive("insert")
        fill(disk, 20 << 20)
        ended = running.finish()
        assert ended.code in (2, 3), ended.err
        assert "No space left on device" in str(ended.drive("insert")["errors"])
        assert "No space left on device" in ended.err
        assert ended.run["state"] == "failed"
        assert "Traceback" not in ended.err
        assert [entry.name for entry in disk.iterdir()] == ["ballast"]


def test_an_out_folder_that_may_not_be_written(sandbox: Sandbox, database: Database) -> None:
    closed = sandbox.base / "closed"
    closed.mkdir(mode=0o555)
    prefix = sandbox.as_ordinary_user() if os.geteuid() == 0 else ()
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url, out=closed / "out", prefix=prefix)
    assert ended.code == 1, ended.err
    assert "cannot be created" in ended.err
    assert "Permission denied" in ended.err
    assert "--out" in ended.err


def test_an_out_folder_that_holds_something_is_left_alone(sandbox: Sandbox, database: Database) -> None:
    (sandbox.work / "out").mkdir()
    (sandbox.work / "out" / "mine").write_text("precious")
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url)
    assert ended.code == 1, ended.err
    assert "is not empty" in ended.err
    assert "results are never overwritten" in ended.err
    assert [entry.name for entry in (sandbox.work / "out").iterdir()] == ["mine"]


def test_an_out_folder_below_a_file(sandbox: Sandbox, database: Database) -> None:
    (sandbox.work / "file").touch()
    ended = sandbox.measure(sandbox.inserts(), "--target", database.url, out="file/out")
    assert ended.code == 1, ended.err
    assert "is a file, or inside one" in ended.err


def test_a_refused_run_leaves_an_empty_folder_of_the_users_as_it_was(sandbox: Sandbox) -> None:
    (sandbox.work / "out").mkdir()
    ended = sandbox.measure(sandbox.inserts(), "--target", "postgres://u@127.0.0.1:1/d")
    assert ended.code == 1, ended.err
    assert list((sandbox.work / "out").iterdir()) == []
    other = sandbox.run("run", "own", "--target", "postgres://u@127.0.0.1:1/d", "--no-calibrate")
    assert other.code == 1
    assert not (sandbox.work / "loadstone-runs").exists()


@pytest.mark.slow
def test_ports_that_others_take_all_the_time_do_not_matter(sandbox: Sandbox) -> None:
    """While the private server starts, somebody takes every port that becomes free nearby."""
    taken: list[socket.socket] = []
    stop = threading.Event()

    def take() -> None:
        while not stop.wait(0.005) and len(taken) < 500:
            grabbed = socket.socket()
            grabbed.bind(("127.0.0.1", 0))
            grabbed.listen()
            taken.append(grabbed)

    thief = threading.Thread(target=take)
    thief.start()
    try:
        ended = sandbox.measure(sandbox.inserts(0.5))
    finally:
        stop.set()
        thief.join()
        for grabbed in taken:
            grabbed.close()
    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--size", "huge"), ("Invalid value for '--size'", "'tiny', 'small', 'full'")),
        (("--set", "clients"), ("'clients' is not name=value",)),
        (("--set", "cleints=3"), ("there is no parameter 'cleints'", "clients")),
        (("--set", "clients=many"), ("clients", "many")),
        (("--set", "clients=0"), ("clients", "1")),
        (("--set", "index=hash"), ("index", "brin")),
        (("--repeat", "0"), ("Invalid value for '--repeat'",)),
        (("--seed", "-1"), ("Invalid value for '--seed'",)),
        (("--io", "select"), ("Invalid value for '--io'", "epoll")),
        (("--nonsense",), ("No such option", "--nonsense")),
        (("--setting", "port=5432"), ("Loadstone itself sets 'port'", "Loadstone itself sets")),
        (("no-such-scenario",), ("no-such-scenario", "iot-feed")),
        (("iot-feed", "iot-feed"), ("the scenario 'iot-feed' is there twice", "--repeat")),
        (("postgres://me@host/db",), ("'postgres://me@host/db' is a target, not a scenario", "--target")),
    ],
)
def test_options_that_cannot_be_are_refused_with_a_mend(
    sandbox: Sandbox, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ended = sandbox.quick(*options)
    assert ended.code == 1, ended.err
    assert ended.out == ""
    for word in words:
        assert word in ended.err, ended.err
    assert "Traceback" not in ended.err
    assert not (sandbox.work / "out").exists()


def test_a_setting_that_the_server_does_not_know_is_told_in_the_servers_words(sandbox: Sandbox) -> None:
    ended = sandbox.measure(sandbox.inserts(), "--setting", "no_such_setting=1")
    assert ended.code == 1, ended.err
    assert "the private server does not start" in ended.err
    assert 'unrecognized configuration parameter "no_such_setting"' in ended.err
    assert "Your own settings: no_such_setting=1" in ended.err
    assert INSERT not in ended.err
