"""A run whose terminal goes away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import subprocess
import termios
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COMMAND, COUNTED, INSERT, Running

if TYPE_CHECKING:
    from support.sandbox import Database, Sandbox


def begin_on_a_terminal(sandbox: Sandbox, *arguments: object, own: bool) -> tuple[Running, int]:
    """Start a run on a terminal, which is its controlling one (`own`) or not; return the other end."""
    master, slave = pty.openpty()

    def take() -> None:
        os.setsid()
        if own:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    out = sandbox.work / "out"
    given = ("run", *map(str, arguments), "--size", "tiny", "--no-calibrate", "--out", str(out))
    process = subprocess.Popen(
        ["env", "--default-signal=INT,TERM,HUP", str(COMMAND), *given],
        cwd=sandbox.work,
        env=sandbox.environment | {"TERM": "xterm"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        preexec_fn=take,  # noqa: PLW1509 - it makes two calls of the system
    )
    os.close(slave)
    os.set_blocking(master, False)
    stem = sandbox.base / "command-terminal"
    for end in (".out", ".err"):
        stem.with_suffix(end).touch()
    running = Running(process, out, stem)
    sandbox.running.append(running)
    return running, master


def drained(terminal: int) -> bool:
    """Read what is shown, as a terminal does: who shows it would wait otherwise."""
    with contextlib.suppress(BlockingIOError):
        while os.read(terminal, 65536):
            pass
    return True


@pytest.mark.parametrize(
    ("terminal", "code", "state"), [("its own", 143, "interrupted"), ("another's", 0, "complete")]
)
def test_a_terminal_that_goes_away(
    sandbox: Sandbox, database: Database, terminal: str, code: int, state: str
) -> None:
    own = terminal == "its own"
    scenario = sandbox.scenario(
        ("first", INSERT, COUNTED.format(seconds=0.5)),
        ("second", INSERT, COUNTED.format(seconds=60 if own else 2)),
    )
    running, screen = begin_on_a_terminal(sandbox, scenario, "--target", database.url, own=own)
    begun = "targets/*/phases/*-second/series.jsonl"
    running.wait_for(lambda: drained(screen) and list(running.folder.glob(begun)), "the drive")
    os.close(screen)
    ended = running.finish()
    assert ended.code == code
    assert ended.run["state"] == state
    assert ended.run["exit_code"] == code
    assert "</html>" in ended.report
    assert ended.phases()["second"]["checks"][0]["passed"]


def test_a_run_goes_on_without_standard_streams(sandbox: Sandbox, database: Database) -> None:
    scenario = sandbox.inserts(0.5)
    shell = ("sh", "-c", 'exec "$@" 0<&- 1>&- 2>&-', "sh")
    ended = sandbox.measure(scenario, "--target", database.url, prefix=shell)
    assert (ended.code, ended.err, ended.out) == (0, "", "")
    assert ended.run["state"] == "complete"
    assert "</html>" in ended.report
