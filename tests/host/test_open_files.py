"""Limits of open files are found, and raised where that is allowed, before a target is opened."""

from __future__ import annotations

import os
import resource
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.sandbox import COMMAND, PHASE, SCENARIO

from loadstone.errors import LoadstoneError
from loadstone.host.open_files import RESERVE, make_room_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_is_raised_as_far_as_it_must_be(limits: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (RESERVE, limits[1]))
    make_room_for(100)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert RESERVE + 100 < soft < RESERVE + 100 + 1000
    assert hard == limits[1]
    make_room_for(10)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_a_hard_limit_in_the_way_is_refused_with_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(
        LoadstoneError, match=r"^8000 connections need 8\d{3} open files, .* may have only 4096"
    ) as caught:
        make_room_for(8000)
    assert "ulimit -n 8" in caught.value.hint


@pytest.mark.slow
def test_a_run_is_refused_before_anything_begins(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "one.pgbench").write_text("select 1;\n")
    phase = PHASE.format(id="one", script="one.pgbench", settings="duration_s = 1").replace(
        "= 2\n", "= 900\n"
    )
    (folder / "scenario.toml").write_text(SCENARIO.format(name="own", phases=phase))
    # Nobody listens there: a run that gets as far as the target says so instead.
    target = "postgres://u@127.0.0.1:1/x"
    unprivileged = ("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource")
    limited = ("prlimit", "--nofile=1000:1000", *(unprivileged if os.geteuid() == 0 else ()))
    command = (COMMAND, "run", folder, "--target", target, "--out", tmp_path / "out", "--no-calibrate")
    done = subprocess.run(
        [*limited, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 1, done.stderr
    assert "900 connections need 1" in done.stderr
    assert not (tmp_path / "out").exists()
