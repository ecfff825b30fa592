"""Runs whose scenario options for little memory: measured within it, or told that nobody can see to it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from support.sandbox import read_json

from loadstone.private_server.memory_limit import choose_groups

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Sandbox

WISHES = '[private_server]\nmemory = "96MB"\nsettings = { shared_buffers = "16MB", work_mem = "1MB" }\n'


def limited(sandbox: Sandbox, options: str = WISHES) -> Path:
    """Write a scenario that inserts rows, on a server with little memory."""
    folder = sandbox.inserts(seconds=3)
    with (folder / "scenario.toml").open("a") as file:
        file.write(options)
    return folder


@pytest.mark.slow
def test_a_scenarios_wishes_reach_its_private_server_and_the_watchers_see_its_group(sandbox: Sandbox) -> None:
    can = not isinstance(choose_groups("probe"), str)
    ended = sandbox.measure(limited(sandbox), "--setting", "work_mem=2MB")
    assert ended.code == 0, ended.err
    (target,) = (sandbox.work / "out" / "targets").iterdir()
    samples = [json.loads(line)["group"] for line in (target / "monitor.jsonl").read_text().splitlines()]
    document = read_json(target / "target.json")
    settings = {entry["name"]: entry["value"] for entry in document["settings"]}
    assert (settings["shared_buffers"], settings["work_mem"]) == ("16MB", "2MB")
    assert document["memory_limit_bytes"] == (96 << 20 if can else None)
    if can:
        assert {sample["limit_bytes"] for sample in samples} == {96 << 20}
        assert all(0 < sample["memory_bytes"] <= 96 << 20 for sample in samples)
    else:
        assert any("is not limited to 100,663,296 bytes" in note for note in ended.told("note"))


@pytest.mark.slow
def test_where_no_group_can_be_made_the_run_goes_on_and_says_so(sandbox: Sandbox) -> None:
    prefix = sandbox.as_ordinary_user() if os.geteuid() == 0 else ()
    ended = sandbox.measure(limited(sandbox), prefix=prefix)
    assert ended.code == 0, ended.err
    (target,) = (sandbox.work / "out" / "targets").iterdir()
    alone = read_json(target / "target.json")["memory_limit_bytes"] is None
    told = any("is not limited to 100,663,296 bytes as requested" in note for note in ended.told("note"))
    assert alone == told
    assert alone or os.geteuid() != 0, "root's groups are not nobody's to make"


def test_a_limit_in_which_no_server_lives_is_bad_input(sandbox: Sandbox) -> None:
    ended = sandbox.measure(limited(sandbox, '[private_server]\nmemory = "20MB"\n'))
    if isinstance(choose_groups("probe"), str):
        assert ended.code == 0, ended.err
        return
    assert ended.code == 1
    assert "20,971,520 bytes of memory are too little for a private server" in ended.err
    assert "MB or more, or lower these settings" in ended.err
    assert not ended.folder.exists()
