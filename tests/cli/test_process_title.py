"""Passwords of our own command line, as `ps` shows it."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from loadstone.cli.process_title import hidden

CHILD = """
import sys
from pathlib import Path
from loadstone.cli.process_title import hide_passwords
hide_passwords()
sys.stdout.buffer.write(Path("/proc/self/cmdline").read_bytes())
sys.stdout.buffer.write(b"|" + " ".join(sys.argv[1:]).encode())
"""


def shown(*arguments: str) -> tuple[list[str], str]:
    command = [sys.executable, "-c", CHILD, *arguments]
    out = subprocess.run(command, capture_output=True, check=True).stdout
    line, _, own = out.rpartition(b"|")
    return [part.decode() for part in line.split(b"\0")[3:] if part], own.decode()


def test_others_see_no_password_and_we_still_have_it() -> None:
    arguments = (
        "run",
        "--target",
        "postgres://me:s3cr3t word@host/db",
        "host=h password=s3cr3t dbname=d",
        "ü",
    )
    line, own = shown(*arguments)
    assert line == ["run", "--target", "postgres://me:***@host/db", "host=h password=*** dbname=d", "ü"]
    assert own == " ".join(arguments)


def test_a_password_shorter_than_what_stands_for_it() -> None:
    line, _ = shown("postgres://me:p@host/db", "after")
    assert line[0].startswith("postgres://me:*")
    assert ":p@" not in line[0]
    assert line[1] == "after"


def test_without_passwords_nothing_changes() -> None:
    assert shown("run", "", "--size", "tiny")[0] == ["run", "--size", "tiny"]


@given(st.lists(st.text().map(lambda text: text.replace("\0", "").encode(errors="surrogateescape")[:50])))
def test_no_length_ever_changes(arguments: list[bytes]) -> None:
    line = b"".join(argument + b"\0" for argument in arguments)
    assert len(hidden(line)) == len(line)
