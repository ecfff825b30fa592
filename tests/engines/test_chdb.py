"""What is chDB's alone: its targets, its process, its folder, and the package that may be missing."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from support.sandbox import wait_until
from support.table_loads import value

from loadstone.engines.chdb import ENGINE as CHDB
from loadstone.errors import LoadstoneError
from loadstone.sqltext import literal
from loadstone.target import open_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.target import OpenTarget


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenTarget]:
    folder = tmp_path_factory.mktemp("own") / "a folder"
    with open_target(parse_target(f"chdb:{folder}"), 4, settings={"max_threads": "1"}) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "id_", "url", "private"),
    [
        ("chdb:", "chdb", "chdb:", True),
        ("chdb://", "chdb", "chdb:", True),
        ("chdb:{}/a b", "chdb-a-b", "chdb:{}/a b", False),
    ],
)
def test_what_each_spelling_means(tmp_path: Path, text: str, id_: str, url: str, private: bool) -> None:  # noqa: FBT001
    target = parse_target(text.format(tmp_path))
    assert target.place is not None
    assert (target.id, target.url, target.engine) == (id_, url.format(tmp_path), "chdb")
    assert target.place.private is private


def test_connections_are_sockets_of_this_run_and_none_is_refused(own: OpenTarget) -> None:
    with ExitStack() as stack:
        controls = [stack.enter_context(closing(own.connect(f"asking {n}"))) for n in range(50)]
        own.engine.refuse_too_many_clients(controls[0], 1_000_000)
        assert [own.engine.text_value(control, f"select {n}") for n, control in enumerate(controls)] == [
            str(n) for n in range(50)
        ]


def test_what_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for text, words in (
        ("{}/no/where", "does not exist"),
        ("{}/file", "is not a folder"),
        (":memory:", "in-memory"),
    ):
        with pytest.raises(LoadstoneError, match=words):
            parse_target(f"chdb:{text.format(tmp_path)}")


def test_a_folder_can_be_open_once(own: OpenTarget) -> None:
    with (
        pytest.raises(LoadstoneError, match="already in use by this run"),
        open_target(parse_target(own.url), 4),
    ):
        pass
    text = (
        "import sys\n"
        "from loadstone.target import open_target, parse_target\n"
        "with open_target(parse_target(sys.argv[1]), 4):\n"
        "    pass\n"
    )
    command = [sys.executable, "-c", text, own.url]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert "is in use by another process" in ended.stderr, ended.stderr


def test_ones_own_folder_stays_and_a_private_one_goes(tmp_path: Path) -> None:
    for name, left in (("chdb:", []), (f"chdb:{tmp_path}/own", ["own"])):
        with open_target(parse_target(name), 4, storage=tmp_path if name == "chdb:" else None) as opened:
            assert value(opened, "select 41 + 1") == "42"
            with closing(opened.connect("looking")) as control:
                pid = CHDB.server_pids(control).pid
        assert sorted(path.name for path in tmp_path.iterdir()) == left
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_the_process_ends_with_whoever_started_it(tmp_path: Path) -> None:
    text = (
        "import sys, time\n"
        "from loadstone.target import open_target, parse_target\n"
        "with open_target(parse_target(sys.argv[1]), 4) as opened:\n"
        "    print(opened.database.pid, flush=True)\n"
        "    time.sleep(600)  # until it is killed\n"
    )
    command = [sys.executable, "-c", text, f"chdb:{tmp_path}/own"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid), "the end of the process that holds chDB")


def test_each_connection_has_settings_and_a_database_of_its_own(own: OpenTarget) -> None:
    with closing(own.connect("one")) as one, closing(own.connect("other")) as other:
        CHDB.create_workspace(one)
        assert CHDB.text_value(one, "select currentDatabase()") == "loadstone"
        assert CHDB.text_value(other, "select currentDatabase()") == "default"
        marks = {CHDB.text_value(control, "select getSetting('log_comment')") for control in (one, other)}
        assert len(marks) == 2
        assert CHDB.text_value(one, f"select {literal('a' + chr(39) + 'b')}") == "a'b"
        CHDB.drop_workspace(one)


def test_only_private_databases_are_set_up(own: OpenTarget) -> None:
    # Not the default of any machine: a small one may have one thread. No thread is started by the setting.
    assert value(own, "select getSetting('max_threads')") != "61", "somebody's own is used as it is"
    with open_target(parse_target("chdb:"), 4, settings={"max_threads": "61"}) as opened:
        assert value(opened, "select getSetting('max_threads')") == "61"
        with closing(opened.connect("looking")) as control:
            found = {setting["name"]: setting for setting in CHDB.settings(control)}
        assert (found["max_threads"]["value"], found["max_threads"]["source"]) == ("61", "--setting")
    wrong = pytest.raises(LoadstoneError, match="no_such_setting")
    with wrong, open_target(parse_target("chdb:"), 4, settings={"no_such_setting": "1"}):
        pass


def test_a_missing_package_is_told_with_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    place = parse_target(f"chdb:{tmp_path}/own").place
    assert place is not None
    with pytest.raises(LoadstoneError, match="the Python package chdb is missing") as refused:
        CHDB.open(place, None, {})
    assert "pip install chdb==" in refused.value.hint
    assert list(tmp_path.iterdir()) == []
