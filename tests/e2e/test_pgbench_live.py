"""`loadstone pgbench` against a real server, and beside PostgreSQL's own pgbench."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg
import pytest
from support.sandbox import COMMAND, TIMEOUT_S, Database, wait_until

from loadstone.personalities import pgbench
from loadstone.personalities.pgbench import progress
from loadstone.personalities.pgbench import run as pgbench_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.private_server import EmbeddedServer

PEER = shutil.which("pgbench")
PEER_VERSIONS = (15, 16, 17)
"""Their output has one form; that of 14 and of 18 is another."""

TABLES = """
    create table pgbench_branches (bid int primary key, bbalance int, filler char(88));
    create table pgbench_tellers (tid int primary key, bid int, tbalance int, filler char(84));
    create table pgbench_accounts (aid int primary key, bid int, abalance int, filler char(84));
    create table pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
    insert into pgbench_branches values (1, 0), (2, 0);
    insert into pgbench_tellers select i, (i - 1) / 10 + 1, 0 from generate_series(1, 20) as i;
    insert into pgbench_accounts select i, (i - 1) / 100000 + 1, 0, '' from generate_series(1, 200000) as i;
    analyze"""

SCRIPTS = {
    "a.sql": "\\set x random(1,10)\n-- a comment\nSELECT :x;\nSELECT\n  pg_sleep(0.001);\n",
    "fail.sql": "\\set x 1 - :client_id\nSELECT 1/:x;\n",
    "lock.sql": "BEGIN ISOLATION LEVEL SERIALIZABLE;\n"
    "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\nSELECT pg_sleep(0.001);\nEND;\n",
    "open.sql": "BEGIN;\nSELECT 1;\n",
    "names.sql": 'SELECT 1 AS "a b" \\; SELECT 2 AS b \\gset\n'
    'SELECT 1 AS "a b" WHERE false \\; SELECT 3 AS c \\aset\n'
    '\\setshell n sh -c "echo 0; exit 1"\nSELECT :b, :c, :n;\n',
    "branch.sql": "\\if :client_id = 99\nSELECT 'never';\n\\endif\nSELECT 1;\n",
    "draw.sql": """
\\set aid random(1, 100000 * :scale)
\\set g random_gaussian(1, 1000, 2.5)
\\set e random_exponential(1, 1000, 3)
\\set z random_zipfian(1, 1000, 1.2)
\\set p permute(:aid, 200000)
\\set h hash(:aid)
INSERT INTO drawn (client, aid, g, e, z, p, h, own) VALUES (:client_id, :aid, :g, :e, :z, :p, :h, :own);
""",
}
DRAWN = """
    drop table if exists drawn;
    create table drawn (id serial, client int, aid int, g int, e int, z int, p int, h bigint, own text)"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def bank(postgres: EmbeddedServer) -> Iterator[Database]:
    """A database with pgbench's tables, scale 2."""
    admin = Database(postgres, postgres.connection.database)
    admin.execute("create database bank")
    made = Database(postgres, "bank")
    made.execute(TABLES)
    yield made
    admin.execute("drop database bank with (force)")


@pytest.fixture
def there(bank: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """The bank as PG* variables name it; the scripts are in the working folder."""
    connection = bank.server.connection
    monkeypatch.setenv("PGHOST", connection.host)
    monkeypatch.setenv("PGPORT", str(connection.port))
    monkeypatch.setenv("PGUSER", connection.user)
    monkeypatch.setenv("PGDATABASE", bank.name)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    return bank


def ours(arguments: str) -> Ended:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(arguments.split(), out.append, err.append)
    return Ended(code, "".join(out), "".join(err))


def peer(arguments: str) -> Ended:
    if PEER is None:
        pytest.skip("PostgreSQL's own pgbench is not installed: nothing to compare with")
    told = subprocess.run([PEER, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\) (\d+)", told)
    if found is None or int(found.group(1)) not in PEER_VERSIONS:
        pytest.skip(f"{told.strip()} prints another form: install one of {PEER_VERSIONS} to compare")
    ended = subprocess.run([PEER, *arguments.split()], capture_output=True, text=True, check=False)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def form(text: str) -> str:
    """Leave of a result what does not change from run to run."""
    text = text.partition("\nbeyond pgbench")[0].rstrip()
    text = re.sub(r"^pgbench \(.*\)$", "pgbench (VERSION)", text, flags=re.MULTILINE)
    text = re.sub(r"^ +[\d.]+ +\d+  ", "ROW ", text, flags=re.MULTILINE)
    text = re.sub(r"\d+\.\d+|NaN", "F", text)
    text = re.sub(r"\d+ skipped", "N skipped", text)
    text = re.sub(r"(actually processed|skipped|failed transactions): \d+", r"\1: N", text)
    return re.sub(r"(limit: )\d+/\d+|( - )\d+(?= transactions)", r"\1\2N", text)


COMPARED = [
    "-n -t 5 -c 2",
    "-S -t 5 -v",
    "-S -N -t 30 -c 2 -j 2 -r",
    "-n -S -t 20 -r",
    "-n -f a.sql@3 -b sel@1 -t 20 -r -P 100",
    "-n -f a.sql -T 1 -R 100 -L 50",
    "-n -f a.sql -T 1 -R 50",
    "-n -f a.sql -t 5 -L 1",
    "-n -f a.sql -t 5 -C",
    "-n -f a.sql -t 5 -C -R 500",
    "-n -f a.sql -t 5 -r -M prepared --random-seed=42",
    "-n -b se -b tpcb@0 -t 5 -M extended",
    "-n -f lock.sql -t 20 -c 3 -r -P 100",
    "-n -j 4 -c 2 -S -t 2 -s 9",
    "-n -f a.sql -s 9 -t 2",
    "-n -f fail.sql -t 2 -c 1 -D client_id=1",
    "-n -f names.sql -t 2",
]


@pytest.mark.parametrize("arguments", COMPARED)
@pytest.mark.usefixtures("there")
def test_line_by_line_the_output_has_pgbenchs_form(arguments: str) -> None:
    theirs, mine = peer(arguments), ours(arguments)
    assert form(mine.out) == form(theirs.out)
    assert mine.code == theirs.code
    last = theirs.err.splitlines()[-1:]
    assert mine.err.splitlines()[-1:] == last
    assert without_details(mine.err) == without_details(theirs.err)


@pytest.mark.usefixtures("there")
def test_progress_lines_have_pgbenchs_form() -> None:
    arguments = "-n -f a.sql -T 3 -P 1 -R 50 -L 100"
    theirs, mine = peer(arguments), ours(arguments)
    assert {form(line) for line in mine.err.splitlines()} == {form(line) for line in theirs.err.splitlines()}


@pytest.mark.parametrize("scale", ["", " -s 3"])
@pytest.mark.usefixtures("there")
def test_without_the_tables_we_say_what_pgbench_says(database: Database, scale: str) -> None:
    for arguments in (f"-f a.sql -v -t 1{scale} {database.name}", f"-S -t 1{scale} {database.name}"):
        theirs, mine = peer(arguments), ours(arguments)
        assert mine.err == theirs.err
        assert mine.code == theirs.code


@pytest.mark.parametrize("mode", ["simple", "prepared"])
@pytest.mark.parametrize(("clients", "threads"), [(1, 1), (3, 2)])
def test_with_one_seed_the_same_values_reach_the_server(
    there: Database, mode: str, clients: int, threads: int
) -> None:
    arguments = f"-n -f draw.sql -t 50 -c {clients} -M {mode} -s 2 -D own=007 --random-seed=5432"
    drawn = []
    for run, jobs in ((peer, 1), (ours, threads)):
        there.execute(DRAWN)
        ended = run(f"{arguments} -j {jobs}")
        assert ended.code == 0, ended.err
        with there.connect() as connection:
            drawn.append(
                connection.execute(
                    "select client, aid, g, e, z, p, h, own from drawn order by client, id"
                ).fetchall()
            )
    assert len(drawn[0]) == 50 * clients
    assert drawn[1] == drawn[0]


def test_a_fixed_number_of_transactions_is_done_and_no_more(there: Database) -> None:
    there.execute(DRAWN)
    ended = ours("-n -f draw.sql -t 40 -c 3 -j 2 -s 2 -D own=1")
    assert ended.code == 0, ended.err
    assert "number of transactions per client: 40\n" in ended.out
    assert "number of transactions actually processed: 120/120\n" in ended.out
    assert there.value("select count(*) from drawn") == 120
    assert there.value("select count(distinct client) from drawn") == 3


def test_tpcb_changes_all_balances_alike(there: Database) -> None:
    balances = (
        "select (select sum(tbalance) from pgbench_tellers), (select sum(abalance) from pgbench_accounts)"
    )
    with there.connect() as connection:
        before = connection.execute(balances.encode()).fetchone()
        ended = ours("-t 30 -c 4 -M prepared")
        after = connection.execute(balances.encode()).fetchone()
    assert ended.code == 0, ended.err
    assert "scaling factor: 2\n" in ended.out
    assert before is not None
    assert after is not None
    # The history was emptied before the run, as pgbench does.
    assert there.value("select count(*) from pgbench_history") == 120
    delta = there.value("select sum(delta) from pgbench_history")
    assert [new - old for new, old in zip(after, before, strict=True)] == [delta, delta]


@pytest.mark.usefixtures("there")
def test_a_run_lasts_as_long_as_asked_and_keeps_its_rate() -> None:
    ended = ours("-n -f a.sql -T 2 -R 200 -c 4 -P 1 -M prepared")
    assert ended.code == 0, ended.err
    done = int(re.findall(r"actually processed: (\d+)\n", ended.out)[0])
    # 400 are expected; a Poisson process strays by five times the square root once in millions, and a busy
    # machine leaves some out at the end.
    assert 200 < done < 500
    tps = float(re.findall(r"^tps = ([\d.]+) ", ended.out, re.MULTILINE)[0])
    # The last transactions end after the two seconds, on a busy machine some time after them.
    assert 0.8 * done / 2 < tps < 1.02 * done / 2
    seconds = re.findall(r"^progress: ([\d.]+) s", ended.err, re.MULTILINE)
    assert seconds == ["1.0", "2.0"]
    per_second = [float(found) for found in re.findall(r"s, ([\d.]+) tps", ended.err)]
    assert sum(per_second) == pytest.approx(done, abs=5)


@pytest.mark.usefixtures("there")
def test_latency_is_measured_and_given_with_percentiles() -> None:
    ended = ours("-n -f a.sql -t 250 -c 4 -M prepared")
    average = float(re.findall(r"^latency average = ([\d.]+) ms$", ended.out, re.MULTILINE)[0])
    assert 1.0 < average < 500.0
    found = dict(re.findall(r"(p[\d.]+) = ([\d.]+) ms", ended.out.partition("beyond pgbench")[2]))
    assert list(found) == ["p50", "p90", "p95", "p99"]
    values = [float(value) for value in found.values()]
    assert values == sorted(values)
    assert values[0] > 1.0
    assert " - too few samples (1000) for p99.9\n" in ended.out


@pytest.mark.usefixtures("there")
def test_what_is_already_too_late_is_skipped() -> None:
    ended = ours("-n -f a.sql -T 1 -R 3000 -L 3")
    assert ended.code == 0, ended.err
    skipped = int(re.findall(r"^number of transactions skipped: (\d+) ", ended.out, re.MULTILINE)[0])
    assert skipped > 1000
    assert re.search(r"^rate limit schedule lag: avg [\d.]+ \(max [\d.]+\) ms$", ended.out, re.MULTILINE)


@pytest.mark.usefixtures("there")
def test_a_backlog_at_the_end_is_told() -> None:
    ended = ours("-n -f a.sql -T 1 -R 3000")
    dropped = re.findall(r" - dropped: (\d+) transactions", ended.out)
    assert len(dropped) == 1
    assert int(dropped[0]) > 1000


def test_with_a_connection_for_every_transaction_each_is_a_new_session(there: Database) -> None:
    there.execute("drop table if exists sessions; create table sessions (pid int)")
    Path("pid.sql").write_text("insert into sessions select pg_backend_pid();")
    ended = ours("-n -f pid.sql -t 10 -C")
    assert ended.code == 0, ended.err
    assert there.value("select count(distinct pid) from sessions") == 10
    connection_ms = float(re.findall(r"^average connection time = ([\d.]+) ms$", ended.out, re.MULTILINE)[0])
    tps = float(re.findall(r"^tps = ([\d.]+) \(including reconnection times\)$", ended.out, re.MULTILINE)[0])
    # All ten connections are within the time that the rate is taken over.
    assert 10 / tps >= 10 * connection_ms / 1000 * 0.99


@pytest.mark.usefixtures("there")
def test_an_error_ends_its_client_and_the_others_go_on() -> None:
    ended = ours("-n -f fail.sql -t 5 -c 3")
    assert ended.code == 2
    assert "number of transactions actually processed: 10/15\n" in ended.out
    assert "number of failed transactions: 0 (0.000%)\n" in ended.out
    assert " - error 22012 (x 1): division by zero\n" in ended.out
    assert ended.err == (
        "pgbench: error: client 1 script 0 aborted in command 1 query 0: ERROR:  division by zero\n"
        "pgbench: detail: SQLSTATE 22012, fail.sql:2\n"
        "pgbench: error: Run was aborted; the above results are incomplete.\n"
    )


@pytest.mark.usefixtures("there")
def test_a_script_that_leaves_its_transaction_open_aborts() -> None:
    ended = ours("-n -f open.sql -t 5")
    assert ended.code == 2
    assert "number of transactions actually processed: 1/5\n" in ended.out
    assert "client 0 aborted: end of script reached without completing the last transaction\n" in ended.err


ABORTING = {
    "evaluation": "\\set x 1 / 0",
    "malformed": "\\set x :word + 1",
    "name": "\\set . 1",
    "arguments": "\\set x least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
    "two rows": "SELECT generate_series(1, 2) AS x \\gset",
    "no rows": "\\set y 1\nSELECT 1 \\; SELECT 1 AS x WHERE false \\gset",
    "column": 'SELECT 1 AS a, 2 AS "b c" \\gset p_',
    "columns": 'SELECT 1 AS "a b", 2 AS "c d" \\gset',
    "aset column": "SELECT 1 \\aset",
    "aset result": 'SELECT 1 AS "a b" \\; SELECT 2 AS b WHERE false \\aset',
    "sleep": "\\sleep :nothing",
    "shell variable": "\\shell echo :nothing",
    "not a number": "\\setshell x echo two",
    "syntax": "SELECT\n  1 +;",
    "place": "SELECT 1 \\; SELECT nothing, 'x' FROM pgbench_branches;",
    "context": "DO $$ BEGIN PERFORM 1 / 0; END $$;",
    "open": "BEGIN; SELECT 1;",
    "pipeline": "\\startpipeline\n\\startpipeline",
    "no pipeline": "\\endpipeline",
    "copy": "COPY pgbench_branches FROM STDIN;",
}
"""What ends a client."""


def without_details(err: str) -> list[str]:
    return [line for line in err.splitlines() if not line.startswith("pgbench: detail: ")]


EXTENDED = ("column", "syntax", "place", "pipeline")


@pytest.mark.parametrize(
    ("name", "mode"), [*((name, "simple") for name in ABORTING), *((name, "extended") for name in EXTENDED)]
)
@pytest.mark.usefixtures("there")
def test_what_ends_a_client_is_told_in_pgbenchs_words(name: str, mode: str) -> None:
    Path("abort.sql").write_text(f"SELECT 1;\n{ABORTING[name]}\n")
    arguments = f"-n -f abort.sql -t 2 -c 1 -D word=two -M {mode}"
    theirs, mine = peer(arguments), ours(arguments)
    assert without_details(mine.err) == without_details(theirs.err)
    assert (mine.code, form(mine.out)) == (theirs.code, form(theirs.out))


@pytest.mark.usefixtures("there")
def test_what_the_server_remarks_is_shown_as_it_says_it() -> None:
    Path("remark.sql").write_text(
        "DO $$ BEGIN RAISE NOTICE 'so' USING HINT = 'that'; RAISE WARNING 'or so'; END $$;\n"
    )
    theirs, mine = peer("-n -f remark.sql -t 2"), ours("-n -f remark.sql -t 2")
    assert mine.err == theirs.err
    assert mine.err.count("NOTICE:  so\nHINT:  that\n") == 2


RETRIED = """
\\set add random(1, 1000000)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM pgbench_tellers;
SELECT pg_advisory_xact_lock_shared(7);
UPDATE pgbench_tellers SET tbalance = :add WHERE tid = 2;
COMMIT;
"""


def test_a_conflict_is_tried_again_and_counted(there: Database) -> None:
    Path("retried.sql").write_text(RETRIED)
    options = ["-t1", "-r", "--max-tries=3", "--verbose-errors", "--failures-detailed", "--debug"]
    with there.connect() as connection:
        connection.execute("select pg_advisory_lock(7)")
        running = start("-n", "-f", "retried.sql", *options)
        waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        wait_until(lambda: there.value(waits) == 1, "the client has its snapshot and waits")
        connection.execute("update pgbench_tellers set tbalance = 0 where tid = 2")
        connection.execute("select pg_advisory_unlock(7)")
        out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0, err
    assert "maximum number of tries: 3\n" in out
    assert "number of serialization failures: 0 (0.000%)\n" in out
    assert "number of transactions retried: 1 (100.000%)\ntotal number of retries: 1\n" in out
    assert re.search(r"^ +\d+\.\d{3} +0 +1  UPDATE pgbench_tellers", out, re.MULTILINE)
    assert "pgbench: client 0 got an error in command 4 (SQL) of script 0; ERROR:  could not serialize" in err
    assert "pgbench: client 0 repeats the transaction after the error (try 1/3)\n" in err
    assert len(set(re.findall(r"tbalance = (\d+)", err))) == 1  # the same value again


@pytest.mark.usefixtures("there")
def test_errors_of_the_server_may_be_passed_over() -> None:
    ended = ours("-n -f fail.sql -t 5 -c 2 --continue-on-error --failures-detailed")
    assert ended.code == 0, ended.err
    assert "number of transactions actually processed: 5/10\n" in ended.out
    assert "number of other failures: 5 (50.000%)\n" in ended.out


@pytest.mark.usefixtures("there")
def test_the_first_client_that_ends_can_end_the_run() -> None:
    ended = ours("-n -f fail.sql -T 60 -c 4 -j 2 --exit-on-abort")
    assert (ended.code, ended.out) == (2, "")
    assert "division by zero" in ended.err
    assert ended.err.endswith("pgbench: error: Run was aborted due to an error in thread 0\n")


LOGGED = {
    "-t 30 -c 4 -j 2 -S": r"[0-3] \d{1,2} \d+ 0 \d{10} \d{1,6}",
    "-t 30 -c 4 -j 2 -S -R 5000": r"[0-3] \d{1,2} \d+ 0 \d{10} \d{1,6} \d+",
    "-t 10 -c 4 -j 2 -f lock.sql --failures-detailed --max-tries=2": r"[0-3] \d{1,2} (\d+|serialization) 0 "
    r"\d{10} \d{1,6} [01]",
    "-T 1 -R 2000 -L 2 -f a.sql": r"0 \d+ (\d+|skipped) 0 \d{10} \d{1,6} \d+",
}


@pytest.mark.parametrize("arguments", LOGGED)
@pytest.mark.usefixtures("there")
def test_the_log_has_a_line_for_every_transaction(arguments: str) -> None:
    for number, run in enumerate((peer, ours)):
        ended = run(f"-n -l --log-prefix=log{number} {arguments}")
        assert ended.code == 0, ended.err
        files = sorted(Path().glob(f"log{number}.*"))
        assert len(files) == ("-j 2" in arguments) + 1
        assert re.fullmatch(r"log\d\.\d+(\.1)?", files[-1].name)
        lines = [line for file in files for line in file.read_text().splitlines()]
        for line in lines:
            assert re.fullmatch(LOGGED[arguments], line), (run, line)
        processed = int(re.findall(r"actually processed: (\d+)", ended.out)[0])
        failed = int(re.findall(r"failed transactions: (\d+)", ended.out)[0])
        skipped = re.findall(r"transactions skipped: (\d+)", ended.out)
        assert len(lines) == processed + failed + sum(map(int, skipped))


@pytest.mark.usefixtures("there")
def test_the_log_can_be_sampled_and_summed() -> None:
    assert ours("-n -S -t 200 -c 2 -l --log-prefix=sampled --sampling-rate=0.5").code == 0
    (sampled,) = Path().glob("sampled.*")
    assert 100 < len(sampled.read_text().splitlines()) < 300
    ended = ours("-n -f a.sql -T 2 -R 100 -l --log-prefix=summed --aggregate-interval=1")
    (summed,) = Path().glob("summed.*")
    rows = [line.split(" ") for line in summed.read_text().splitlines()]
    assert {len(row) for row in rows} == {15}
    assert [int(row[0]) - int(rows[0][0]) for row in rows] == list(range(len(rows)))
    processed = int(re.findall(r"actually processed: (\d+)", ended.out)[0])
    assert sum(int(row[1]) for row in rows) == processed


@pytest.mark.usefixtures("there")
def test_a_log_that_cannot_be_opened_ends_all_before_it_begins() -> None:
    ended = ours("-n -S -t 1 -l --log-prefix=/nowhere/log")
    assert (ended.code, ended.out) == (1, "")
    assert "/nowhere/log." in ended.err


@pytest.mark.usefixtures("there")
def test_steps_are_told_on_demand() -> None:
    said = ours("-n -f a.sql -t 1 --debug").err
    assert 'pgbench: client 0 executing script "a.sql"\n' in said
    assert re.search(r"pgbench: client 0 sending SELECT \d+;\npgbench: client 0 receiving\n", said)


@pytest.mark.usefixtures("there")
def test_what_a_shell_command_prints_is_seen() -> None:
    Path("shell.sql").write_text("\\shell echo seen\n")
    out, _ = start("-n", "-f", "shell.sql", "-t", "2").communicate(timeout=TIMEOUT_S)
    assert out.startswith("seen\nseen\n")


@pytest.mark.usefixtures("there")
def test_serialization_failures_are_counted_and_the_run_goes_on() -> None:
    ended = ours("-n -f lock.sql -t 30 -c 4")
    assert ended.code == 0, ended.err
    failed = int(re.findall(r"^number of failed transactions: (\d+) ", ended.out, re.MULTILINE)[0])
    done = int(re.findall(r"actually processed: (\d+)/120\n", ended.out)[0])
    assert failed > 0
    assert done + failed == 120
    assert f" - error 40001 (x {failed}): could not serialize access" in ended.out


@pytest.mark.usefixtures("there")
def test_only_what_ran_has_a_figure() -> None:
    rows = ours("-n -f branch.sql -t 50 -r").out.partition("statement latencies")[2].splitlines()[1:5]
    assert rows[1] == "         0.000           0  SELECT 'never';"
    assert re.fullmatch(r" +\d+\.\d{3} +0  SELECT 1;", rows[3])


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("mode", ["simple", "prepared"])
def test_backslash_commands_are_measured_on_demand(mode: str) -> None:
    pipeline = "" if mode == "simple" else "\\startpipeline\nselect pg_sleep(0.002);\n\\endpipeline\n"
    Path("timed.sql").write_text(
        f"\\set x {'+'.join(['random(1,9)'] * 300)}\n\\sleep 3 ms\n\\shell sleep 0.004\n\\if :x < 0\n"
        f"\\set never 1\n\\endif\nselect 1;\n{pipeline}"
    )
    out = ours(f"-n -f timed.sql -t 5 -c 2 -r -M {mode}").out
    rows = out.partition("statement latencies")[2].partition("\nbeyond")[0].splitlines()[1:]
    by_row = [float(row.split()[0]) for row in rows if row]
    assert by_row[0] > 0.0
    assert 2.0 <= by_row[1] < 500, "the sleep begins with the stamp of its turn, before the line above it"
    assert by_row[2] >= 4.0
    assert by_row[4] == 0.0
    assert by_row[6] > 0.0
    if pipeline:
        assert by_row[9] >= 2.0


def test_variables_come_from_the_command_line(there: Database) -> None:
    there.execute(DRAWN)
    ended = ours("-n -f draw.sql -t 3 -D scale=1 -D own=it's -D client_id=77 -M prepared")
    assert ended.code == 0, ended.err
    assert there.value("select count(*) from drawn where own = 'it''s' and client = 77") == 3


@pytest.mark.usefixtures("there")
def test_the_drives_files_are_kept_where_asked() -> None:
    assert ours("-n -S -t 30 --out kept/here").code == 0
    from_drive = json.loads(Path("kept/here/drive.json").read_text())
    assert from_drive["counts"]["done"] == 30
    ended = ours("-n -S -t 30 --out kept/here")
    assert (ended.code, ended.out) == (1, "")
    assert 'the folder "kept/here" is not empty' in ended.err
    assert ours("-n -S -t 3 --out a.sql").code == 1


def test_a_connection_string_goes_before_the_options(there: Database) -> None:
    assert ours("-n -S -t 2 -p 1 -h /nowhere " + there.socket_url).code == 0
    assert ours("-n -S -t 2 -U nobody " + there.url).code == 0


def test_no_connection_is_no_run(there: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = ours("-n -S -t 1 -h /nowhere")
    assert (ended.code, ended.out) == (1, "")
    assert 'connection to server on socket "/nowhere/.s.PGSQL.' in ended.err
    assert "pgbench: error: could not create connection for setup\n" in ended.err
    ended = ours("-n -S -t 1 no_such_database")
    assert (ended.code, ended.out) == (1, "")
    assert 'FATAL:  database "no_such_database" does not exist' in ended.err
    monkeypatch.setenv("PGHOST", "127.0.0.1")
    monkeypatch.setenv("PGPORT", str(there.server.tcp_connection.port))
    monkeypatch.setenv("PGPASSWORD", "wrong-secret")
    ended = ours("-n -S -t 1")
    assert (ended.code, ended.out) == (1, "")
    assert "password authentication failed" in ended.err
    assert "wrong-secret" not in ended.err
    monkeypatch.setenv("PGPASSWORD", there.password)
    assert ours("-n -S -t 1").code == 0


@pytest.mark.usefixtures("there")
def test_a_broken_connection_string_shows_no_password() -> None:
    ended = ours("-n -S -t 1 postgres://me:hidden-word@[bad/base")
    assert ended.code == 1
    assert "hidden-word" not in ended.err


def test_more_clients_than_the_server_takes(there: Database) -> None:
    ended = ours("-n -S -t 1 -c 500")
    assert (ended.code, ended.out) == (1, "")
    assert "too many clients" in ended.err or "connection slots" in ended.err
    wait_until(lambda: sessions(there) == 0, "those that were let in are gone")


def test_the_server_goes_away(there: Database) -> None:
    running = start("-n", "-S", "-T", "60", "-c", "3")
    mine = "from pg_stat_activity where application_name = 'loadstone'"
    wait_until(
        lambda: there.value(f"select count(*) {mine} and query like 'SELECT abalance%'") == 3, "all at work"
    )
    there.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'loadstone'"
    )
    out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 2
    assert err.count("terminating connection due to administrator command\n") == 3
    assert err.endswith("pgbench: error: Run was aborted; the above results are incomplete.\n")
    assert "tps = " in out


def test_clients_whose_sessions_are_ended_connect_again_and_the_load_keeps_its_size(there: Database) -> None:
    shape = "-R 200 -T 3 --warmup 1 --ramp-up 0.5 --connect-rate 100 --reconnect"
    running = start("-n", "-S", "-c", "4", *shape.split())
    mine = "from pg_stat_activity where application_name = 'loadstone'"
    wait_until(
        lambda: there.value(f"select count(*) {mine} and query like 'SELECT abalance%'") == 4, "all at work"
    )
    assert there.value(f"select count(pg_terminate_backend(pid)) {mine}") == 4
    out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 0, err
    assert " - connections made again: 4\n" in out
    assert "clients that ended early" not in out
    assert " - error 57P01 (x 4): terminating connection due to administrator command\n" in out
    assert "all clients are connected again" in err
    tps = re.search(r"tps = ([0-9.]+) ", out)
    assert tps
    assert float(tps[1]) == pytest.approx(200, rel=0.25)


@pytest.mark.usefixtures("there")
def test_results_that_nobody_takes_are_no_crash() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [str(COMMAND), "pgbench", "-n", "-S"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr.startswith("pgbench: error: the results could not be written to standard output: No ")
    assert "Traceback" not in ended.stderr


def test_one_seed_gives_one_mix_however_many_threads_there_are(there: Database) -> None:
    Path("b.sql").write_text("insert into mixed values (:client_id, 'b', random());")
    Path("c.sql").write_text("insert into mixed values (:client_id, 'c', random());")
    mixes = []
    for threads in (1, 3):
        there.execute("drop table if exists mixed; create table mixed (client int, script text, x float8)")
        ended = ours(f"-n -f b.sql@3 -f c.sql -t 30 -c 3 -j {threads} --random-seed=9")
        assert ended.code == 0, ended.err
        assert f"number of threads: {threads}\n" in ended.out
        mixes.append(there.value("select string_agg(client || script, '' order by ctid, client) from mixed"))
    per_client = [[re.findall(f"{client}(.)", mix) for client in range(3)] for mix in mixes]
    assert per_client[0] == per_client[1]
    assert {script for scripts in per_client[0] for script in scripts} == {"b", "c"}


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_with_what_there_is(there: Database, signum: int, code: int) -> None:
    running = start("-n", "-S", "-T", "60", "-c", "2", "-P", "1")
    assert running.stderr is not None
    assert any(line.startswith("progress: 1.0 s") for line in running.stderr), "until the first one is read"
    running.send_signal(signum)
    out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == code
    assert re.search(r"actually processed: [1-9]\d*\n", out)
    assert err.endswith("Run was stopped by a signal; the above results are incomplete.\n")
    wait_until(lambda: sessions(there) == 0, "the server has seen the sessions end")


def test_a_terminal_that_is_gone_ends_the_run_as_its_signal_does(there: Database) -> None:
    """Standard output is gone as well: that the results cannot be written is not why the run ended."""
    ours, theirs = os.openpty()
    command = ["setsid", "--ctty", str(COMMAND), "pgbench", "-n", "-S", "-T", "600", "-P", "1"]
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    while b"progress: " not in shown:
        shown += os.read(ours, 1000)
    os.close(ours)
    assert running.wait(TIMEOUT_S) == 143
    wait_until(lambda: sessions(there) == 0, "the server has seen the sessions end")


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["env", "--default-signal=INT,TERM", str(COMMAND), "pgbench", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def sessions(database: Database) -> int:
    counted = (
        "select count(*) from pg_stat_activity where application_name = 'loadstone' and datname = 'bank'"
    )
    try:
        return int(database.value(counted))
    except psycopg.OperationalError:  # so many that there is none left for us
        return -1


@pytest.mark.usefixtures("there")
def test_a_server_that_does_not_answer_is_told_of_and_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """pgbench itself waits for ever; the limit is an hour, and here three seconds."""
    monkeypatch.setattr(pgbench_run, "LONGEST_S", 3.0)
    monkeypatch.setattr(progress, "SAY_NS", 0)
    Path("asleep.sql").write_text("select pg_sleep(300);\n")
    ended = ours("-n -f asleep.sql -c 2 -T 1")
    assert ended.code == 2
    assert ended.err.count("waiting for answers to statements already sent, at most 3 s each") == 1
    assert ended.err.count("pgbench: error: no answer within 3 s\n") == 2
    assert "number of transactions actually processed: 0" in ended.out
