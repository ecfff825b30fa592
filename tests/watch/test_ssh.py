"""A machine watched over ssh: by its Python, by its shell, and when that does not work."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sandbox import wait_until
from support.sshd import local_shell, sshd

from loadstone.errors import LoadstoneError
from loadstone.host.procfs import Host
from loadstone.target import parse_targets
from loadstone.watch.remote_program import server_root
from loadstone.watch.shell import ShellAnswers
from loadstone.watch.spec import specs_of
from loadstone.watch.ssh import OverSsh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.slow  # many programs are started


@contextlib.contextmanager
def watching(command: str, port: int = 22, names: Sequence[str] = ()) -> Iterator[OverSsh]:
    asked = ["pg18"]
    (spec,) = specs_of([f"ssh://127.0.0.1:{port}"], asked, parse_targets(asked), {})
    source = OverSsh(spec, names, {"LOADSTONE_SSH": command})
    try:
        yield source
    finally:
        source.close()


@pytest.mark.parametrize("python", [True, False], ids=["python", "shell"])
def test_the_sampler_over_ssh_says_what_the_local_one_says(tmp_path: Path, *, python: bool) -> None:
    name = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    with watching(local_shell(tmp_path, python=python), names=[name]) as source:
        assert source.check() == ("/proc by its Python" if python else "/proc by its shell, once a second")
        source.served_by(os.getpid())
        before = Host().sample()
        answer = source.ask()
        after = Host().sample()
        assert answer.host is not None
        for key in ("user", "system", "idle"):
            assert before["cpu_s"][key] <= answer.host["cpu_s"][key] <= after["cpu_s"][key]
        assert answer.host["cores"] == after["cores"]
        assert answer.host["memory_total_bytes"] == after["memory_total_bytes"]
        assert before["disk"]["write_ops"] <= answer.host["disk"]["write_ops"] <= after["disk"]["write_ops"]
        assert set(answer.host) == set(after)
        assert answer.server is not None, source.not_observed
        assert answer.server["processes"] >= 1
        assert abs(answer.t_ns - time.monotonic_ns()) < 10e9
        offset_s, error_s = (
            source.clock.wall_offset_s(time.time_ns() - time.monotonic_ns()),  # noqa: TID251
            source.clock.error_s,
        )
        assert offset_s is not None
        assert error_s is not None
        assert abs(offset_s) < error_s + 1.1  # a shell shows whole seconds
        assert bool(source.not_observed) is not python


def test_the_cpu_of_the_servers_processes_is_counted_as_here(tmp_path: Path) -> None:
    with (
        subprocess.Popen(["yes"], stdout=subprocess.DEVNULL) as busy,
        watching(local_shell(tmp_path, python=True), names=["yes"]) as source,
    ):
        source.check()
        source.served_by(busy.pid)
        process = psutil.Process(busy.pid)
        begun_s = cpu_s(process)
        first = source.ask().server
        seen_s = cpu_s(process)
        wait_until(lambda: cpu_s(process) > seen_s + 0.3, "there is something to be counted")
        before_s = cpu_s(process)
        second = source.ask().server
        ended_s = cpu_s(process)
        busy.kill()
    assert first is not None
    assert second is not None
    spent_s = sum(second[key] - first[key] for key in ("cpu_user_s", "cpu_system_s"))
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    assert before_s - seen_s - 2 * tick_s <= spent_s <= ended_s - begun_s + 2 * tick_s


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def processes(source: OverSsh) -> list[psutil.Process]:
    """Return ssh and what it has started."""
    assert source._link is not None
    first = psutil.Process(source._link._process.pid)
    return [first, *first.children(recursive=True)]


def test_nothing_is_left_when_the_connection_ends(tmp_path: Path) -> None:
    with watching(local_shell(tmp_path, python=True)) as source:
        source.check()
        started = processes(source)
    _, alive = psutil.wait_procs(started, timeout=120)
    assert alive == []


def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    with watching(local_shell(tmp_path, python=True)) as source:
        source.check()
        for process in processes(source):
            process.kill()
        with pytest.raises(LoadstoneError, match="cannot be watched"):
            source.ask()
        assert source.ask().host is not None


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo 'no route to it' >&2; exit 255", "no route to it"),
        ("echo loadstone-watch python; read -r n; exit 3", "cannot be watched"),
        (
            "echo loadstone-watch python; read -r n; echo '[]'; read -r n",
            "does not answer as the sampler does",
        ),
        ("echo loadstone-watch sh; while read -r q; do echo x; echo ==end; done", "does not show /proc"),
        ("yes", "answers more than"),
    ],
    ids=["refused", "ends", "other words", "other files", "endless"],
)
def test_what_is_no_sampler_is_refused(tmp_path: Path, script: str, words: str) -> None:
    path = tmp_path / "ssh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    with watching(str(path)) as source, pytest.raises(LoadstoneError, match=words):
        source.check()


def test_over_a_real_server_and_only_with_a_known_key(tmp_path: Path) -> None:
    with sshd(tmp_path) as server:
        refused = pytest.raises(LoadstoneError, match="Host key verification failed")
        with watching(server.command, server.port) as source, refused:
            source.check()
        server.known.write_text(server.host_key)
        with watching(server.command, server.port) as source:
            assert source.check() == "/proc by its Python"
            assert source.ask().host is not None
            assert source.clock.error_s is not None
            assert source.clock.error_s < 2.0
            assert server.processes()
        wait_until(lambda: not server.processes(), "nothing of it is left over there")


def test_the_servers_first_process_is_found_by_one_that_serves_us() -> None:
    two_servers = {10: 1, 11: 10, 12: 11, 20: 1, 21: 20}
    assert server_root(two_servers, 12) == (10, "")
    assert server_root({10: 1, 11: 10}, 99) == (10, "")
    assert server_root(two_servers, None)[0] is None
    assert "2 servers" in server_root(two_servers, None)[1]
    assert "no servers" in server_root({}, 7)[1]


@given(
    st.lists(st.sampled_from(["==uptime", "1.5 2", "==wall", "7", "==proc/stat", "cpu 1 2 3", "==processes"]))
    | st.lists(st.text(max_size=20))
)
def test_any_words_of_a_shell_are_read_or_refused(lines: list[str]) -> None:
    answers = ShellAnswers()
    text = "\n".join(lines).encode(errors="replace")
    try:
        with contextlib.suppress(LoadstoneError):
            answers.clocks(text)
        with contextlib.suppress(LoadstoneError):
            answers.sample(text, ["postgres"], 5)
    finally:
        answers.close()
