"""The driver speaks the protocol of MySQL and MariaDB: on a real MariaDB, which says what happened."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.sandbox import wait_until

from loadstone import _core
from loadstone.workload.queries.answer import compare

if TYPE_CHECKING:
    from pathlib import Path

    from support.mariadb import MariaDB

TRANSFER = r"""
\set aid random(1, 50)
\set delta random(-100, 100)
BEGIN;
UPDATE accounts SET balance = balance + :delta WHERE aid = :aid;
SELECT balance AS seen FROM accounts WHERE aid = :aid \gset
INSERT INTO history (aid, delta, seen, note) VALUES (:aid, :delta, :seen, 'it''s $1');
COMMIT;
"""


DIFFERENT = """
select count(*) from accounts a
where balance <> coalesce((select sum(delta) from history h where h.aid = a.aid), 0)
"""
SEEN_OTHERWISE = """
select count(*) from accounts a join history h on h.id = (select max(id) from history where aid = a.aid)
where h.seen <> a.balance
"""
ENCRYPTED = r"""
SELECT IF(VARIABLE_VALUE = '', 0, 1) AS n FROM information_schema.SESSION_STATUS
    WHERE VARIABLE_NAME = 'SSL_CIPHER' \gset
INSERT INTO history (aid) VALUES (-:n);
"""
CROSSING = r"""
\set mine :client_id + 1
\set other 2 - :client_id
BEGIN;
UPDATE accounts SET balance = 0 WHERE aid = :mine;
UPDATE accounts SET balance = 0 WHERE aid = :other;
COMMIT;
"""
BROKEN_PIPELINE = r"""
\startpipeline
INSERT INTO history (aid) VALUES (1);
SELECT no_such_column;
INSERT INTO history (aid) VALUES (2);
\endpipeline
"""
TYPES = """
SELECT CAST(-2 AS SIGNED) AS a, CAST(18446744073709551615 AS UNSIGNED) AS b, 1.5e0 AS c,
    CAST(2.50 AS DECIMAL(9,2)) AS d, NULL AS e, '' AS f, 'ü' AS g, DATE '2016-02-29' AS h,
    TIMESTAMP '2016-02-29 23:59:59.25' AS i, TIME '-25:00:01' AS j, YEAR(NOW()) > 0 AS k, b'101' + 0 AS l
"""
CONNECTED = "select count(*) from information_schema.processlist where user = 'empty'"


@pytest.fixture(scope="module")
def server(mariadb_server: MariaDB) -> MariaDB:
    mariadb_server.sql(
        """
        create table accounts (aid int primary key, balance int not null) engine=innodb;
        insert into accounts select seq, 0 from seq_1_to_50;
        create table history
            (id bigint auto_increment primary key, aid int, delta int, seen int, note text);
        create user native@'%' identified via mysql_native_password using password('n@t');
        create user ed@'%' identified via ed25519 using password('ed');
        create user empty@'%';
        create user secure@'%' identified by 's' require ssl;
        grant all on test.* to native@'%', ed@'%', empty@'%', secure@'%';
        """,
        "test",
    )
    return mariadb_server


def drive(connection: dict[str, Any], text: str, **more: Any) -> _core.Drive:
    document: dict[str, Any] = {
        "connection": connection,
        "scripts": [{"name": "s", "text": text}],
        "transactions_per_client": 1,
        "clients": 1,
        "seed": 1,
    }
    started = _core.Drive(json.dumps(document | more))
    started.start()
    return started


def account_of(started: _core.Drive) -> dict[str, Any]:
    text = started.wait(60.0)
    assert text is not None
    account: dict[str, Any] = json.loads(text)
    return account


def run(connection: dict[str, Any], text: str, **more: Any) -> dict[str, Any]:
    return account_of(drive(connection, text, **more))


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
@pytest.mark.parametrize("io", ["io_uring", "epoll"])
def test_every_mode_carries_out_what_the_account_says(server: MariaDB, mode: str, io: str) -> None:
    server.sql("delete from history; update accounts set balance = 0", "test")
    account = run(
        server.connection(), TRANSFER, mode=mode, io=io, clients=8, transactions_per_client=25, tries_max=50
    )
    assert (account["counts"]["done"], account["counts"]["failed"]) == (200, 0)
    assert server.sql("select count(*), sum(note = 'it''s $1') from history", "test") == "200\t200"
    assert server.sql(DIFFERENT, "test") == "0"
    # What a transaction saw, in text and in binary form, is what it had made.
    assert server.sql(SEEN_OTHERWISE, "test") == "0"


@pytest.mark.parametrize(
    ("user", "password", "sslmode"),
    [
        ("native", "n@t", "disable"),
        ("native", "n@t", "require"),
        ("ed", "ed", "disable"),
        ("ed", "ed", "prefer"),
        ("empty", None, "disable"),
        ("secure", "s", "require"),
    ],
)
def test_every_log_in_of_the_server_works_over_tcp(
    server: MariaDB, user: str, password: str | None, sslmode: str
) -> None:
    there = server.connection(host="127.0.0.1", user=user, password=password, sslmode=sslmode)
    account = run(there, ENCRYPTED)
    assert account["counts"]["done"] == 1
    last = "select -aid from history order by id desc limit 1"
    assert server.sql(last, "test") == str(int(sslmode != "disable"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"user": "native", "password": "wrong"}, "Access denied"),
        ({"user": "secure", "password": "s", "sslmode": "disable"}, "Access denied"),
        ({"user": "empty", "database": "nowhere"}, "nowhere"),
        ({"user": "empty", "sslmode": "verify-full", "sslrootcert": "system"}, "TLS"),
        ({"user": "empty", "parameters": {"no_such_variable": "1"}}, "no_such_variable"),
    ],
)
def test_a_refusal_is_told_with_its_reason(server: MariaDB, more: dict[str, Any], words: str) -> None:
    started = drive(server.connection(host="127.0.0.1", **more), "SELECT 1;\n")
    with pytest.raises(Exception, match=words):
        started.wait(60.0)


def test_a_postgresql_server_is_not_taken_for_one(server: MariaDB) -> None:
    """And the other way round: each protocol says what it found instead."""
    started = drive(server.connection(host="127.0.0.1", user="empty", protocol="postgres"), "SELECT 1;\n")
    with pytest.raises(Exception, match="check that host and port lead to a PostgreSQL server"):
        started.wait(60.0)


def test_deadlocks_and_lock_waits_are_tried_again(server: MariaDB) -> None:
    account = run(server.connection(), CROSSING, clients=2, transactions_per_client=200, tries_max=1000)
    assert (account["counts"]["done"], account["counts"]["failed"]) == (400, 0)
    holder = subprocess.Popen(
        server.client("--unbuffered", "test"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder:
        holder.stdin.write("begin; update accounts set balance = 1 where aid = 1; select 'held';\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "held\n"
        there = server.connection(parameters={"innodb_lock_wait_timeout": "1"})
        account = run(there, "UPDATE accounts SET balance = 2 WHERE aid = 1;\n", tries_max=2)
        assert account["counts"]["failed"] == 1
        assert [error["sqlstate"] for error in account["errors"]] == ["01205"]
        assert account["retries"] == 1
        holder.stdin.write("rollback;\n")


def test_a_statement_over_its_time_limit_ends_on_the_server(server: MariaDB) -> None:
    account = run(server.connection(), "SELECT SLEEP(60);\n", timeout_s=1.0, clients=2)
    assert account["counts"]["failed"] == 2
    at_work = "select count(*) from information_schema.processlist where info like 'SELECT SLEEP(60)%'"
    wait_until(lambda: server.sql(at_work) == "0", "the server has given the statements up")


def test_an_error_in_a_pipeline_ends_it_and_nothing_else(server: MariaDB) -> None:
    server.sql("delete from history", "test")
    account = run(server.connection(), BROKEN_PIPELINE, mode="extended", transactions_per_client=3)
    assert account["counts"]["failed"] == 3
    assert server.sql("select distinct aid from history", "test") == "1"


def test_no_file_of_ours_is_sent_to_a_server_that_asks(server: MariaDB, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("1\n")
    server.sql("delete from history", "test")
    account = run(
        server.connection(), f"LOAD DATA LOCAL INFILE '{secret}' INTO TABLE history (aid);\nSELECT 1;\n"
    )
    assert account["counts"]["failed"] == 1
    assert server.sql("select count(*) from history", "test") == "0"


def test_long_statements_and_values_are_cut_into_packets(server: MariaDB) -> None:
    length = 17 << 20
    text = f"""
SELECT REPEAT('x', {length}) AS v, LENGTH('{"y" * length}') AS n \\gset
DELETE FROM history;
INSERT INTO history (aid) VALUES (:n);
"""
    account = run(server.connection(), text, mode="simple")
    assert account["counts"]["done"] == 1
    assert server.sql("select aid from history", "test") == str(length)


def test_answers_are_the_same_in_text_and_in_binary_form(server: MariaDB) -> None:
    digests = []
    for binary in (False, True):
        document = {
            "connection": server.connection(),
            "queries": {"labels": ["q"], "queries": [[0, TYPES]], "binary": binary},
            "clients": 1,
            "seed": 1,
        }
        started = _core.Drive(json.dumps(document))
        started.start()
        account = account_of(started)
        assert account["errors"] == []
        (answer,) = account["queries"]["answers"]
        digests.append(answer["digest"])
    assert compare(*digests) is None


def test_a_connection_that_the_server_ends_is_made_again(server: MariaDB) -> None:
    text = "SELECT SLEEP(0.01);\n"
    started = drive(
        server.connection(user="empty", host="127.0.0.1"), text, transactions_per_client=None, duration_s=3,
        clients=2, reconnect=True,
    )  # fmt: skip
    wait_until(lambda: server.sql(CONNECTED) == "2", "both are at work")
    server.sql("kill user empty")
    account = account_of(started)
    assert account["connect"]["reconnects"] == 2
    assert account["lost_clients"]["count"] == 0
