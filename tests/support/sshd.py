"""An ssh server on loopback, and ssh's own command stood in for by a shell."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "LOADSTONE_TEST_SSHD"
"""What tells the processes of one server's sessions from all others of this machine."""
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


@dataclass(frozen=True)
class Sshd:
    """A running server; `command` is ssh with the key to log in, `known` the file of known hosts."""

    port: int
    command: str
    known: Path
    host_key: str
    folder: Path

    def processes(self, *words: str) -> set[int]:
        """Return the processes of its sessions, or those that have one of the words as an argument."""

        def is_ours(process: psutil.Process) -> bool:
            with contextlib.suppress(psutil.Error):
                there = process.environ().get(MARK) == str(self.folder)
                return there and (not words or any(word in process.cmdline() for word in words))
            return False

        return {process.pid for process in psutil.process_iter() if is_ours(process)}


@contextlib.contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    """Run a server with keys of its own, for the user of the tests; skips where there is none."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        pytest.skip("needs sshd and ssh-keygen")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/authorized\nUsePAM no\nPasswordAuthentication no\n"
        f"SetEnv {MARK}={folder}\n"
    )
    known = folder / "known"
    (folder / "ssh_config").write_text(
        f"Host *\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {known}\n"
        "  GlobalKnownHostsFile /dev/null\n"
    )
    kind, key = (folder / "host.pub").read_text().split()[:2]
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    command = [SSHD, "-f", str(folder / "sshd_config"), "-D", "-e"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert any("Server listening" in line for line in server.stderr)
            host_key = f"[127.0.0.1]:{port} {kind} {key}\n"
            yield Sshd(port, f"ssh -F {folder}/ssh_config", known, host_key, folder)
        finally:
            server.terminate()


def local_shell(folder: Path, *, python: bool) -> str:
    """Return a command in ssh's place that runs what the other machine would run, here."""
    path = folder / "ssh"
    tools = folder / "bin"
    tools.mkdir()
    for name in ("sh", "cat", "date", "ls"):
        (tools / name).symlink_to(str(shutil.which(name)))
    if python:
        (tools / "python3").symlink_to(Path(sys.executable).resolve())
    path.write_text(
        f'#!/bin/sh\necho "Welcome to a login shell"\nfor last; do :; done\nPATH={tools} eval "$last"\n'
    )
    path.chmod(0o755)
    return str(path)
