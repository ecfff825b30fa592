"""No secret leaves a run: canaries in every place, and a search over every byte that is left."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psutil
import pytest
from support.spelled import spellings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database, Ended, Running, Sandbox

URL, VARIABLE, PASSFILE = "Ca1-url'@ü%\"x", "Ca2-variable\\'y", "Ca3:pass file"
QUERY, SETUP, SCRIPT = "Ca4-query/&=z", "Ca5-setup-'q", "Ca6-script word"
PARAMETER, ECHOED, FDW, LINK = "Ca7-parameter$1", "Ca8-echoed-w", "Ca9-mapping", "Ca10-link"
LATE, OTHER = "Ca11-asked", "Ca12-option"
ALL = (URL, VARIABLE, PASSFILE, QUERY, SETUP, SCRIPT, PARAMETER, ECHOED, FDW, LINK, LATE, OTHER)

TOML = f"""
id = "secretive"
title = "secretive"
version = "1"
why = "A test."

[parameters.db_password]
type = "string"
default = "unset"
help = "The password of the role."

[[phase]]
id = "prepare"
kind = "sql"
title = "prepare"
setup = [
  "create table t (id int)",
  "insert into t values (1)",
  "create role canary_made password '{SETUP.replace("'", "''")}'",
  "alter role canary_made password '{{{{ db_password }}}}'",
  "select 'host=h password={FDW} user=u', 'postgres://u:{LINK}@nowhere/db'",
  "drop role canary_made",
]

[[phase]]
id = "asked"
kind = "queries"
title = "asked"
[phase.queries]
table = "t"
duration_s = 0.4
statements = [{{ name = "asked", sql = "select length('host=h password={LATE}') from t" }}]

[[phase]]
id = "insert"
kind = "script"
title = "insert"
scripts = ["insert.pgbench"]
clients = 1
duration_s = 0.4
"""
SCRIPT_TEXT = f"""insert into t values (1);
select 'alter role x password ''{SCRIPT}''';
select '{ECHOED}'::int, 'dbname=d password={ECHOED}';
"""


def found_in(data: bytes, where: str) -> list[str]:
    return [
        f"{where}: {secret} ({name})"
        for secret in ALL
        for name, spelled in spellings(secret).items()
        if spelled.encode() in data
    ]


class Titles(threading.Thread):
    """Reads the command lines of a command and its children from the moment on that passwords are hidden."""

    def __init__(self, running: Running) -> None:
        super().__init__()
        self._process = running.process
        self.seen: set[bytes] = set()

    def run(self) -> None:
        parent = psutil.Process(self._process.pid)
        hidden = False
        while self._process.poll() is None:
            with contextlib.suppress(psutil.Error, OSError):
                own = Path(f"/proc/{parent.pid}/cmdline").read_bytes()
                hidden = hidden or b"***" in own
                others = [
                    Path(f"/proc/{p.pid}/cmdline").read_bytes() for p in parent.children(recursive=True)
                ]
                self.seen.update([own, *others] if hidden else others)
            time.sleep(0.01)  # between two looks, as long as the command runs


def leaks(ended: Ended, sandbox: Sandbox) -> list[str]:
    """Look for canaries in all that a command has left, but for what the test itself wrote."""
    found = found_in(ended.out.encode(), "stdout") + found_in(ended.err.encode(), "stderr")
    given = (sandbox.home, sandbox.work / "secretive")
    for path in sandbox.base.rglob("*"):
        if path.is_symlink() or any(path.is_relative_to(folder) for folder in given):
            continue
        found += found_in(str(path).encode(), "the name of a file")
        if path.is_file():
            found += found_in(path.read_bytes(), str(path.relative_to(sandbox.base)))
    return found


def half_encoded(secret: str) -> str:
    return "".join(
        quote(letter, safe="") if at % 2 or letter in "@/%" else letter for at, letter in enumerate(secret)
    )


@pytest.fixture
def canary(database: Database) -> Iterator[str]:
    """The URL of a database, with the password of a role of its own."""
    literal = URL.replace("'", "''")
    database.execute(f"create role canary superuser login password '{literal}'")
    there = database.server.tcp_connection
    yield f"postgres://canary:{half_encoded(URL)}@{there.host}:{there.port}/{database.name}"
    database.execute("reassign owned by canary to current_user")
    database.execute("drop role canary")


def test_no_byte_that_a_run_leaves_holds_a_secret(sandbox: Sandbox, canary: str) -> None:
    folder = sandbox.work / "secretive"
    folder.mkdir()
    (folder / "scenario.toml").write_text(TOML)
    (folder / "insert.pgbench").write_text(SCRIPT_TEXT)
    asked = (folder, "--target", canary, "--set", f"db_password={PARAMETER}")
    running = sandbox.begin(*asked, env={"PGPASSWORD": VARIABLE})
    titles = Titles(running)
    titles.start()
    ended = running.finish()
    titles.join()
    assert ended.code == 2, ended.err  # the server refuses a statement, and repeats what is in it
    assert leaks(ended, sandbox) == []
    assert titles.seen
    assert [leak for title in titles.seen for leak in found_in(title, "a process")] == []
    _is_whole(ended)
    planned = sandbox.run("plan", *asked, "--size", "tiny", env={"PGPASSWORD": VARIABLE})
    assert planned.code == 0
    assert json.loads(planned.out)["scenarios"][0]["parameters"] == {"db_password": "***"}
    assert leaks(planned, sandbox) == []


def _is_whole(ended: Ended) -> None:
    """What was sent is what the scenario says; what is written are figures, and words without secrets."""
    phases = ended.phases()
    assert [phase["state"] for phase in phases.values()] == ["complete", "complete", "failed"]
    texts = [statement["text"] for statement in phases["prepare"]["statements"]]
    assert "create role canary_made password '***'" in texts
    drive = ended.drive("insert")
    assert any('type integer: "***"' in error["message"] for error in drive["errors"]), drive["errors"]
    (queries,) = ended.folder.glob("targets/*/phases/*-asked/queries.jsonl")
    assert "password=***" in queries.read_text()
    assert ended.drive("asked")["counts"]["failed"] == 0


REFUSED = {
    "a key that is percent-encoded": (
        f"postgres://me@127.0.0.1:1/d?p%61ssword={quote(QUERY, safe='')}",
        "connect",
    ),
    "an @ that is not": (f"postgres://me:x@{OTHER}@127.0.0.1:1/d", "percent-encoded"),
    "a slash that is not": (f"postgres://me:x/{OTHER}@127.0.0.1:1/d", "percent-encoded"),
    "no host": (f"postgres://me:{OTHER}", "port"),
    "no scheme": (f"me:{OTHER}@127.0.0.1:1", "is not a target"),
    "a mistyped option": (f"--pasword={OTHER}", "No such option"),
}


def test_nothing_that_is_refused_repeats_a_secret(sandbox: Sandbox) -> None:
    for case, (argument, words) in REFUSED.items():
        given = (argument,) if argument.startswith("--") else ("--target", argument)
        ended = sandbox.measure("count-loop", *given, out=f"out-{len(case)}")
        assert ended.code in (1, 2), case
        assert words in ended.err, (case, ended.err)
        assert leaks(ended, sandbox) == [], case


def test_a_password_file_is_used_and_never_shown(sandbox: Sandbox, database: Database) -> None:
    there = database.server.tcp_connection
    file = sandbox.home / ".pgpass"
    escaped = PASSFILE.replace(":", "\\:")
    file.write_text(f"{there.host}:{there.port}:*:{there.user}:{escaped}\n")
    file.chmod(0o600)
    ended = sandbox.measure("count-loop", "--target", database.bare_url)
    assert "password" in ended.err
    assert leaks(ended, sandbox) == []
