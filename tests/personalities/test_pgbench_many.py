"""`loadstone pgbench` with more clients than a process may have files open."""

from __future__ import annotations

import ctypes
import resource
import subprocess
import sys

PR_CAPBSET_DROP = 24
CAP_SYS_RESOURCE = 24


def _limit() -> None:
    """Few open files, and no right to more: also for root."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE, 0, 0, 0)


def test_too_many_clients_for_the_open_files_are_refused_before_tables_are_touched() -> None:
    program = (
        "import sys; from loadstone.personalities import pgbench; "
        "from loadstone.personalities.pgbench import run; "
        "run.prepare = lambda *_: sys.exit('tables were touched'); "
        "sys.exit(pgbench.main(sys.argv[1:], sys.stdout.write, sys.stderr.write))"
    )
    arguments = ["-n", "-S", "-c10000", "-h/nowhere", "-Utester", "base"]
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, check=False, preexec_fn=_limit,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "pgbench: error: 10000 connections need 10" in ended.stderr
    assert " open files" in ended.stderr
    assert "pgbench: hint: Raise the limit before the run: ulimit -n 10" in ended.stderr
