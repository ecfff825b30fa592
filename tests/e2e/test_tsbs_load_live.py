"""`loadstone tsbs load` with real servers: every method, what is refused, and loads that break off."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import psutil
import psycopg
import pytest
from support.sandbox import COMMAND, Database, fill, kill_all, small_disk, wait_until

from loadstone.private_server import EmbeddedServer, ServerSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Ended, Running, Sandbox

LINE = re.compile(r"\d+,\d+\.\d\d,\d\.\d{6}E[+]\d\d,\d+\.\d\d,(\d+\.\d\d,\d\.\d{6}E[+]\d\d,\d+\.\d\d|-,-,-)")
SUMMARY = re.compile(
    r"\nSummary:\nloaded (\d+) metrics in \d+\.\d{3}sec with (\d+) workers "
    r"\(mean rate \d+\.\d\d metrics/sec\)\n"
    r"loaded (\d+) rows in \d+\.\d{3}sec with (\d+) workers \(mean rate \d+\.\d\d rows/sec\)\n"
)
IOT = ("--use-case=iot", "--seed=123", "--scale=10", "--timestamp-end=2016-01-01T01:00:00Z")
DEVOPS = ("--use-case=devops", "--seed=123", "--scale=10", "--timestamp-end=2016-01-01T00:30:00Z")
HOUR = ("--use-case=cpu-only", "--seed=123", "--scale=20", "--timestamp-end=2016-01-01T01:00:00Z")
HOUR_ROWS = 20 * 360
METHODS = ("copy_binary", "copy_text", "insert")
SYSTEM = Path("/usr/lib/postgresql")
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


def load(sandbox: Sandbox, database: Database, *arguments: str) -> Ended:
    return sandbox.run("tsbs", "load", "--target", database.url, *arguments)


def summary_of(ended: Ended) -> tuple[int, int]:
    """Give metrics and rows of TSBS's summary."""
    found = SUMMARY.search(ended.out)
    assert found is not None, ended.out + ended.err
    return int(found.group(1)), int(found.group(3))


def rows_of(database: Database, *names: str) -> int:
    return sum(database.value(f"select count(*) from {name}") for name in names)


def text_of(sandbox: Sandbox, *data: str) -> bytes:
    """Give a data set as TSBS's text."""
    command = [str(COMMAND), "tsbs", "generate-data", "--format=timescaledb", *data]
    made = subprocess.run(command, cwd=sandbox.work, env=sandbox.environment, capture_output=True, check=True)
    return made.stdout


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", [IOT, DEVOPS], ids=["iot", "devops"])
def test_every_method_loads_what_was_made(
    sandbox: Sandbox, database: Database, method: str, data: tuple[str, ...]
) -> None:
    ended = load(sandbox, database, f"--method={method}", "--workers=3", "--batch-size=700", *data)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("time,per. metric/s,metric total,")
    _, rows = summary_of(ended)
    names = ("readings", "diagnostics") if data is IOT else (
        "cpu", "disk", "diskio", "kernel", "mem", "net", "nginx", "postgresl", "redis"
    )  # fmt: skip
    assert rows == rows_of(database, *names)
    assert f"verified: count and fingerprint of {len(names) + 1} tables" in ended.out
    assert "latency of " in ended.out
    assert database.value("select to_regclass('loadstone_batches')") is None
    orphans = f"select count(*) from {names[0]} where tags_id not in (select id from tags)"
    assert database.value(orphans) == 0


def test_only_the_schema_where_tables_are_made_is_replaced(sandbox: Sandbox, database: Database) -> None:
    database.execute("create schema bench; create table tags (mine int); create view seen as table tags")
    ended = sandbox.run(
        "tsbs", "load", "--target", f"{database.url}?options=-csearch_path%3Dbench,public", "--replace", *IOT
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert database.value("select count(*) from bench.tags") > 0
    assert database.value("select count(mine) from public.seen") == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--in-table-partition-tag",),
        ("--use-jsonb-tags",),
        ("--chunk-time=15m", "--partitions=2"),
        ("--hash-workers",),
        ("--limit=1234",),
        ("--use-insert", "--in-table-partition-tag", "--use-jsonb-tags"),
    ],
    ids=" ".join,
)
def test_tables_of_every_form_are_loaded_and_verified(
    sandbox: Sandbox, database: Database, options: tuple[str, ...]
) -> None:
    ended = load(sandbox, database, "--workers=2", "--batch-size=300", *options, *IOT)
    assert ended.code == 0, ended.err
    assert "verified: " in ended.out
    if options[0].startswith("--limit"):
        assert summary_of(ended)[1] == 1234
    if "--in-table-partition-tag" in options:
        name = "tagset->>'name'" if "--use-jsonb-tags" in options else "tags.name"
        wrong = f"select count(*) from readings join tags on tags.id = tags_id where readings.name <> {name}"
        assert database.value(wrong) == 0


def test_text_from_a_pipe_is_loaded_as_what_it_was_made_from(sandbox: Sandbox, database: Database) -> None:
    text = text_of(sandbox, *IOT)
    command = f"gzip -dc | {COMMAND} tsbs load --target {database.url} --batch-size=500"
    piped = subprocess.run(
        ["sh", "-c", command], input=gzip.compress(text), cwd=sandbox.work, env=sandbox.environment,
        capture_output=True, check=False,
    )  # fmt: skip
    assert piped.returncode == 0, piped.stderr
    from_pipe = contents(database)
    ended = load(sandbox, database, "--replace", *IOT)
    assert ended.code == 0, ended.err
    assert contents(database) == from_pipe
    (sandbox.work / "iot.txt").write_bytes(text)
    ended = load(sandbox, database, "--replace", "--file=iot.txt", "--chunk-time=20m")
    assert ended.code == 0, ended.err
    assert contents(database) == from_pipe


def contents(database: Database) -> list[Any]:
    """Give digests of all tables, whatever the order of their rows."""
    tables = ("tags", "readings", "diagnostics")
    digest = "select md5(string_agg(md5(t::text), '' order by md5(t::text))) from {} as t"
    return [database.value(digest.format(table)) for table in tables]


def test_tables_that_are_there_are_refused_unless_replaced(sandbox: Sandbox, database: Database) -> None:
    assert load(sandbox, database, *HOUR).code == 0
    refused = load(sandbox, database, *HOUR)
    assert refused.code == 1
    assert "the database already has the tables cpu, tags" in refused.err
    assert refused.out == ""
    resumed = load(sandbox, database, "--resume", *HOUR)
    assert resumed.code == 1
    assert "no interrupted load" in resumed.err
    assert load(sandbox, database, "--replace", *HOUR).code == 0
    assert rows_of(database, "cpu") == HOUR_ROWS


def test_a_missing_database_is_made_and_none_is_dropped(sandbox: Sandbox, database: Database) -> None:
    name = f"{database.name}_made"
    url = database.url.replace(f"/{database.name}", f"/{name}")
    made = sandbox.run("tsbs", "load", "--target", url, *HOUR)
    try:
        assert made.code == 0, made.err
        assert f"the database {name} was created" in made.err
        aborted = sandbox.run("tsbs", "load", "--target", url, "--do-abort-on-exist", *HOUR)
        assert aborted.code == 1
        assert f'database "{name}" exists: aborting.' in aborted.err
        there = Database(database.server, name)
        assert rows_of(there, "cpu") == HOUR_ROWS
    finally:
        database.execute(f"drop database if exists {name}")
    missing = sandbox.run("tsbs", "load", "--target", url, "--do-create-db=false", *HOUR)
    assert missing.code == 1
    assert "does not exist on" in missing.err


def test_flags_of_tsbs_say_where_to_load(sandbox: Sandbox, database: Database) -> None:
    there = database.server.tcp_connection
    reach = (f"--host={there.host}", f"--port={there.port}", f"--user={there.user}",
             f"--pass={database.password}", f"--db-name={database.name}")  # fmt: skip
    refused = sandbox.run("tsbs", "load", *reach, *HOUR)
    assert refused.code == 1
    assert "the server does not have TimescaleDB" in refused.err
    ended = sandbox.run("tsbs", "load", *reach, "--use-hypertable=false", "--results-file=r.json", *HOUR)
    assert ended.code == 0, ended.err
    assert "Saving results json file to r.json\n" in ended.out
    found = json.loads((sandbox.work / "r.json").read_text())
    assert found["loadstone"]["load"]["verified"] is True
    assert found["loadstone"]["load"]["rows"] == HOUR_ROWS
    assert found["Totals"]["rowRate"] > 0
    assert sandbox.holding(database.password) == []


def test_progress_has_the_lines_of_tsbs(sandbox: Sandbox, database: Database) -> None:
    arguments = ("--reporting-period=500ms", "--batch-size=100", "--rate=30", *HOUR)
    ended = load(sandbox, database, *arguments)
    lines = ended.out.partition("\nSummary:")[0].splitlines()[1:]
    assert len(lines) >= 3
    assert all(LINE.fullmatch(line) for line in lines), lines


def test_reading_alone_touches_no_server(sandbox: Sandbox) -> None:
    ended = sandbox.run("tsbs", "load", "--do-load=false", "--target=postgres://x@127.0.0.1:1/none", *HOUR)
    assert ended.code == 0, ended.err
    assert "loaded 0 metrics in " in ended.out
    assert f"loaded {HOUR_ROWS} rows in " in ended.out


# Loads that break off


@contextmanager
def server_of_our_own(storage: Path | None = None) -> Iterator[EmbeddedServer]:
    with EmbeddedServer(ServerSpec("pg", clients=10, storage=storage)) as server:
        yield server


def slow_load(sandbox: Sandbox, database: Database, *arguments: str) -> Running:
    """Start a load of 72 batches, 10 a second."""
    slow = ("--batch-size=100", "--workers=3", "--rate=10")
    return sandbox.start("tsbs", "load", "--target", database.url, *slow, *HOUR, *arguments)


def booked(database: Database) -> int:
    try:
        return int(database.value("select count(*) from loadstone_batches where batch >= 0") or 0)
    except psycopg.Error:
        return 0


def check_resumed(sandbox: Sandbox, database: Database) -> Ended:
    ended = load(sandbox, database, "--batch-size=100", "--workers=3", "--resume", *HOUR)
    assert ended.code == 0, ended.err
    assert "resumed: " in ended.out
    assert "verified: " in ended.out
    assert rows_of(database, "cpu") == HOUR_ROWS
    twice = 'select count(*) from (select 1 from cpu group by "time", tags_id having count(*) > 1) as d'
    assert database.value(twice) == 0
    return ended


@pytest.mark.parametrize("how", ["postmaster", "backend"])
def test_a_load_whose_server_dies_goes_on_where_it_broke_off(sandbox: Sandbox, how: str) -> None:
    with server_of_our_own() as server:
        database = Database(server, server.connection.database)
        running = slow_load(sandbox, database)
        running.wait_for(lambda: booked(database) >= 8, "eight batches")
        postmaster = psutil.Process(server.pid)
        if how == "postmaster":
            family = [postmaster, *postmaster.children()]
            kill_all(family)
            psutil.wait_procs(family, timeout=60)
        else:
            pid = database.value("select pid from pg_stat_activity where query like 'COPY%' limit 1")
            while pid is None:
                pid = database.value(
                    "select pid from pg_stat_activity where application_name = 'loadstone' limit 1"
                )
            os.kill(pid, signal.SIGKILL)
        ended = running.finish()
        assert ended.code == 2, ended.err
        assert "the load is incomplete" in ended.err
        assert "--resume" in ended.err
        if how == "postmaster":
            server.restart()
        wait_until(lambda: booked(database) >= 8, "the server is back")
        before = booked(database)
        refused = load(sandbox, database, *HOUR)
        assert refused.code == 1
        assert "was interrupted after" in refused.err
        other = load(sandbox, database, "--batch-size=90", "--resume", *HOUR)
        assert other.code == 1
        assert "its batch size was 100, now it is 90" in other.err
        resumed = check_resumed(sandbox, database)
        assert f"resumed: {before} batches" in resumed.out


def test_an_interrupted_load_goes_on(sandbox: Sandbox, database: Database) -> None:
    running = slow_load(sandbox, database)
    running.wait_for(lambda: booked(database) >= 8, "eight batches")
    running.send(signal.SIGINT)
    ended = running.finish()
    assert ended.code == 130, ended.err
    assert "are committed; --resume loads the rest" in ended.err
    assert "\nSummary:\n" in ended.out
    assert booked(database) >= 8
    check_resumed(sandbox, database)


def test_a_killed_load_goes_on(sandbox: Sandbox, database: Database) -> None:
    running = slow_load(sandbox, database)
    running.wait_for(lambda: booked(database) >= 8, "eight batches")
    running.send(signal.SIGKILL)
    running.process.wait()
    sandbox.may_leave = True  # its folder of records, for nobody else knows of it
    check_resumed(sandbox, database)


def test_corrupt_text_is_told_by_line_and_its_whole_batches_stay(
    sandbox: Sandbox, database: Database
) -> None:
    lines = text_of(sandbox, *HOUR).split(b"\n")
    place = len(lines) // 2 | 1
    lines[place] = lines[place][:20]
    (sandbox.work / "broken.txt").write_bytes(b"\n".join(lines))
    ended = load(sandbox, database, "--file=broken.txt", "--batch-size=100")
    assert ended.code == 2, ended.err
    assert re.search(r"line \d+ \(byte \d+\)", ended.err), ended.err
    assert "are committed" in ended.err
    assert rows_of(database, "cpu") == booked(database) * 100


@pytest.mark.parametrize(
    "text", [b"", b"not a header\n", b"\x1f\x8b\x08\x00\x00\n\n"], ids=["empty", "words", "gzip"]
)
def test_what_is_no_text_of_tsbs_touches_nothing(sandbox: Sandbox, database: Database, text: bytes) -> None:
    command = [str(COMMAND), "tsbs", "load", "--target", database.url]
    ended = subprocess.run(
        command, input=text, cwd=sandbox.work, env=sandbox.environment, capture_output=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert database.value("select count(*) from pg_class where relname in ('tags', 'loadstone_batches')") == 0


@ROOT
@pytest.mark.slow
def test_a_disk_that_fills_up_on_the_server_ends_the_load_in_words(sandbox: Sandbox) -> None:
    data = ("--use-case=devops", "--seed=1", "--scale=100", "--timestamp-end=2016-01-01T12:00:00Z")
    with small_disk(sandbox.base / "disk", 700) as disk:
        disk.chmod(0o777)
        arguments = ("--reporting-period=200ms", "--workers=2", "--storage", disk, *data)
        running = sandbox.start("tsbs", "load", "--target", "pg", *arguments)
        running.wait_for(lambda: "E+05" in running.out, "rows that are loaded")
        fill(disk, 20 << 20)
        ended = running.finish()
        assert ended.code == 2, ended.err
        # A server that finds no room for its next segment of WAL ends itself, often before it has said why.
        asked = "could not be read" not in ended.err
        assert ("the server's disk is full: batch" in ended.err) or not asked, ended.err
        assert "No space left on device" in ended.err or "lost" in ended.err, ended.err
        assert "Traceback" not in ended.err


@ROOT
@pytest.mark.slow
def test_a_disk_that_fills_up_here_ends_the_load_in_words(sandbox: Sandbox, database: Database) -> None:
    with small_disk(sandbox.work / "disk", 2) as disk:
        running = slow_load(sandbox, database, "--out", str(disk / "out"))
        running.wait_for(lambda: booked(database) >= 4, "four batches")
        fill(disk, 0)
        ended = running.finish()
        assert ended.code == 2, ended.err
        assert "No space left on device" in ended.err
        assert "Traceback" not in ended.err
    check_resumed(sandbox, database)


# TimescaleDB


def timescale_place() -> Path | None:
    """Find an installed PostgreSQL that has TimescaleDB."""
    found = [place for place in SYSTEM.glob("*/bin") if (place.parent / "lib" / "timescaledb.so").is_file()]
    return max(found, default=None)


@pytest.mark.skipif(timescale_place() is None, reason="no PostgreSQL with TimescaleDB is installed here")
def test_hypertables_are_loaded_compressed_and_verified(sandbox: Sandbox) -> None:
    settings = {"shared_preload_libraries": "timescaledb", "timescaledb.telemetry_level": "off"}
    with EmbeddedServer(ServerSpec(f"pg:{timescale_place()}", clients=10, settings=settings)) as server:
        database = Database(server, server.connection.database)
        url = database.url.replace("postgres://", "timescaledb://")
        data = ("--use-case=iot", "--seed=123", "--scale=20", "--timestamp-end=2016-01-01T06:00:00Z")
        options = ("--chunk-time=1h", "--compress", "--compress-after=24h", "--workers=3", "--partitions=2")
        ended = sandbox.run("tsbs", "load", "--target", url, *options, *data)
        assert ended.code == 0, ended.err
        assert "verified: " in ended.out
        assert re.search(r"compression: \d+\.\d\d to 1", ended.out)
        chunks = "select count(*) from timescaledb_information.chunks where is_compressed"
        assert database.value(chunks) >= 12
        jobs = "select count(*) from timescaledb_information.jobs where proc_name like 'policy_comp%'"
        assert database.value(jobs) == 2
        again = sandbox.run("tsbs", "load", "--target", url, "--replace", *data)
        assert again.code == 0, again.err
        assert quote(database.password) not in again.err
