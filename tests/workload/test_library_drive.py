"""Queries through a client library, driven by the core: DuckDB, and libraries whose answers are known."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from support.table_loads import opened_at

from loadstone.engine.library.client import Client, Library
from loadstone.engine.library.engine import LibraryEngine
from loadstone.errors import LoadstoneError
from loadstone.model import Pace
from loadstone.signals import Signals
from loadstone.summary.histograms import read_log
from loadstone.workload.drive import perform
from loadstone.workload.queries.answer import digest
from loadstone.workload.queries.clients import EngineAsker, QueryingLibrary
from loadstone.workload.queries.execution import QueryOptions, perform_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from loadstone.engine.library.client import Clients
    from loadstone.target import OpenTarget

pytestmark = pytest.mark.slow

SLOW = "select count(*) from range(400000) t(i) where sqrt(i) > 1"
ENDLESS = "select count(*) from range(100000000000) t(i) where i % 3 = 1"
FIRST = pa.table({"state": ["CA", None, "TX", "NY"], "mean": [1.5, 2.5, None, 4.5]})


WAYS = pytest.mark.parametrize("way", ["python", "core"])


@pytest.fixture(scope="module")
def duckdb() -> Iterator[OpenTarget]:
    with opened_at("duckdb:") as opened:
        yield opened


def document(folder: Path, texts: list[str], **more: Any) -> dict[str, Any]:
    file = folder / "queries.jsonl"
    file.write_text("".join(json.dumps([0, text]) + "\n" for text in texts))
    queries = {"labels": ["a"], "file": str(file), "loop": True, "answers": "digest", "answers_max": 100}
    queries |= more.pop("queries", {})
    usual = {
        "queries": queries, "clients": 1, "pace": {"kind": "closed"}, "interval_s": 0.1,
        "out_dir": str(folder), "duration_s": 1.0, "timeout_s": 60.0, "seed": 1,
    }  # fmt: skip
    return usual | more


def clients(duckdb: OpenTarget, way: str) -> Clients:
    """Return clients that call a Python object, or the core's own."""
    assert isinstance(duckdb.engine, LibraryEngine)
    if way == "python":
        return QueryingLibrary(EngineAsker(duckdb))
    with closing(duckdb.connect("test")) as control:
        found = duckdb.engine.query_clients(control)
    assert found is not None
    return found


def asked(
    duckdb: OpenTarget, folder: Path, texts: list[str], way: str = "python", **more: Any
) -> dict[str, Any]:
    """Let DuckDB answer; the account's counts hold the equation, whichever way it ended."""
    account = perform(document(folder, texts, **more), None, library=clients(duckdb, way))
    windows = [(account["counts"], 1), *((s["counts"], 1) for s in account["scripts"])]
    for counts, sign in [*windows, (account["warmup_counts"], -1)]:
        ended = sum(counts[key] for key in ("done", "failed", "skipped", "dropped"))
        assert counts["scheduled"] + sign * counts["carried"] == ended
    return account


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "series.jsonl").read_text().splitlines()]


def test_a_saturated_engine_stops_at_the_deadline_and_what_it_dropped_is_counted(
    duckdb: OpenTarget, tmp_path: Path
) -> None:
    account = asked(duckdb, tmp_path, [SLOW], pace={"kind": "fixed", "rate_per_s": 5_000.0}, clients=2)
    assert account["state"] == "complete"
    assert (account["end_ns"] - account["start_ns"]) / 1e9 < 20
    counts = account["counts"]
    assert counts["scheduled"] == 5_000
    assert counts["dropped"] > 100
    assert account["response"]["mean_ns"] > 2 * account["service"]["mean_ns"], "from the intended start"
    assert account["lag"]["count"] == counts["done"] == sum(line["done"] for line in lines(tmp_path))


def test_a_latency_limit_skips_what_is_late_already(duckdb: OpenTarget, tmp_path: Path) -> None:
    pace = {"kind": "fixed", "rate_per_s": 5_000.0}
    account = asked(duckdb, tmp_path, [SLOW], pace=pace, latency_limit_ms=50.0)
    counts = account["counts"]
    assert counts["skipped"] > 100
    assert counts["scheduled"] == 5_000
    assert account["response"]["mean_ns"] < 1e9


def test_a_warm_up_is_left_out_of_every_figure(duckdb: OpenTarget, tmp_path: Path) -> None:
    account = asked(duckdb, tmp_path, ["select 1 as one"], warmup_s=0.4, duration_s=0.4)
    assert account["measure_ns"] - account["start_ns"] == 400_000_000
    assert account["deadline_ns"] - account["measure_ns"] == 400_000_000
    warm, counts = account["warmup_counts"], account["counts"]
    assert warm["done"] > 0
    assert account["service"]["count"] <= counts["done"] > 0
    written = lines(tmp_path)
    assert sum(line["done"] for line in written if line["warmup"]) == warm["done"]
    assert sum(line["done"] for line in written if not line["warmup"]) == counts["done"]


@pytest.mark.parametrize("kind", ["poisson", "fixed"])
def test_the_seed_decides_random_starts(duckdb: OpenTarget, tmp_path: Path, kind: str) -> None:
    """Of starts that are all taken in time, as many are scheduled as the seed says."""
    scheduled = []
    for seed in (1, 1, 2, 3):
        pace = {"kind": kind, "rate_per_s": 300.0}
        account = asked(duckdb, tmp_path, ["select 1 as one"], pace=pace, seed=seed, duration_s=0.5)
        scheduled.append(account["counts"]["scheduled"])
    assert scheduled[0] == scheduled[1]
    assert (len(set(scheduled)) > 1) == (kind == "poisson")


def test_burn_in_is_counted_apart_and_all_is_written_as_over_the_wire(
    duckdb: OpenTarget, tmp_path: Path
) -> None:
    texts = [f"select {n} as n" for n in range(20)]
    queries = {"loop": False, "burn_in": 5, "answers": "digest", "answers_max": 12}
    account = asked(duckdb, tmp_path, texts, queries=queries, duration_s=None, clients=3)
    assert (account["warmup_counts"]["done"], account["counts"]["done"]) == (5, 15)
    assert account["service"]["count"] == 15
    assert (account["io"], account["mode"], account["client_cpu"], account["loop"]) == (
        "driver", "driver", None, None,
    )  # fmt: skip
    (label,) = account["queries"]["labels"]
    assert (label["service"]["count"], label["rows"]) == (15, 20)
    assert len(account["queries"]["answers"]) == 12
    assert account["queries"]["answers_left_out"] == 8
    written = lines(tmp_path)
    assert all(a["end_ns"] == b["start_ns"] for a, b in pairwise(written))
    assert {line.tag for line in read_log(tmp_path / "latency.hlog")} == {"response", "statement-0.0"}
    assert json.loads((tmp_path / "drive.json").read_text()) == account


@WAYS
def test_a_time_limit_ends_a_query_and_its_client_goes_on(
    duckdb: OpenTarget, tmp_path: Path, way: str
) -> None:
    account = asked(
        duckdb,
        tmp_path,
        [ENDLESS, "select 1 as one"],
        way,
        queries={"loop": False},
        duration_s=None,
        timeout_s=0.3,
    )
    assert (account["counts"]["failed"], account["counts"]["done"]) == (1, 1)
    (error,) = account["errors"]
    assert (error["sqlstate"], error["message"]) == ("timeout", "no answer within 0.3 s")


@WAYS
def test_a_stop_has_the_grace_of_every_drive(duckdb: OpenTarget, tmp_path: Path, way: str) -> None:
    class Stopping(Signals):
        def during(self, stop: Callable[[], None] | None) -> None:
            if stop is not None:
                threading.Timer(0.3, stop).start()

    wanted = document(tmp_path, [ENDLESS], duration_s=None, queries={"loop": False})
    account = perform(wanted, Stopping(), library=clients(duckdb, way))
    assert (account["state"], account["counts"]["failed"]) == ("interrupted", 1)
    assert account["errors"][0]["sqlstate"] == "InterruptException"
    assert 2.0 <= (account["end_ns"] - account["start_ns"]) / 1e9 < 20


@WAYS
def test_what_fails_is_counted_by_class_with_its_first_words(
    duckdb: OpenTarget, tmp_path: Path, way: str
) -> None:
    queries = {"loop": False}
    texts = ["select nonsense", "select 1 as one", "select * from nowhere"]
    account = asked(duckdb, tmp_path, texts, way, queries=queries, duration_s=None)
    errors = {error["sqlstate"]: error["count"] for error in account["errors"]}
    assert errors == {"BinderException": 1, "CatalogException": 1}
    assert account["counts"]["done"] == 1
    (words,) = (e["message"] for e in account["errors"] if e["sqlstate"] == "CatalogException")
    assert words == "Catalog Error: Table with name nowhere does not exist!"
    brittle = asked(duckdb, tmp_path, texts, way, queries=queries, duration_s=None, on_error="abort_client")
    assert (brittle["state"], brittle["counts"]["failed"], brittle["counts"]["done"]) == ("aborted", 1, 0)
    assert "nonsense" in brittle["reason"]


def test_the_plan_and_its_seed_reach_the_drive(duckdb: OpenTarget, tmp_path: Path) -> None:
    options = QueryOptions(pace=Pace("poisson", 50.0), duration_s=0.3, seed=77, workers=2)
    account = perform_all([("one", "select 1 as one")], duckdb, tmp_path, None, None, options)
    assert (account["seed"], account["threads"], account["state"]) == (77, 2, "complete")
    assert account["pace"] == {"kind": "poisson", "rate_per_s": 50.0}


class Given(Library):
    """A library whose answers are known."""

    errors = (RuntimeError,)

    def __init__(self, answers: Callable[[int], Any], most: int = 100) -> None:
        self.answers, self.most, self.count, self.closed = answers, most, 0, 0

    def connect(self, number: int) -> Client:
        if number == self.most:
            raise LoadstoneError("one client too many", "Use fewer.")
        return _GivenClient(self)


class _GivenClient(Client):
    def __init__(self, library: Given) -> None:
        self._library = library

    def query(self, sql: str) -> Any:
        del sql
        self._library.count += 1
        return self._library.answers(self._library.count)

    def interrupt(self) -> None:
        """Nothing is running for long."""

    def close(self) -> None:
        self._library.closed += 1


def given(folder: Path, answers: Callable[[int], Any], times: int, **more: Any) -> dict[str, Any]:
    queries = {"max_queries": times}
    return perform(
        document(folder, ["q"], queries=queries, duration_s=None, **more), None, library=Given(answers)
    )


def raised(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (FIRST.take([3, 2, 1, 0]), None),
        (pa.concat_tables([FIRST.slice(2), FIRST.slice(0, 2)]), None),
        (FIRST.set_column(1, "mean", pa.array([1.5 + 1e-15, 2.5, None, 4.5])), None),
        (
            FIRST.set_column(1, "mean", pa.array([1.5 + 1e-6, 2.5, None, 4.5])),
            "column 2 (mean): sums differ by ",
        ),
        (FIRST.slice(1), "row count 4 here, 3 there"),
        (FIRST.take([0, 1, 2, 0]), "column 1 (state): texts differ"),
        (FIRST.select(["state"]), "column count 2 here, 1 there"),
    ],
    ids=["reversed", "in parts", "last digit", "a millionth", "fewer rows", "another row", "fewer columns"],
)
def test_an_answer_that_changes_is_a_failed_query(tmp_path: Path, other: pa.Table, words: str | None) -> None:
    account = given(tmp_path, lambda number: FIRST if number < 3 else other, 4)
    done = 4 if words is None else 2
    assert (account["counts"]["done"], account["counts"]["failed"]) == (done, 4 - done)
    assert [entry["digest"] for entry in account["queries"]["answers"]] == [digest(FIRST)]
    if words is not None:
        (error,) = account["errors"]
        assert error["sqlstate"] == "answer"
        assert f"query 0 returned another answer than before: {words}" in error["message"]


def test_what_is_no_trouble_of_the_database_ends_the_drive_and_is_raised(tmp_path: Path) -> None:
    for error in (MemoryError("no more"), OSError(28, "No space left on device"), ZeroDivisionError("a bug")):
        library = Given(lambda number, error=error: FIRST if number < 3 else raised(error))  # type: ignore[misc]
        with pytest.raises(type(error)) as found:
            perform(
                document(tmp_path, ["q"], duration_s=None, queries={"max_queries": 5}), None, library=library
            )
        assert found.value is error
        assert library.count == 3
        assert library.closed == 1


class RefusedError(RuntimeError):
    def __init__(self, sqlstate: str) -> None:
        super().__init__("not now")
        self.sqlstate = sqlstate


class Busy(Given):
    """A library with a code of its own for what another try may mend."""

    def is_retriable(self, error: BaseException) -> bool:
        return super().is_retriable(error) or getattr(error, "sqlstate", "") == "busy"


@pytest.mark.parametrize(
    ("library", "sqlstate", "counted"),
    [
        (Given, "40001", (1, 0, 2)),
        (Given, "busy", (0, 1, 0)),
        (Busy, "busy", (1, 0, 2)),
        (Busy, "XX000", (0, 1, 0)),
    ],
)
def test_the_library_says_what_is_tried_again(
    tmp_path: Path, library: type[Given], sqlstate: str, counted: tuple[int, int, int]
) -> None:
    wanted = document(tmp_path, ["q"], duration_s=None, tries_max=3, queries={"max_queries": 1})
    account = perform(
        wanted, None, library=library(lambda number: FIRST if number == 3 else raised(RefusedError(sqlstate)))
    )
    counts = account["counts"]
    assert (counts["done"], counts["failed"], account["retries"]) == counted


def test_a_client_that_cannot_connect_is_said_in_its_own_words(tmp_path: Path) -> None:
    library = Given(lambda _: FIRST, most=7)
    with pytest.raises(LoadstoneError, match="one client too many"):
        perform(document(tmp_path, ["q"], clients=9), None, library=library)
    assert library.closed == 7


def test_many_clients_lose_nothing(tmp_path: Path) -> None:
    account = given(tmp_path, lambda _: FIRST, 4_000, clients=16)
    assert account["counts"]["done"] == 4_000
    assert sum(line["done"] for line in lines(tmp_path)) == 4_000
    assert account["queries"]["labels"][0]["rows"] == 16_000


def test_a_library_and_a_connection_exclude_each_other(tmp_path: Path) -> None:
    wanted = document(tmp_path, ["q"])
    with pytest.raises(LoadstoneError, match="neither a connection nor a library is set"):
        perform(wanted, None)
    server = {"host": "h", "port": 1, "user": "u", "database": "d"}
    with pytest.raises(LoadstoneError, match="connects by itself"):
        perform(wanted | {"connection": server}, None, library=Given(lambda _: FIRST))
    queries = {**wanted["queries"], "answers": "rows"}
    with pytest.raises(LoadstoneError, match="digested or counted"):
        perform(wanted | {"queries": queries}, None, library=Given(lambda _: FIRST))
