"""What an hour of a target costs: read from the command line, refused in words, kept for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.cli.terminal import Quiet
from loadstone.errors import LoadstoneError
from loadstone.run import Request, execute
from loadstone.run.prices import prices_of
from loadstone.scenario.scenario import find_scenario
from loadstone.target import parse_targets

if TYPE_CHECKING:
    from pathlib import Path

URL = "postgres://me:s3cr3t@db1:5433/bench?options=-c%20jit%3Doff&connect_timeout=5"
LIBPQ = "host=db2 dbname=bench password=s3cr3t"
ASKED = ("pg", URL, LIBPQ, "duckdb:")
TARGETS = parse_targets(ASKED)


def prices(*texts: str) -> dict[str, float]:
    return prices_of(texts, ASKED, TARGETS)


def test_a_target_is_named_by_its_id_or_as_it_was_given() -> None:
    ids = [target.id for target in TARGETS]
    assert prices() == {}
    assert prices(f"{ids[0]}=2.50/h", "duckdb: =0.125/h") == {ids[0]: 2.5, ids[3]: 0.125}
    assert prices(*(f"{text}={number}/h" for number, text in enumerate(ASKED, 1))) == {
        id_: float(number) for number, id_ in enumerate(ids, 1)
    }


@given(st.integers(1, 10**9 - 1), st.integers(0, 999))
def test_a_price_is_what_was_written(whole: int, thousandths: int) -> None:
    assert prices(f"pg={whole}.{thousandths:03}/h") == {TARGETS[0].id: float(f"{whole}.{thousandths:03}")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pg", "is not the price of a target"),
        ("pg=", "is not the price of a target"),
        ("pg=2.50", "TARGET=2.50/h"),
        ("pg=0/h", "a number above 0"),
        ("pg=-1/h", "is not the price of a target"),
        ("pg=$2/h", "without currency"),
        ("pg=2,50/h", "is not the price of a target"),
        ("pg=inf/h", "is not the price of a target"),
        ("pg=1e3/h", "is not the price of a target"),
        ("pg=٣/h", "is not the price of a target"),
        ("=2/h", "is not the price of a target"),
        ("pg17=2/h", "is not for a target of this run"),
        ("pg17=2/h", f"by their ids: {TARGETS[0].id}, "),
    ],
)
def test_what_is_no_price_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(LoadstoneError) as caught:
        prices(text)
    assert words in f"{caught.value.message} {caught.value.hint}"


def test_one_target_has_one_price() -> None:
    with pytest.raises(LoadstoneError, match=f"the target '{TARGETS[0].id}' has two prices"):
        prices("pg=1/h", f"{TARGETS[0].id}=1/h")


@pytest.mark.parametrize("text", [URL.replace("db1", "db3"), LIBPQ.replace("db2", "db3"), URL[:-1]])
def test_no_password_is_repeated(text: str) -> None:
    for price in (f"{text}=2/h", f"{text}=dear/h"):
        with pytest.raises(LoadstoneError) as caught:
            prices(price)
        assert "s3cr3t" not in f"{caught.value.message} {caught.value.hint}"


def test_a_wrong_price_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    nobody = "postgres://nobody@127.0.0.1:1/none"
    request = Request([find_scenario("iot-feed")], [nobody], "tiny", out=out, prices=["pg18=2.50/h"])
    with pytest.raises(LoadstoneError, match="is not for a target of this run"):
        execute(request, Quiet())
    assert not out.exists()
