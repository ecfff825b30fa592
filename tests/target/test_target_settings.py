"""Settings of one target: how they are written, hidden, and set."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.errors import LoadstoneError
from loadstone.run import Request
from loadstone.run.remembered import asked_document, with_what_was_asked
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_target, parse_targets
from loadstone.target.settings import split_settings, with_settings

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Sandbox

NAMES = st.from_regex(r"\A[a-z]+(?:_[a-z]+){0,2}\Z").filter(
    lambda name: "pass" not in name and "key" not in name and "secret" not in name and "token" not in name
)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(
    st.sampled_from(["pg18", "pg:/opt/bin", "postgres://u@h/d?sslmode=require", "postgres://u@h/d"]),
    st.dictionaries(NAMES, VALUES, max_size=4),
)
def test_settings_are_read_as_they_were_written(place: str, settings: dict[str, str]) -> None:
    assert split_settings(with_settings(place, settings)) == (place, settings)


@given(st.text(max_size=40).filter(lambda text: "setting." not in text))
def test_a_target_without_settings_is_left_alone(text: str) -> None:
    assert split_settings(text) == (text, {})


def test_a_target_with_settings_is_told_from_the_same_without() -> None:
    plain, own = parse_targets(["pg18", "pg18?setting.shared_buffers=1GB&setting.jit=off"])
    assert (plain.id, own.id) == ("pg18", "pg18-shared-buffers-1gb-jit-off")
    assert own.settings == {"shared_buffers": "1GB", "jit": "off"}
    assert own.embedded == "pg18"
    assert parse_target(own.without_password()).settings == own.settings
    assert parse_target(own.url).url == own.url


def test_a_url_keeps_its_other_parameters() -> None:
    target = parse_target("postgres://u@h/d?sslmode=require&setting.work_mem=7MB&application_name=x")
    assert target.connection is not None
    assert target.connection.sslmode == "require"
    assert target.settings == {"work_mem": "7MB"}


def test_a_secret_setting_is_not_shown() -> None:
    target = parse_target("pg18?setting.app.password=hunter2")
    shown = (target.url, target.id, target.without_password(), target.settings_text)
    assert not any("hunter2" in text for text in shown)
    assert target.settings == {"app.password": "hunter2"}


@pytest.mark.parametrize("text", ["pg18?setting.jit", "pg18?setting.=1", "pg?setting.a=1&setting.a=2"])
def test_a_setting_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(LoadstoneError, match="setting") as refused:
        parse_target(text)
    assert refused.value.hint


def test_a_run_that_goes_on_has_the_settings_of_its_targets(tmp_path: Path) -> None:
    texts = ["pg18", "pg18?setting.shared_buffers=1GB", "postgres://u@h/d?setting.work_mem=7MB"]
    asked = Request([find_scenario("flights")], texts)
    (tmp_path / "run.json").write_text(
        json.dumps({"format": 2, "asked": asked_document(asked, parse_targets(texts))})
    )
    got = with_what_was_asked(Request([find_scenario("flights")], ["pg"], resume=tmp_path), frozenset())
    assert [one.settings for one in parse_targets(got.targets)] == [
        one.settings for one in parse_targets(texts)
    ]


def test_a_secret_setting_must_be_given_again(tmp_path: Path) -> None:
    texts = ["pg18?setting.app.password=hunter2"]
    asked = asked_document(Request([find_scenario("flights")], texts), parse_targets(texts))
    assert "hunter2" not in json.dumps(asked)
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, "asked": asked}))
    with pytest.raises(LoadstoneError, match="whole value of --target"):
        with_what_was_asked(Request([find_scenario("flights")], ["pg"], resume=tmp_path), frozenset())


def test_targets_differ_by_a_setting_and_alternate(sandbox: Sandbox) -> None:
    own = "pg18?setting.work_mem=7MB&setting.shared_buffers=32MB"
    ended = sandbox.measure(sandbox.inserts(seconds=1), "--target", "pg18", "--target", own, "--repeat", "2")
    assert ended.code == 0, ended.err
    found = {target["id"]: target for target in ended.summary["targets"]}
    assert list(found) == ["pg18", "pg18-work-mem-7mb-shared-buffers-32mb"]
    settings = [{s["name"]: s["value"] for s in target["settings"]} for target in found.values()]
    assert [one.get("work_mem") == "7MB" for one in settings] == [False, True]
    assert settings[1]["shared_buffers"] == "32MB"
    assert found["pg18"]["short_label"].endswith("(pg18)")
    begun = sorted(
        (phase["start_s"], phase["repeat"], phase["target"] == "pg18")
        for phase in ended.summary["phases"]
        if phase["id"] == "insert"
    )
    assert [(repeat, first) for _, repeat, first in begun] == [(1, True), (1, False), (2, False), (2, True)]
