"""A drive in a process of its own, which can be stopped while its server goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

_PROGRAM = """
import json, sys
from loadstone import _core
drive = _core.Drive(sys.argv[1])
drive.start()
account = None
while account is None:
    account = drive.wait(0.05)
    if json.loads(drive.progress())["done"]:
        print("begun", flush=True)
print(account)
"""


def stopped(document: dict[str, Any], seconds: float) -> bytes:
    """Run a drive, stop it for so long once a transaction is done; returns drive.json."""
    child = subprocess.Popen([sys.executable, "-c", _PROGRAM, json.dumps(document)], stdout=subprocess.PIPE)
    assert child.stdout
    with child:
        assert child.stdout.readline() == b"begun\n"
        os.kill(child.pid, signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(seconds)
        os.kill(child.pid, signal.SIGCONT)
        return child.stdout.read().replace(b"begun\n", b"")
