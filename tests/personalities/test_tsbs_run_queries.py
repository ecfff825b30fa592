"""`loadstone tsbs run-queries`: TSBS's lines, every target, and answers that must be right."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pytest
from support.tsbs_data import END, END_NS, SCALE, START_NS, into_duckdb, into_postgres

from loadstone.personalities.tsbs import main
from loadstone.signals import Signals
from loadstone.workload.drive import perform
from loadstone.workload.queries.clients import QueryingLibrary
from loadstone.workload.tsbs.queries import Layout, Query, QuerySpec, generate, gob, kinds_of, mixed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

FIGURES = (
    r"min: +\d+\.\d\dms, med: +\d+\.\d\dms, mean: +\d+\.\d\dms, max: +\d+\.\d\dms, stddev: +\d+\.\d\dms, "
    r"sum: +\d+\.\dsec, count: (\d+)\n"
)


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def beyond(self) -> str:
        return self.out.partition("\nbeyond TSBS")[2]


def run(*arguments: object) -> Ran:
    out: list[str] = []
    err: list[str] = []
    code = main(["run-queries", *map(str, arguments)], out.append, err.append)
    return Ran(code, "".join(out), "".join(err))


def specs(use_case: str, count: int, layout: Layout | None = None) -> list[QuerySpec]:
    return [
        QuerySpec(use_case, kind, SCALE, START_NS, END_NS, 123, count, layout=layout or Layout())
        for kind in kinds_of(use_case)
    ]


def written(path: Path, queries: Iterator[Query] | list[Query]) -> Path:
    with path.open("wb") as file:
        gob.write(queries, file)
    return path


def by_flags(database: Database) -> list[str]:
    there = database.server.tcp_connection
    return [
        f"--hosts={there.host}",
        f"--port={there.port}",
        f"--user={there.user}",
        f"--pass={there.password}",
        f"--db-name={database.name}",
        "--postgres=sslmode=disable host=nowhere dbname=none user=nobody",
    ]


@pytest.fixture
def iot(database: Database, tmp_path: Path) -> tuple[Database, Path]:
    into_postgres(database, "iot")
    return database, written(tmp_path / "iot.gob", mixed(specs("iot", 3)))


# --- every kind, on every engine, with the same answer


@pytest.mark.slow
@pytest.mark.parametrize("use_case", ["cpu-only", "iot"])
def test_every_kind_has_the_same_answer_on_postgresql_and_duckdb(
    database: Database, tmp_path: Path, use_case: str
) -> None:
    into_postgres(database, use_case)
    into_duckdb(tmp_path / "d.duckdb", use_case)
    file = written(tmp_path / "q.gob", mixed(specs(use_case, 4)))
    ran = run("--file", file, f"--target={database.url} duckdb:{tmp_path}/d.duckdb", "--workers=2")
    assert ran.code == 0, ran.out
    found = re.search(r"answers compared with PostgreSQL .*: (\d+) queries, 0 wrong", ran.out)
    assert found is not None
    distinct = len({query.sql for query in mixed(specs(use_case, 4))})
    assert int(found[1]) == distinct
    assert "failed" not in ran.out


@pytest.mark.parametrize("use_case", ["cpu-only", "iot"])
def test_every_kind_runs_with_json_tags(database: Database, tmp_path: Path, use_case: str) -> None:
    """TSBS's own texts for that layout are not all SQL: what another database gets of them is."""
    into_postgres(database, use_case, jsonb_tags=True)
    file = written(tmp_path / "q.gob", mixed(specs(use_case, 1, Layout(use_json=True, use_tags=False))))
    ran = run("--file", file, f"--target={database.url}")
    assert ran.code == 0, ran.out
    assert f"Run complete after {len(kinds_of(use_case))} queries" in ran.out


@pytest.mark.slow
def test_an_answer_made_wrong_on_purpose_fails_the_run(iot: tuple[Database, Path], tmp_path: Path) -> None:
    database, file = iot
    answers = tmp_path / "answers.json"
    assert run("--file", file, f"--target={database.url}", f"--answers={answers}").code == 0
    same = run("--file", file, f"--target={database.url}", f"--compare-answers={answers}")
    assert same.code == 0
    assert re.search(r"compared with .*answers.json \(PostgreSQL .*\): \d+ queries, 0 wrong", same.out)
    # One value of one row.
    database.execute(
        "update readings set fuel_consumption = fuel_consumption + 1 where ctid = "
        "(select ctid from readings where velocity > 1 and tags_id in (select id from tags where "
        "fleet is not null and nominal_fuel_consumption is not null and name is not null) limit 1)"
    )
    wrong = run("--file", file, f"--target={database.url}", f"--compare-answers={answers}")
    assert wrong.code == 3
    named = re.findall(r"wrong answer to query \d+ \(TimescaleDB (.*?)\): (.*)", wrong.out)
    assert [label for label, _ in named] == ["average vs projected fuel consumption per fleet"]
    assert "avg_fuel_consumption" in named[0][1]


def test_answers_to_other_queries_are_not_compared(iot: tuple[Database, Path], tmp_path: Path) -> None:
    database, file = iot
    answers = tmp_path / "answers.json"
    run("--file", file, f"--target={database.url}", f"--answers={answers}")
    other = written(tmp_path / "other.gob", generate(specs("iot", 2)[1]))
    ran = run("--file", other, f"--target={database.url}", f"--compare-answers={answers}")
    assert ran.code == 1
    assert "are for other queries" in ran.err


def test_an_answer_that_changes_by_itself_is_wrong(tmp_path: Path) -> None:
    query = Query("mine", "mine", "t", "select random() as r")
    file = written(tmp_path / "q.gob", [query, query])
    ran = run("--file", file, f"--target=duckdb:{tmp_path}/d.duckdb")
    assert ran.code == 3
    assert "wrong: answer (x 1): query 0 returned another answer than before" in ran.out


# --- TSBS's lines


def test_the_report_has_tsbs_form(iot: tuple[Database, Path]) -> None:
    database, file = iot
    ran = run("--file", file, *by_flags(database), "--print-interval=10")
    assert ran.code == 0
    labels = sorted({query.label for query in mixed(specs("iot", 1))})
    width = max(map(len, labels))
    blocks = "".join(rf"{re.escape(label.ljust(width))}:\n{FIGURES}" for label in [*labels, "all queries"])
    head = r"Run complete after 39 queries with 1 workers \(Overall query rate \d+\.\d\d queries/sec\):\n"
    pattern = rf"{head}{blocks}wall clock time: \d+\.\d{{6}}sec\n\nbeyond TSBS, measured by loadstone:\n"
    found = re.match(pattern, ran.out)
    assert found is not None, ran.out
    assert [int(count) for count in found.groups()] == [3] * 13 + [39]
    assert "18 queries were translated into the target's SQL\n" in ran.beyond


def test_intervals_are_reported_as_they_pass(database: Database, tmp_path: Path) -> None:
    slow = Query("slow", "slow", "t", "select pg_sleep(0.02)")
    file = written(tmp_path / "q.gob", [slow] * 60)
    ran = run("--file", file, *by_flags(database), "--print-interval=10")
    rate = r"query rate: \d+\.\d\d queries/sec"
    head = rf"After (\d+) queries with 1 workers:\nInterval {rate}\tOverall {rate}\n"
    found = re.findall(rf"{head}(?:all queries:\n{FIGURES}slow       :\n{FIGURES})\n", ran.err)
    assert found
    for count, everything, slow_ones in found:
        assert 10 <= int(count) < 60
        assert count == everything == slow_ones
    assert "After" not in run("--file", file, *by_flags(database), "--print-interval=0").err


def test_burn_in_is_left_out(iot: tuple[Database, Path], tmp_path: Path) -> None:
    database, file = iot
    results, percentiles = tmp_path / "r.json", tmp_path / "h.txt"
    ran = run(
        "--file", file, *by_flags(database), "--burn-in=5", "--max-queries=30",
        f"--results-file={results}", f"--hdr-latencies={percentiles}",
    )  # fmt: skip
    assert ran.code == 0
    assert ran.err == "burn-in complete after 5 queries with 1 workers\n"
    assert "Run complete after 25 queries" in ran.out
    assert f"Saving results json file to {results}\n" in ran.out
    document = json.loads(results.read_text())
    assert list(document) == [
        "ResultFormatVersion", "RunnerConfig", "StartTime", "EndTime", "DurationMillis", "Totals",
    ]  # fmt: skip
    assert document["RunnerConfig"]["BurnIn"] == document["Totals"]["burnIn"] == 5
    assert document["Totals"]["overallQuantiles"]["all_queries"]["q100"] > 0
    assert "Total count    =           25]" in percentiles.read_text()


def test_prewarming_runs_each_query_twice(iot: tuple[Database, Path]) -> None:
    database, file = iot
    ran = run("--file", file, *by_flags(database), "--prewarm-queries", "--max-queries=10")
    assert "Run complete after 10 queries" in ran.out
    assert ran.code == 0
    for label, count in (("all", 20), ("cold", 10), ("warm", 10)):
        assert re.search(rf"{label} queries +:\n[^\n]*count: {count}\n", ran.out)


def test_texts_are_read_whatever_the_role_has_set_for_its_sessions(
    database: Database, tmp_path: Path
) -> None:
    role = f"alter role {database.server.connection.user} in database {database.name} set"
    for odd in ("DateStyle = 'SQL, DMY'", "IntervalStyle = 'sql_standard'", "bytea_output = 'escape'"):
        database.execute(f"{role} {odd}")
    sql = "select '2016-01-31 00:00+00'::timestamptz as s, '1 day'::interval as v, '\\x00ff'::bytea as b"
    file = written(tmp_path / "q.gob", [Query("mine", "mine", "t", sql)])
    answers = [tmp_path / "binary.jsonl", tmp_path / "text.jsonl"]
    for path, given in zip(answers, ([], ["--force-text-format"]), strict=True):
        ran = run("--file", file, *by_flags(database), f"--answers={path}", *given)
        assert ran.code == 0, ran.out + ran.err
    compared = run(
        "--file", file, *by_flags(database), "--force-text-format", f"--compare-answers={answers[0]}"
    )
    assert compared.code == 0, compared.out + compared.err


def test_responses_are_printed_as_tsbs_prints_them(database: Database, tmp_path: Path) -> None:
    sql = (
        "select 1.5::float8 as f, 'a<b' as t, 7 as i, 2.50::numeric as n, null as z, true as b, "
        "'2016-01-01 00:00:00.5+00'::timestamptz as s, '{\"a\": 1}'::jsonb as j, '1 day'::interval as v"
    )
    file = written(tmp_path / "q.gob", [Query("mine", "mine", "t", sql)])
    ran = run("--file", file, *by_flags(database), "--print-responses")
    text = ran.out.partition("Run complete")[0]
    document = json.loads(text)
    assert text.startswith('{\n  "query": "select 1.5::float8 as f, \'a\\u003cb\' as t,')
    assert document["query"] == sql
    (row,) = document["results"]
    stamp = row.pop("s")
    assert row == {
        "b": True, "f": 1.5, "i": 7, "j": "eyJhIjogMX0=", "n": "2.50", "t": "a<b", "v": "1 day", "z": None,
    }  # fmt: skip
    assert re.fullmatch(r"20(16|15)-\d\d-\d\dT\d\d:\d\d:00\.5(Z|[+-]\d\d:\d\d)", stamp)
    shown = run("--file", file, f"--target=duckdb:{tmp_path}/d.duckdb", "--print-responses", "--debug=1")
    assert shown.code == 2  # DuckDB has no jsonb
    assert "failed: " in shown.beyond


def test_the_plan_of_one_query_is_shown(iot: tuple[Database, Path], tmp_path: Path) -> None:
    database, file = iot
    ran = run("--file", file, *by_flags(database), "--show-explain")
    assert ran.out.startswith("EXPLAIN ANALYZE SELECT t.name AS name")
    assert "Execution Time" in ran.out
    assert "\n-----\n\nRun complete after 1 queries with 1 workers" in ran.out
    into_duckdb(tmp_path / "d.duckdb", "iot")
    ran = run("--file", file, f"--target=duckdb:{tmp_path}/d.duckdb", "--show-explain")
    assert ran.code == 0, ran.out
    assert "Total Time" in ran.out


# --- what goes wrong


def test_failing_queries_are_counted_by_sqlstate(iot: tuple[Database, Path]) -> None:
    database, file = iot
    database.execute("drop table diagnostics")
    ran = run("--file", file, *by_flags(database))
    assert ran.code == 2
    assert "Run complete after 24 queries" in ran.out
    assert re.search(r'failed: 42P01 \(x 15\): relation "diagnostics" does not exist', ran.beyond)


def test_a_query_that_cannot_be_translated_is_sent_as_it_is_or_refused(
    database: Database, tmp_path: Path
) -> None:
    own = Query("own", "own", "t", "select 1")
    file = written(tmp_path / "q.gob", [own])
    ran = run("--file", file, *by_flags(database))
    assert ran.code == 0
    assert '1 queries were sent untranslated: "own" is not a known kind of query' in ran.beyond
    ran = run("--file", file, *by_flags(database), "--strict-dialect")
    assert ran.code == 1
    assert "query 1 cannot be translated into the target's SQL" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--burn-in=5"], "--burn-in=5 with no --max-queries leaves nothing to measure"),
        (["--burn-in=5", "--max-queries=5"], "--burn-in=5 with --max-queries=5"),
        (["--workers=0"], "must have at least one worker"),
        (["--max-rps=5", "--rate=5"], "--max-rps and --rate exclude each other"),
        (["--duration=1s", "--max-queries=5"], "exclude each other"),
        (["--target=pg", "--hosts=a"], "--target and --hosts exclude each other"),
        (["--compare-answers=/nowhere"], "'/nowhere' cannot be read"),
        (["--postgres=password=x=y' z"], "libpq does not accept --postgres as a connection string"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_touched(arguments: list[str], words: str) -> None:
    ran = run("--file=/nowhere.gob", *arguments)
    assert ran.code == 1
    assert words in ran.err
    assert not ran.out


def test_a_damaged_file_is_refused_with_the_place(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "q.gob"
    data = written(file, mixed(specs("iot", 2))).read_bytes()
    file.write_bytes(data[: len(data) // 2])
    ran = run("--file", file, *by_flags(database))
    assert ran.code == 1
    assert re.search(r"is the file truncated\?\), at byte \d+", ran.err)
    missing = run("--file", tmp_path / "none.gob", *by_flags(database))
    assert missing.code == 1
    assert "cannot open file for read" in missing.err


# --- pace, hosts, workers


def test_an_open_loop_shows_how_long_queries_waited(database: Database, tmp_path: Path) -> None:
    slow = Query("slow", "slow", "t", "select pg_sleep(0.02)")
    file = written(tmp_path / "q.gob", [slow] * 40)
    ran = run("--file", file, *by_flags(database), "--rate=200", f"--out={tmp_path}/out")
    account = json.loads((tmp_path / "out" / "drive.json").read_text())
    assert account["response"]["mean_ns"] > 5 * account["service"]["mean_ns"]
    assert "response time, from the intended start" in ran.beyond


@pytest.mark.parametrize("target", ["postgres", "duckdb"])
def test_a_duration_goes_round_the_queries(database: Database, tmp_path: Path, target: str) -> None:
    file = written(tmp_path / "q.gob", [Query("one", "one", "t", "select 1 as one")])
    where = by_flags(database) if target == "postgres" else [f"--target=duckdb:{tmp_path}/d.duckdb"]
    ran = run("--file", file, *where, "--duration=700ms", "--workers=2", "--rate=100")
    assert ran.code == 0
    found = re.search(r"Run complete after (\d+) queries with 2 workers", ran.out)
    assert found is not None
    assert 35 <= int(found[1]) <= 75  # 70 were to begin; on a busy machine the last ones come too late


def test_hosts_share_the_queries(iot: tuple[Database, Path]) -> None:
    database, file = iot
    flags = by_flags(database)
    flags[0] += f",{database.server.tcp_connection.host}"
    ran = run("--file", file, *flags, "--workers=3")
    assert ran.code == 0
    assert "Run complete after 39 queries with 3 workers" in ran.out


@pytest.mark.slow
def test_an_early_end_cuts_off_what_takes_too_long(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('[0, "a"]\n[0, "b"]\n')
    slow = _Slow()
    signals = Signals()

    def stop() -> None:
        if slow.begun.wait(60) and signals._stop:
            signals._stop()

    threading.Thread(target=stop).start()
    account = perform(_document(tmp_path), signals, library=QueryingLibrary(slow))
    assert account["state"] == "interrupted"
    assert slow.asked == ["a"]
    assert account["errors"][0]["sqlstate"] == "_CutOffError"


def test_a_query_through_a_driver_has_a_time_limit(tmp_path: Path) -> None:
    (tmp_path / "q.gob").write_bytes(b"")
    query = Query("slow", "slow", "t", "select count(*) from range(100000000000) t(i) where i % 3 = 1")
    file = written(tmp_path / "q.gob", [query])
    begun = time.monotonic()
    ran = run("--file", file, f"--target=duckdb:{tmp_path}/d.duckdb", "--timeout=300ms")
    assert time.monotonic() - begun < 30
    assert ran.code == 2
    assert "failed: timeout (x 1): no answer within 0.3 s" in ran.beyond


class _CutOffError(Exception):
    pass


class _Slow:
    errors = (_CutOffError,)
    arrow = True

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun = threading.Event()
        self._cut = threading.Event()

    def connect(self, _name: str) -> Any:
        return _Closing()

    def answer(self, _connection: Any, sql: str) -> Any:
        self.asked.append(sql)
        self.begun.set()
        self._cut.wait(60)
        raise _CutOffError("cut off")

    def cut_off(self, _connection: Any, _name: str) -> None:
        self._cut.set()


class _Closing:
    def close(self) -> None:
        pass


def _document(folder: Path) -> dict[str, Any]:
    queries = {
        "labels": ["x"], "file": str(folder / "q.jsonl"), "loop": False, "max_queries": 0, "burn_in": 0,
        "answers": "digest", "answers_max": 10,
    }  # fmt: skip
    return {
        "queries": queries, "clients": 1, "pace": {"kind": "closed"}, "interval_s": 1.0, "seed": 1,
        "out_dir": str(folder), "duration_s": None, "timeout_s": 60.0,
    }  # fmt: skip


# --- figures and digests


def test_the_core_and_we_digest_alike(database: Database, tmp_path: Path) -> None:
    """Every type that both engines have: what the core reads from the wire, and we from Arrow."""
    sql = (
        "select i::integer as i, i::bigint as l, i::double precision / 7 as f, "
        "(i / 4.0)::numeric(9, 2) as n, i > 3 as b, 'x' || i as t, date '2016-01-01' + i::integer as d, "
        "timestamptz '2016-01-01 00:00:00+00' + i * interval '1 minute' as s, "
        "i * interval '90 minutes' as v, "
        "case when i > 5 then i end as z from generate_series(0, 9) as g(i)"
    )
    file = written(tmp_path / "q.gob", [Query("mine", "mine", "t", sql)])
    ran = run("--file", file, f"--target={database.url} duckdb:{tmp_path}/d.duckdb")
    assert ran.code == 0, ran.out
    assert "1 queries, 0 wrong" in ran.out


def test_duckdb_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    into_duckdb(path, "iot")
    with duckdb.connect(path) as connection:
        before = connection.execute(
            "select table_schema, table_name from information_schema.tables"
        ).fetchall()
    file = written(tmp_path / "q.gob", [msgspec.structs.replace(q) for q in mixed(specs("iot", 1))])
    assert run("--file", file, f"--target=duckdb:{path}").code == 0
    with duckdb.connect(path) as connection:
        after = connection.execute(
            "select table_schema, table_name from information_schema.tables"
        ).fetchall()
    assert before == after


def test_queries_are_generated_by_the_command(tmp_path: Path) -> None:
    out: list[str] = []
    err: list[str] = []
    file = tmp_path / "q.gob"
    arguments = [
        "generate-queries", "--use-case=iot", "--query-type=last-loc", f"--scale={SCALE}", "--seed=123",
        "--queries=4", "--format=timescaledb", f"--timestamp-end={END}", "--debug=2", f"--file={file}",
    ]  # fmt: skip
    assert main(arguments, out.append, err.append) == 0
    label = "TimescaleDB last location per truck"
    assert "".join(err) == "using random seed 123\n" + f"{label}\n" * 4 + f"{label}: 4 points\n"
    assert not out
    spec = QuerySpec("iot", "last-loc", SCALE, START_NS, END_NS, 123, 4)
    with file.open("rb") as stream:
        assert list(gob.read(stream, "q")) == list(generate(spec))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format=cassandra"], "queries in TSBS's format cassandra are not supported"),
        (["--format=timescaledb", "--use-case=iot"], "query type cannot be empty"),
        (
            ["--format=timescaledb", "--use-case=iot", "--query-type=x"],
            "invalid query type for use case 'iot'",
        ),
        (["--format=timescaledb", "--interleaved-generation-groups=0"], "total groups = 0"),
        (["--format=timescaledb", "--interleaved-generation-group-id=1"], "id 1 >= total groups 1"),
        (["--format=timescaledb", "--scale=0"], "scale cannot be 0"),
    ],
)
def test_what_cannot_be_generated_leaves_no_file(arguments: list[str], words: str, tmp_path: Path) -> None:
    err: list[str] = []
    file = tmp_path / "q.gob"
    assert main(["generate-queries", f"--file={file}", "--seed=1", *arguments], err.append, err.append) == 1
    assert words in "".join(err)
    assert not file.exists()
