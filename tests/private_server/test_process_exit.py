"""Processes that die: what their silence means."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from loadstone.private_server import process_exit

if TYPE_CHECKING:
    import pytest

LONG = [sys.executable, "-c", "import sys; sys.stdin.read()"]


def test_a_process_that_goes_on_has_not_ended_and_one_that_was_killed_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(LONG, stdin=subprocess.PIPE) as process:
        with monkeypatch.context() as patched:
            patched.setattr(process_exit, "_DYING_S", 0.05)
            assert not process_exit.has_ended(process)
        process.kill()
        # Nobody has waited for it yet, so that it may still be dying.
        assert process_exit.has_ended(process)
        assert process_exit.has_ended(process)
