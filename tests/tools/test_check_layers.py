"""The rule that modules of a Rust crate import only what is below them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from check_layers import findings, imports, in_crate  # noqa: E402

ORDER = ["clock error", "protocol", "load::rows load::queue", "load", "worker"]
FINE = {
    "": "mod clock; mod error; mod protocol; mod load; mod worker;",
    "clock": "use std::time::Duration;",
    "error": "use crate::clock::now;",
    "protocol": "use crate::error::{DriveError, self as other};",
    "load": "use self::rows::Rows;\nuse crate::protocol;",
    "load::rows": "use crate::{clock, protocol::{Session, wire::Frontend}};",
    "load::queue": "use super::rows::Rows;",
    "worker": "// use crate::nothing;\nfn f() { crate::load::run() }",
    "worker::client": "use super::Worker;",
}


def test_imports_that_follow_the_order_are_fine() -> None:
    assert list(in_crate(FINE, ORDER)) == []


@pytest.mark.parametrize(
    ("module", "text", "told"),
    [
        ("clock", "use crate::protocol::Session;", ["module clock: it imports protocol"]),
        ("protocol", "use crate::{clock, load::{rows::Rows, queue}};", ["load::queue", "load::rows"]),
        ("load::rows", "fn f() { super::super::worker::run() }", ["module load::rows: it imports worker"]),
        ("load::queue", "use super::Shared;", ["module load::queue: it imports load,"]),
        ("clock", "use crate::error::DriveError;", ["import each other"]),
        ("load::rows", "use crate::load::queue::Queue;", ["import each other"]),
        ("clock", "#[cfg(test)]\nmod tests {\n use super::*;\n use crate::worker::run;\n}", ["worker"]),
        ("load::names", "", ["module load::names: it has no layer"]),
        ("pace", "", ["module pace: it has no layer"]),
    ],
)
def test_what_is_against_the_order_is_told(module: str, text: str, told: list[str]) -> None:
    found = sorted(in_crate({**FINE, module: text}, ORDER))
    assert len(found) == len(told), found
    assert all(words in line for words, line in zip(told, found, strict=True)), found


def test_a_layer_of_no_module_is_told() -> None:
    assert list(in_crate(FINE, [*ORDER, "driver"])) == ["layer of driver: there is no such module"]


@pytest.mark.parametrize(
    "text",
    [
        'const A: &str = "crate::error::X";',
        'const A: &str = r#"use "crate::error::X""#;',
        "/* use crate::error::X; */",
        "/// As [`crate::error::X`].",
        "use other::crate_error::X;",
        "const Q: char = '\"'; // \" crate::error::X",
    ],
)
def test_texts_and_comments_import_nothing(text: str) -> None:
    assert imports("worker", {**FINE, "worker": text}) == set()


def test_a_path_ends_at_the_last_module_in_it() -> None:
    text = "pub(crate) use crate::load::rows::{Rows, Kind::*};\nlet x = crate::clock::Clock::<u8>::now();"
    assert imports("worker", {**FINE, "worker": text}) == {"load::rows", "clock"}


def test_the_layers_of_this_repository_hold() -> None:
    assert list(findings(ROOT)) == []
