r"""A scenario of somebody else is data: `\shell` in it runs only for whoever allows that."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COMMAND, PHASE, SCENARIO

from loadstone.cli.terminal import Quiet
from loadstone.errors import ExitCode, ShellRefusedError
from loadstone.run import Request, execute, plan_of
from loadstone.run.targets import Opener
from loadstone.scenario.builtin import builtin_scenarios
from loadstone.scenario.scenario import find_scenario, load_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

    from loadstone.plan.model import Plan

pytestmark = pytest.mark.slow

TWO = "\\set a 1\n\\if :a > 1\n  \\shell \\\n    touch \x1b[2J x\n\\endif\n\\setshell n echo 1\nselect 1;\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "theirs"
    found.mkdir()
    (found / "two.pgbench").write_text(TWO)
    phase = PHASE.format(id="two", script="two.pgbench", settings="duration_s = 1")
    (found / "scenario.toml").write_text(SCENARIO.format(name="theirs", phases=phase))
    return found


def planned(request: Request) -> Plan:
    return plan_of(request, parse_targets(request.targets))


def test_a_shell_command_is_refused_with_file_and_line_before_anything_is_touched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Opener, "open", lambda *_: pytest.fail("a target was opened"))
    request = Request([load_scenario(folder)], ["pg"], "tiny", out=tmp_path / "out")
    with pytest.raises(ShellRefusedError) as caught:
        execute(request, Quiet())
    assert f"{folder}/two.pgbench, line 3: \\shell \\ touch \\x1b[2J x (and 1 more)" in caught.value.message
    assert "--allow-shell" in caught.value.hint
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert not (tmp_path / "out").exists()


def test_whoever_allows_it_has_it_planned(folder: Path) -> None:
    request = Request([load_scenario(folder)], ["pg"], "tiny", allow_shell=True)
    assert planned(request).targets[0].phases[1].kind == "script"


def test_scenarios_that_are_built_in_need_no_consent() -> None:
    for name in builtin_scenarios():
        plan = planned(Request([find_scenario(name)], ["pg"], "tiny"))
        assert any(phase.skip is None for phase in plan.targets[0].phases), name


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_the_user_is_asked(folder: Path, answer: str, code: int) -> None:
    ours, theirs = pty.openpty()
    try:
        os.write(ours, f"{answer}\n".encode())
        done = subprocess.run(
            [COMMAND, "plan", folder],
            check=False,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=240,
        )
        os.close(theirs)
        shown = b""
        while part := _read(ours):
            shown += part
    finally:
        os.close(ours)
    assert (done.returncode, b"Run it? [y/N]" in shown) == (code, True)
    assert bool(done.stdout) == (code == 0)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end was closed, and all of it was read
        return b""
