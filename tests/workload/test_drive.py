"""One drive against a server that answers at once, or misbehaves: counted, told, ended, never hung."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from support.stopped_drive import stopped

from loadstone import _core
from loadstone.errors import LoadstoneError, RunFailedError
from loadstone.model import Connection, Drive, Pace, Script
from loadstone.private_server import EmbeddedServer, ServerSpec
from loadstone.signals import InterruptedRun, Signals
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document, perform

if TYPE_CHECKING:
    from pathlib import Path

    from support.sandbox import Database

SELECT = Script("select.pgbench", "select 1;\n")
ONE = Drive(scripts=(SELECT,), clients=2, duration_s=0.3, timeout_s=1.0)
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "garbage": ({"kind": "garbage_after", "queries": 20}, ""),
    "half a message": ({"kind": "half_message_after", "queries": 20}, ""),
    "silence": ({"kind": "silent_after", "queries": 20}, "no answer within 1 s"),
    "a closed connection": ({"kind": "close_after", "queries": 20}, ""),
}


def equation_holds(account: dict[str, Any]) -> bool:
    carried = account["counts"]["carried"]
    return all(
        counts["carried"] == carried
        and counts["scheduled"] + sign * carried
        == counts["done"] + counts["failed"] + counts["skipped"] + counts["dropped"]
        for counts, sign in ((account["counts"], 1), (account["warmup_counts"], -1))
    )


def driven(drive: Drive, **behaviour: object) -> dict[str, Any]:
    with null_server(16, **behaviour) as (_, connection):
        return perform(drive_document(drive, connection, None), None)


def test_the_account_survives_a_folder_that_vanishes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    gone = Script("gone", f"\\shell rm -rf {out}\nselect 1;\n")
    drive = dataclasses.replace(ONE, scripts=(gone,), duration_s=None, transactions_per_client=3, clients=1)
    with null_server(4) as (_, connection):
        account = perform(drive_document(drive, connection, out), None)
    assert account["counts"]["done"] == 3
    assert "drive.json" in account["output_error"]


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("io", ["io_uring", "epoll"])
def test_each_mode_on_each_interface(mode: Any, io: Any, tmp_path: Path) -> None:
    with null_server(4) as (_, connection):
        account = perform(drive_document(dataclasses.replace(ONE, mode=mode), connection, tmp_path, io), None)
    assert account["io"] == io
    assert account["mode"] == mode
    assert account["counts"]["done"] > 100
    assert equation_holds(account)
    assert json.loads((tmp_path / "drive.json").read_text()) == account


@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_misbehaves_is_left_and_the_drive_ends(name: str) -> None:
    fault, words = FAULTS[name]
    begun = time.monotonic()
    account = driven(dataclasses.replace(ONE, duration_s=100), faults=[fault])
    assert time.monotonic() - begun < 60
    assert account["state"] == "aborted"
    assert account["reason"]
    assert account["errors"]
    assert words in account["errors"][0]["message"]
    assert account["outages"][0]["end_ns"] is None
    assert account["in_doubt"] <= 2
    assert equation_holds(account)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_with_reconnect_it_goes_on(name: str) -> None:
    fault, _ = FAULTS[name]
    account = driven(dataclasses.replace(ONE, duration_s=2, reconnect=True), faults=[fault])
    assert account["state"] == "complete"
    assert account["connect"]["reconnects"] >= 1
    assert account["counts"]["done"] > 40
    assert equation_holds(account)


def test_errors_are_counted_by_class() -> None:
    fault = {"kind": "error_every", "n": 5, "sqlstate": "23505", "message": "duplicate key"}
    account = driven(ONE, faults=[fault])
    (error,) = account["errors"]
    assert (error["sqlstate"], error["message"]) == ("23505", "duplicate key")
    assert error["count"] == account["counts"]["failed"] > 0
    assert account["state"] == "complete"
    assert equation_holds(account)


def test_a_server_that_refuses_the_log_in_is_told_in_its_words() -> None:
    fault = {"kind": "refuse_startup", "sqlstate": "53300", "message": "sorry, too many clients already"}
    with pytest.raises(RunFailedError, match="too many clients already"):
        driven(ONE, faults=[fault])


@pytest.mark.parametrize("auth", ["cleartext", "md5", "scram"])
def test_each_way_to_log_in(auth: str) -> None:
    with null_server(4, auth=auth, user="me", password="s3cr3t") as (_, there):
        known = dataclasses.replace(there, user="me", password="s3cr3t", sslmode="disable")
        account = perform(drive_document(ONE, known, None), None)
        assert account["counts"]["done"] > 0
        wrong = dataclasses.replace(known, password="wr0ng")
        with pytest.raises(RunFailedError) as caught:
            perform(drive_document(ONE, wrong, None), None)
    assert "wr0ng" not in str(caught.value)


def test_nobody_listens(tmp_path: Path) -> None:
    nowhere = Connection(host=str(tmp_path), port=1, user="u", database="d", connect_timeout_s=1)
    with pytest.raises(RunFailedError, match="No such file"):
        perform(drive_document(ONE, nowhere, None), None)


def test_a_script_that_does_not_parse_says_where(tmp_path: Path) -> None:
    broken = dataclasses.replace(ONE, scripts=(Script("b.pgbench", "select 1;\n\\set x (1 +\n"),))
    with pytest.raises(LoadstoneError, match=r"^b\.pgbench:2:\d+: "):
        perform(drive_document(broken, Connection(str(tmp_path), 1, "u", "d"), None), None)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with null_server(4) as (_, connection), pytest.raises(RunFailedError, match="No such file"):
        perform(drive_document(ONE, connection, tmp_path / "missing"), None)


def test_the_first_signal_stops_a_drive_in_order() -> None:
    slow = dataclasses.replace(ONE, duration_s=60, pace=Pace("fixed", 50))
    with null_server(4) as (_, connection), Signals() as signals:

        def press(progress: dict[str, Any]) -> None:
            if progress["done"] > 10 and signals.received is None:
                os.kill(os.getpid(), signal.SIGINT)

        account = perform(drive_document(slow, connection, None), signals, press)
        with pytest.raises(InterruptedRun):
            signals.check()
    assert account["state"] == "interrupted"
    assert 10 < account["counts"]["done"] < 1500
    assert equation_holds(account)


@pytest.mark.slow
def test_the_second_signal_is_not_kept_waiting() -> None:
    silent = {"kind": "silent_after", "queries": 5}
    waiting = dataclasses.replace(ONE, duration_s=60, timeout_s=60)
    with null_server(4, faults=[silent]) as (_, connection), Signals() as signals:

        def press(progress: dict[str, Any]) -> None:
            if progress["done"]:
                os.kill(os.getpid(), signal.SIGINT)

        begun = time.monotonic()
        with pytest.raises(InterruptedRun):
            perform(drive_document(waiting, connection, None), signals, press)
    assert signals.impatient
    assert time.monotonic() - begun < 40


@pytest.mark.slow
def test_progress_is_shown_while_it_goes_on() -> None:
    seen: list[dict[str, Any]] = []
    with null_server(4) as (_, connection):
        long = dataclasses.replace(ONE, duration_s=1.5)
        perform(drive_document(long, connection, None), None, seen.append)
    assert len(seen) > 1
    latest = seen[-1]["latest"]
    assert latest["done"] > 0
    assert latest["response"]["p99_ns"] > 0


@pytest.mark.slow
def test_a_drive_whose_records_cannot_be_written_stops_early(tmp_path: Path) -> None:
    (tmp_path / "series.jsonl").symlink_to("/dev/full")
    long = dataclasses.replace(ONE, duration_s=60.0)
    began_s = time.monotonic()
    with null_server(4) as (_, connection):
        account = perform(drive_document(long, connection, tmp_path), None)
    assert time.monotonic() - began_s < 40
    assert "series.jsonl" in account["output_error"]
    assert equation_holds(account)


# Loads of plain rows: in steps, from files, by long transactions.

TABLE = f"create table test ({', '.join(f'{name} text' for name in 'abcdefghijk')}, l timestamp)"
COLUMNS = list("abcdefghijkl")


def rows_data(rows: int) -> dict[str, Any]:
    return {"kind": "rows", "set": "import", "seed": 3, "rows": rows}


def loading(connection: Connection, out_dir: Path | None, clients: int = 1, **load: object) -> dict[str, Any]:
    """Say how rows go into the table `test`."""
    drive = Drive(scripts=(), clients=clients, timeout_s=10)
    document = drive_document(drive, connection, out_dir) | {"interval_s": 0.05}
    del document["scripts"], document["mode"]
    return document | {"load": {"tables": {"test": {"name": "test", "columns": COLUMNS}}} | load}


def reached(database: Database) -> Connection:
    return dataclasses.replace(database.server.connection, database=database.name)


def test_each_step_is_stored_whole_when_it_is_told(database: Database, tmp_path: Path) -> None:
    database.execute(TABLE)
    document = loading(
        reached(database), tmp_path, 3, data=rows_data(25_000), batch_rows=700, step_rows=10_000, hold=True
    )
    seen: list[tuple[int, int]] = []

    def on_step(step: dict[str, Any]) -> None:
        seen.append((step["step"], database.value("select count(*) from test")))
        time.sleep(0.05)  # the next step has to wait for us: this is what is tested

    account = perform(document, None, None, on_step)
    assert account["state"] == "complete"
    assert seen == [(0, 10_000), (1, 20_000), (2, 25_000)]
    steps = account["load"]["steps"]
    assert [step["rows"] for step in steps] == [10_000, 10_000, 5000]
    assert all(b["start_ns"] - a["end_ns"] > 50_000_000 for a, b in itertools.pairwise(steps))
    assert account["load"]["tables"][0]["fingerprint"] is None
    assert account["load"]["logical_bytes"] > 25_000 * 100
    assert json.loads((tmp_path / "drive.json").read_text()) == account


def test_what_cannot_take_a_step_stops_the_load_and_is_raised(database: Database, tmp_path: Path) -> None:
    database.execute(TABLE)
    document = loading(reached(database), tmp_path, data=rows_data(9000), step_rows=3000, hold=True)

    def on_step(step: dict[str, Any]) -> None:
        if step["step"] == 1:
            raise LoadstoneError("the disk of the results is full", "free space")

    with pytest.raises(LoadstoneError, match="disk of the results"):
        perform(document, None, None, on_step)
    assert database.value("select count(*) from test") == 6000
    account = json.loads((tmp_path / "drive.json").read_text())
    assert account["state"] == "interrupted"
    assert [step["state"] for step in account["load"]["steps"]] == ["complete", "complete"]


@pytest.mark.parametrize("pipeline", [True, False])
def test_after_the_servers_death_exactly_the_committed_transactions_are_there(
    *, pipeline: bool, tmp_path: Path
) -> None:
    with EmbeddedServer(ServerSpec("pg", clients=10)) as server:
        there = server.connection

        def ask(statement: str) -> Any:
            with psycopg.connect(
                host=there.host, port=there.port, user=there.user, dbname=there.database, autocommit=True
            ) as control:
                answer = control.execute(statement.encode())
                return answer.fetchall() if answer.description else None

        ask(TABLE)
        ask("create table ledger (batch bigint primary key, rows bigint)")
        long = {"statement_rows": 1, "pipeline": pipeline, "mark_rows": 100}
        document = loading(
            there, tmp_path, data=rows_data(5_000_000), method="insert", batch_rows=20_000, ledger="ledger",
            transaction=long,
        )  # fmt: skip

        def show(_: dict[str, Any]) -> None:
            lines = progress_lines(tmp_path)
            begun = bool(lines) and lines[-1]["state"] == "open"
            if begun and sum(line["state"] == "committed" for line in lines) >= 2:
                server.kill()

        account = perform(document, None, show)
        assert account["state"] == "aborted"
        server.restart()
        states = {t["transaction"]: t["state"] for t in account["load"]["transactions"]}
        committed = {number for number, state in states.items() if state == "committed"}
        stored = {batch for (batch,) in ask("select batch from ledger")}
        doubtful = {number for number, state in states.items() if state == "in_doubt"}
        assert len(committed) >= 2
        assert committed <= stored <= committed | doubtful
        assert set(account["load"]["in_doubt_batches"]) == doubtful
        ((count, distinct),) = ask("select count(*), count(distinct a) from test")
        assert count == distinct == 20_000 * len(stored)
        assert account["load"]["rows"] == 20_000 * len(committed)
        # A crash between two transactions, while rows are made for the next, finds none in flight.
        cut = committed.symmetric_difference(states) != set()
        assert progress_lines(tmp_path)[-1]["state"] in ({"lost", "in_doubt"} if cut else {"committed"})


def progress_lines(folder: Path) -> list[dict[str, Any]]:
    path = folder / "progress.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.parametrize("form", ["text", "csv", "binary"])
def test_files_that_a_server_wrote_are_loaded_as_they_are(
    form: str, database: Database, tmp_path: Path
) -> None:
    database.execute("create table test (a int, b text, c float8)")
    fill = "select n, case n % 5 when 0 then null else e'x\\t\\\\,\"\\n' || n end, n / 3.0"
    database.execute(f"insert into test {fill} from generate_series(1, 20000) n")
    database.execute("create table expected as select * from test")
    files: list[Path] = []
    with database.connect() as control:
        for half in ("a <= 7000", "a > 7000"):
            files.append(tmp_path / f"{len(files)}.{form}")
            copy = f"copy (select * from test where {half}) to stdout (format {form})"
            with files[-1].open("wb") as file, control.cursor().copy(copy.encode()) as rows:
                for piece in rows:
                    file.write(piece)
    database.execute("truncate test")
    data = {"kind": "files", "format": form, "paths": [str(path) for path in files], "columns": 3}
    method = "copy_binary" if form == "binary" else "copy_text"
    document = loading(reached(database), None, 2, data=data, method=method, batch_rows=3000)
    document["load"]["tables"]["test"]["columns"] = ["a", "b", "c"]
    account = perform(document, None)
    assert account["state"] == "complete", account["reason"]
    assert account["load"]["rows"] == 20_000
    for one, other in (("test", "expected"), ("expected", "test")):
        left = f"select count(*) from (select * from {one} except all select * from {other}) d"
        assert database.value(left) == 0


def test_a_file_of_another_shape_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c\n1,2\n")
    data = {"kind": "files", "format": "csv", "paths": [str(path)], "columns": 3}
    document = loading(Connection(str(tmp_path), 1, "u", "d"), None, data=data, method="copy_text")
    document["load"]["tables"]["test"]["columns"] = ["a", "b", "c"]
    with pytest.raises(LoadstoneError, match=r"rows\.csv: row 2 \(byte 6\): it has 2 fields, but 3"):
        perform(document, None)
    with pytest.raises(_core.DriveError, match="not as values"):
        _core.DataStream(json.dumps(data))


@pytest.mark.slow
@pytest.mark.parametrize("io", ["io_uring", "epoll"])
def test_a_pause_of_ours_is_not_blamed_on_the_server_and_is_told(io: Any) -> None:
    drive = dataclasses.replace(ONE, clients=4, duration_s=3.5, timeout_s=0.8)
    # Each answer comes after our process was stopped, and is in the socket when it goes on.
    with null_server(16, faults=[{"kind": "delay_every", "n": 1, "ms": 200}]) as (_, connection):
        document = drive_document(drive, connection, None, io) | {"interval_s": 0.1}
        account = json.loads(stopped(document, 1.6))
    assert account["errors"] == []
    assert account["counts"]["failed"] == 0
    pauses = account["loop"]["pauses"]
    assert pauses["longest_ns"] > 1e9
    assert pauses["count"] >= 1
    assert account["loop"]["lag"]["max_ns"] == pauses["longest_ns"]


def test_clients_that_are_not_replaced_are_told_with_the_first_error() -> None:
    account = driven(dataclasses.replace(ONE, duration_s=20), faults=[{"kind": "close_after", "queries": 20}])
    lost = account["lost_clients"]
    assert lost["count"] == 2
    assert lost["sqlstate"] == "connection"
    assert lost["message"] == account["errors"][0]["message"]
    assert account["start_ns"] < lost["first_ns"] <= account["end_ns"]
    whole = driven(ONE)
    assert whole["lost_clients"] == {"count": 0, "first_ns": None, "sqlstate": None, "message": None}


@pytest.mark.slow
def test_an_outage_without_end_is_a_stall_without_end() -> None:
    drive = dataclasses.replace(ONE, duration_s=1.5, timeout_s=0.3, reconnect=True)
    silent = driven(drive, faults=[{"kind": "silent_after", "queries": 0}])
    # Answers to the log-in are all that ever comes.
    assert silent["counts"]["done"] == 0
    assert silent["stall"]["end_ns"] is None
    until_ns = silent["stall"]["start_ns"] + silent["stall"]["length_ns"]
    assert until_ns == silent["deadline_ns"]
    assert silent["stall"]["length_ns"] > 1e9, "attempts that fail do not end it"
    slow = driven(dataclasses.replace(ONE, clients=1), faults=[{"kind": "delay_every", "n": 2, "ms": 200}])
    assert slow["stall"]["length_ns"] >= 0.1e9


@pytest.mark.slow
def test_an_idle_time_between_two_starts_is_no_stall() -> None:
    rare = dataclasses.replace(ONE, duration_s=1.0, pace=Pace("fixed", 4))
    account = driven(rare)
    assert account["counts"]["done"] == 4
    stall = account["stall"] or {"length_ns": 0}
    assert stall["length_ns"] <= account["response"]["max_ns"], "the quarter of a second before it is none"
