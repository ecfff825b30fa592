"""The scenario `flights`: whole on a row store and a column store at once, and with a user's own rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.described import undescribed
from support.sandbox import read_json

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database, Ended, Sandbox

pytestmark = pytest.mark.slow

NAMES = ["Sql1", "Sql2", "Sql3", "Sql4", "Sql5"]
BRIEF = ("--set", "seconds=0.3")
"""As long as clients query at the same time: many times as long as a query of these few rows."""


def phases(ended: Ended, target: str, id_: str) -> list[dict[str, Any]]:
    """Give phase.json of each variant, in order."""
    paths = sorted(ended.folder.glob(f"targets/{target}/phases/*/phase.json"))
    return [found for found in map(read_json, paths) if found["id"] == id_]


def drive(ended: Ended, target: str, key: str) -> dict[str, Any]:
    (path,) = ended.folder.glob(f"targets/{target}/phases/*-{key}/drive.json")
    return read_json(path)


def complete(ended: Ended) -> None:
    assert ended.code == 0, ended.err
    assert {phase["state"] for phase in ended.summary["phases"]} <= {"complete", "skipped"}
    checks = [check for phase in ended.summary["phases"] for check in phase["checks"]]
    assert checks
    assert all(check["passed"] for check in checks)


def rows_file(sandbox: Sandbox, name: str, *options: object, rows: int = 3000) -> Path:
    """Write rows of the set as a user may have them."""
    path = sandbox.work / name
    made = sandbox.run("generate", "flights", "--rows", rows, "--out", path, *options, out=name)
    assert made.code == 0, made.err
    return path


def test_flights_is_whole_on_rows_and_on_columns(sandbox: Sandbox) -> None:
    ended = sandbox.measure(
        "flights", "--target", "pg", "--target", "duckdb:", "--price", "pg=2.50/h", "--price",
        "duckdb:=0.5/h", *BRIEF,
    )  # fmt: skip
    complete(ended)
    assert undescribed(ended.folder) == []
    assert {phase["state"] for phase in ended.summary["phases"]} == {"complete"}
    ids = [target["id"] for target in ended.summary["targets"]]
    assert ended.run["prices"] == dict(zip(ids, (2.5, 0.5), strict=True))
    for target in ids:
        (several,) = phases(ended, target, "import-workers")
        assert several["variant"] == {"workers": 2}
        (kept,) = phases(ended, target, "import")
        looks = kept["storage"]["looks"]
        assert [look["when"] for look in looks] == [
            "after the load",
            'after vacuum analyze "loadstone"."flights"',
        ]
        assert looks[-1]["tables"][0]["rows"] == 20_000
        for key in ("import-while-asked", "import"):
            assert drive(ended, target, key)["load"]["rows"] == 20_000
        (beside,) = ended.folder.glob(f"targets/{target}/phases/*-import-while-asked/queries/drive.json")
        asked = read_json(beside)
        assert [label["label"] for label in asked["queries"]["labels"]] == ["Sql5"]
        assert asked["counts"]["failed"] == 0
    for word in ("Sql4", "Vertica", "PG-Strom on cstore_fdw"):
        assert word in ended.report


def test_flights_asks_cold_and_warm_and_gets_equal_answers(sandbox: Sandbox) -> None:
    ended = sandbox.measure("flights", "--target", "pg", "--target", "duckdb:", "--set", "round=1,2", *BRIEF)
    complete(ended)
    ids = [target["id"] for target in ended.summary["targets"]]
    for target in ids:
        for number in (1, 2):
            plain_queries = drive(ended, target, f"queries-round-{number}")["plain_queries"]
            assert (plain_queries["table"], plain_queries["rows"]) == ("flights", 20_000)
            assert [query["name"] for query in plain_queries["queries"]] == NAMES
            runs = [(run["query"], run["kind"], run["state"]) for run in plain_queries["runs"]]
            for name in NAMES:
                assert runs.count((name, "cold", "done")) == 1
                assert runs.count((name, "warm", "done")) == 4
            assert all(run["seconds"] > 0 for run in plain_queries["runs"])
            assert all(query["wrong"] is None for query in plain_queries["queries"])
            assert [query["answer"]["rows"] for query in plain_queries["queries"]][:3] == [1, 1, 1]
            assert plain_queries["queries"][3]["answer"]["rows"] > 100
    for found in phases(ended, ids[1], "queries"):
        assert any(f"answers are those of {ids[0]}" in check["name"] for check in found["checks"])
    for target in ids:
        for clients in (1, 4):
            asked = drive(ended, target, f"concurrency-clients-{clients}")
            assert asked["counts"]["done"] > 0
            assert asked["counts"]["failed"] == 0
            assert asked["plain_queries"]["draws"] == [{"name": "distance", "least": 100, "most": 3000}]


@pytest.mark.parametrize("engine", ["chdb", "questdb"])
def test_flights_is_whole_on_engines_behind_their_own_drivers(
    sandbox: Sandbox, database: Database, engine: str
) -> None:
    """Private servers that are started anew for each cold run, and answer many clients by threads of ours."""
    ended = sandbox.measure("flights", "--target", database.url, "--target", f"{engine}:", *BRIEF)
    complete(ended)
    ids = [target["id"] for target in ended.summary["targets"]]
    plain_queries = drive(ended, ids[1], "queries-round-1")["plain_queries"]
    assert plain_queries["rows"] == 20_000
    assert all(query["wrong"] is None for query in plain_queries["queries"])
    kinds = [run["kind"] for run in plain_queries["runs"] if run["state"] == "done"]
    assert (kinds.count("cold"), kinds.count("warm")) == (5, 20)
    assert plain_queries["caches"]["emptied"]
    (found,) = phases(ended, ids[1], "queries")
    assert any(f"answers are those of {ids[0]}" in check["name"] for check in found["checks"])
    for clients in (1, 4):
        asked = drive(ended, ids[1], f"concurrency-clients-{clients}")
        assert (asked["counts"]["failed"], asked["counts"]["done"] > 0) == (0, True)
    assert drive(ended, ids[1], "import")["load"]["verified"]


def test_flights_takes_a_users_csv(sandbox: Sandbox, database: Database) -> None:
    path = rows_file(sandbox, "mine.csv", "--format", "csv", "--header")
    ended = sandbox.measure("flights", "--target", database.url, "--set", f"files={path}", *BRIEF)
    complete(ended)
    (target,) = (target["id"] for target in ended.summary["targets"])
    assert drive(ended, target, "import")["load"]["rows"] == 3000
    assert drive(ended, target, "queries-round-1")["plain_queries"]["rows"] == 3000


def test_flights_takes_a_users_parquet_on_every_engine(sandbox: Sandbox, database: Database) -> None:
    paths = [rows_file(sandbox, f"{n}.parquet", "--format", "parquet", "--first", n * 3000) for n in (0, 1)]
    files = ",".join(map(str, paths))
    ended = sandbox.measure(
        "flights", "--target", database.url, "--target", "duckdb:", "--set", f"files={files}",
        "--set", "format=parquet", *BRIEF,
    )  # fmt: skip
    complete(ended)
    assert {phase["state"] for phase in ended.summary["phases"]} == {"complete"}
    for target in ended.summary["targets"]:
        assert drive(ended, target["id"], "queries-round-1")["plain_queries"]["rows"] == 6000


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("airtime", "air_time"), "air_time"),
        (("flight_year,", ""), "flight_year"),
        (("flight_year,", "flight_year,flight_year,"), "flight_year"),
    ],
)
def test_flights_refuses_a_csv_with_another_column(
    sandbox: Sandbox, change: tuple[str, str], words: str
) -> None:
    path = rows_file(sandbox, "mine.csv", "--format", "csv", "--header", rows=10)
    head, _, rest = path.read_text().partition("\n")
    assert change[0] in head
    path.write_text(f"{head.replace(*change, 1)}\n{rest}")
    nobody = "postgres://nobody@127.0.0.1:1/none"
    ended = sandbox.quick("flights", "--size", "tiny", "--target", nobody, "--set", f"files={path}")
    assert ended.code == 1
    assert words in ended.err
    assert "mine.csv" in ended.err
    assert not ended.folder.exists()


def test_a_wrong_price_is_refused_before_anything_begins(sandbox: Sandbox) -> None:
    ended = sandbox.quick("flights", "--size", "tiny", "--target", "pg", "--price", "pg=cheap")
    assert ended.code == 1
    assert "TARGET=2.50/h" in ended.err
    assert not ended.folder.exists()
