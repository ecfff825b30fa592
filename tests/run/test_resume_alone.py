"""`loadstone run --resume DIR` alone: the folder says what was requested, and keeps no password."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_folders import seal
from support.sandbox import INSERT, PHASE

from loadstone.cli.terminal import Quiet
from loadstone.errors import ExitCode, LoadstoneError
from loadstone.results.folder import RunFolder
from loadstone.results.manifest import NAME as MANIFEST
from loadstone.run import Request, execute
from loadstone.run.remembered import asked_document, with_what_was_asked
from loadstone.scenario.scenario import find_scenario, load_scenario
from loadstone.target import parse_target, parse_targets
from loadstone.watch.watchers import WatchOptions

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Sandbox

FLIGHTS = find_scenario("flights")
SCENARIO = """
id = "own"
title = "own"
version = "1"
why = "A test."
parameters.rows = { type = "integer", default = 2, minimum = 1, help = "Rows" }

[[phase]]
id = "prepare"
kind = "sql"
title = "prepare"
setup = ["create table t (id int)", "insert into t select generate_series(1, {{ rows }})"]
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """The folder of a run of which only run.json matters."""
    folder = tmp_path / "broken"
    folder.mkdir()
    return folder


def keep(folder: Path, request: Request) -> None:
    asked = asked_document(request, parse_targets(request.targets))
    (folder / "run.json").write_text(json.dumps({"format": 2, "asked": asked}))


def test_what_watched_the_run_watches_it_again(broken: Path, tmp_path: Path) -> None:
    target = "postgres://u:secret-word@db:5433/x"
    watch = WatchOptions([f"{target}=https://me:other-word@db:9100", "ssh://db"], ca=tmp_path / "ca.pem")
    keep(broken, Request([FLIGHTS], [target], watch=watch))
    text = (broken / "run.json").read_text()
    assert "secret-word" not in text
    assert "other-word" not in text
    got = with_what_was_asked(Request([FLIGHTS], ["pg"], resume=broken), frozenset({"resume"}))
    assert got.watch.urls == ["db-x=https://me@db:9100/metrics", "db-x=ssh://db"]
    assert got.watch.ca == tmp_path / "ca.pem"
    anew = Request([FLIGHTS], ["pg"], resume=broken, watch=WatchOptions(["ssh://other"]))
    assert with_what_was_asked(anew, frozenset({"resume", "watch"})).watch.urls == ["ssh://other"]


def test_all_options_come_from_the_folder(broken: Path, tmp_path: Path) -> None:
    asked = Request(
        [FLIGHTS, find_scenario("iot-feed")],
        ["pg17", "postgres://u@db:5433/x?sslmode=require&options=-c%20jit%3Doff", f"duckdb:{tmp_path}/d.db"],
        size="full",
        overrides={"rows": "7", "iot-feed.clients": "3"},
        seed=9,
        repeats=2,
        storage=tmp_path,
        settings={"work_mem": "7MB"},
        keep=True,
        replace=True,
        ignore_space=True,
        calibrate=False,
        verify=True,
        io="epoll",
    )
    keep(broken, asked)
    got = with_what_was_asked(Request([FLIGHTS], ["pg"], resume=broken), frozenset({"resume"}))
    assert [one.id for one in got.scenarios] == ["flights", "iot-feed"]
    assert [one.url for one in parse_targets(got.targets)] == [
        one.url for one in parse_targets(asked.targets)
    ]
    same = ("size", "overrides", "seed", "repeats", "storage", "settings", "keep", "replace", "io", "verify")
    assert {name: getattr(got, name) for name in same} == {name: getattr(asked, name) for name in same}
    assert (got.ignore_space, got.calibrate) == (True, False)
    # What a folder says is no leave to run a stranger's program.
    assert not with_what_was_asked(
        Request([FLIGHTS], ["pg"], resume=broken), frozenset({"resume"})
    ).allow_shell


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"targets": "pg"}, "targets"),
        ({"scenarios": None}, "scenarios"),
        ({"overrides": {"rows": 7}}, "overrides"),
        ({"size": "huge"}, "size"),
        ({"watch": {}}, "urls"),
    ],
)
def test_a_run_json_that_was_changed_by_hand_is_refused(
    broken: Path, change: dict[str, object], words: str
) -> None:
    keep(broken, Request([FLIGHTS], ["pg"]))
    document = json.loads((broken / "run.json").read_text())
    document["asked"] |= change
    (broken / "run.json").write_text(json.dumps(document))
    with pytest.raises(LoadstoneError, match=rf"run\.json, asked: .*{words}"):
        with_what_was_asked(Request([FLIGHTS], ["pg"], resume=broken), frozenset({"resume"}))


def test_what_is_given_anew_beats_the_folder(broken: Path) -> None:
    keep(broken, Request([FLIGHTS], ["pg"], size="full", seed=9, overrides={"rows": "7", "workers": "2"}))
    anew = Request([FLIGHTS], ["duckdb:"], size="tiny", overrides={"rows": "8"}, resume=broken)
    got = with_what_was_asked(anew, frozenset({"resume", "size", "overrides", "targets"}))
    assert (got.size, got.seed, list(got.targets)) == ("tiny", 9, ["duckdb:"])
    assert got.overrides == {"rows": "8", "workers": "2"}


def test_secrets_are_in_no_folder_and_asked_for_again(broken: Path) -> None:
    url, other = "postgres://u:Zebra7@db/x", "postgres://u:Okapi8@db/y"
    secret = {"db_password": "Gnu9", "rows": "7"}
    keep(broken, Request([FLIGHTS], [url, other], overrides=secret))
    text = (broken / "run.json").read_text()
    assert not any(word in text for word in ("Zebra7", "Okapi8", "Gnu9"))
    anew = Request([FLIGHTS], ["pg"], resume=broken)
    with pytest.raises(
        LoadstoneError, match="does not contain the whole value of --set db_password"
    ) as caught:
        with_what_was_asked(anew, frozenset())
    assert "--set db_password=…" in caught.value.hint
    got = with_what_was_asked(
        replace(anew, targets=[other], overrides={"db_password": "Gnu9"}), frozenset({"targets", "overrides"})
    )
    assert got.overrides == secret
    passwords = [target.connection.password for target in parse_targets(got.targets) if target.connection]
    assert passwords == [None, "Okapi8"]


def test_a_new_folder_for_results_is_refused(broken: Path, tmp_path: Path) -> None:
    keep(broken, Request([FLIGHTS], ["pg"]))
    with pytest.raises(LoadstoneError, match="--out creates a new folder"):
        with_what_was_asked(Request([FLIGHTS], ["pg"], resume=broken, out=tmp_path / "other"), frozenset())


LETTERS = st.characters(codec="utf-8", min_codepoint=33, exclude_characters="\x7f,")
VALUES = st.text(LETTERS, min_size=1, max_size=8)


@given(VALUES, VALUES, VALUES, st.sampled_from(["disable", "require", "prefer"]))
def test_a_target_without_its_password_is_the_same_target(
    user: str, database: str, options: str, sslmode: str
) -> None:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    text = (
        f"host=db.example port=5433 user={quoted(user)} dbname={quoted(database)} sslmode={sslmode} "
        f"options={quoted(options)} connect_timeout=3 password=Zebra7"
    )
    target = parse_target(text)
    again = parse_target(target.without_password())
    assert target.connection is not None
    assert again.connection is not None
    # The environment may have a password for it, as it may for any target.
    assert replace(again.connection, password=None) == replace(target.connection, password=None)
    assert (again.url, again.engine) == (target.url, target.engine)


def test_a_run_that_was_broken_off_goes_on_by_its_folder_alone(sandbox: Sandbox, database: Database) -> None:
    folder = sandbox.work / "own"
    folder.mkdir()
    (folder / "scenario.toml").write_text(
        SCENARIO
        + PHASE.format(id="one", script="one.pgbench", settings="transactions_per_client = 5")
        + PHASE.format(id="two", script="two.pgbench", settings="transactions_per_client = 5")
    )
    (folder / "one.pgbench").write_text(INSERT)
    (folder / "two.pgbench").write_text(INSERT)
    out = sandbox.work / "out"
    request = Request(
        [load_scenario(folder)],
        [database.url],
        "tiny",
        {"rows": "5"},
        seed=4,
        out=out,
        settings={"work_mem": "7MB"},
        calibrate=False,
    )
    assert execute(request, Quiet()).exit_code is ExitCode.OK
    _break_off(out)
    refused = sandbox.run("run", "--resume", "out")
    assert refused.code == 1, refused.err
    assert "the run folder contains no passwords" in refused.err.replace("\n", " ").lower()
    assert database.password not in refused.err
    ended = sandbox.run("run", "--resume", "out", env={"PGPASSWORD": database.password})
    assert ended.code == 0, ended.err
    assert ended.run["state"] == "complete"
    assert ended.run["options"]["settings"] == {"work_mem": "7MB"}
    assert [phase["state"] for phase in ended.phases().values()] == ["complete"] * 3
    assert sandbox.holding(database.password) == []


def _break_off(path: Path) -> None:
    """Make a complete run look as if it had been interrupted in its last phase."""
    folder = RunFolder.open(path)
    folder.write_run(state="interrupted", exit_code=int(ExitCode.INTERRUPTED))
    (target,) = folder.targets()
    last = target.phases()[-1]
    last.write_phase(last.written_phase() | {"state": "interrupted"})
    folder.close()
    (path / MANIFEST).unlink()
    seal(path)
