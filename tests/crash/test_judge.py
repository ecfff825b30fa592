"""The judge of crash tests over ledgers that are made up: every kind of damage is found, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.crash.judge import Allowed, judge
from loadstone.crash.ledger import (
    ACKNOWLEDGED,
    PLANNED,
    REFUSED,
    SENT,
    Records,
    Rows,
    read_ledgers,
)
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from pathlib import Path

STATES = (PLANNED, SENT, ACKNOWLEDGED, REFUSED)
SECOND = 1_000_000_000


def crc_of(client: int, seq: int) -> int:
    return client * 1000 + seq * 7


def records(clients: list[list[int]]) -> Records:
    """Make the records of clients by their states; acknowledgements come a second apart, from second 1."""
    entries = [
        (client, seq, state, crc_of(client, seq), seq * SECOND if state == ACKNOWLEDGED else 0)
        for client, states in enumerate(clients)
        for seq, state in enumerate(states, 1)
    ]
    columns = np.array(entries, np.int64).reshape(-1, 5).T
    return Records(*columns)


def rows(*pairs: tuple[int, int]) -> Rows:
    client, seq = (np.array(one, np.int64) for one in (zip(*pairs, strict=True) if pairs else ((), ())))
    return Rows.of(client, seq, np.array([crc_of(c, s) for c, s in pairs], np.int64))


def pairs_of(clients: list[list[int]], *states: int) -> list[tuple[int, int]]:
    return [
        (client, seq)
        for client, found in enumerate(clients)
        for seq, state in enumerate(found, 1)
        if state in states
    ]


def damage(found: Any) -> dict[str, int]:
    names = ("lost", "lost_allowed", "corrupt", "twice", "phantom", "holes")
    return {name: getattr(found, name) for name in names if getattr(found, name)}


clients_of = st.lists(st.lists(st.sampled_from(STATES), max_size=12), min_size=1, max_size=4)


@given(clients_of, st.data())
def test_what_must_be_there_and_may_be_there_is_no_damage(
    clients: list[list[int]], data: st.DataObject
) -> None:
    sent = pairs_of(clients, SENT)
    present = [pair for pair in sent if data.draw(st.booleans())]
    found = judge(records(clients), rows(*pairs_of(clients, ACKNOWLEDGED), *present))
    assert found.is_whole, found
    assert damage(found) == {}
    assert (found.unknown, found.unknown_present) == (len(sent), len(present))
    assert found.acknowledged == len(pairs_of(clients, ACKNOWLEDGED))


@given(clients_of, st.data())
def test_each_acknowledged_row_that_is_missing_is_found(
    clients: list[list[int]], data: st.DataObject
) -> None:
    acknowledged = pairs_of(clients, ACKNOWLEDGED)
    gone = [pair for pair in acknowledged if data.draw(st.booleans())]
    left = [pair for pair in acknowledged if pair not in gone]
    found = judge(records(clients), rows(*left))
    assert found.lost == len(gone)
    assert found.holes == sum(any(c == client and s > seq for c, s in left) for client, seq in gone)
    assert found.is_whole == (not gone)


@given(clients_of)
def test_rows_of_refused_and_never_sent_commits_are_phantoms(clients: list[list[int]]) -> None:
    strange = pairs_of(clients, PLANNED, REFUSED)
    found = judge(records(clients), rows(*pairs_of(clients, ACKNOWLEDGED, PLANNED, REFUSED)))
    assert damage(found) == ({"phantom": len(strange)} if strange else {})


def test_rows_of_nobody_are_phantoms() -> None:
    clients = [[ACKNOWLEDGED]]
    assert judge(records(clients), rows((0, 1), (0, 2), (7, 1))).phantom == 2


def test_another_checksum_and_a_second_row_are_found() -> None:
    clients = [[ACKNOWLEDGED, ACKNOWLEDGED], [SENT]]
    good = rows((0, 1), (0, 2), (1, 1))
    bad = Rows(good.client, good.seq, good.crc + np.array([0, 1, 0]))
    assert damage(judge(records(clients), bad)) == {"corrupt": 1}
    assert damage(judge(records(clients), rows((0, 1), (0, 2), (0, 2)))) == {"twice": 1}


def test_asynchronous_commits_may_be_lost_for_so_long() -> None:
    clients = [[ACKNOWLEDGED] * 10]
    allowed = Allowed(killed_ns=10 * SECOND, window_ns=2 * SECOND)
    found = judge(records(clients), rows(*[(0, seq) for seq in range(1, 8)]), allowed=allowed)
    assert damage(found) == {"lost_allowed": 3}
    assert found.loss_window_s == 2.0
    assert found.is_whole
    found = judge(records(clients), rows(*[(0, seq) for seq in range(1, 7)]), allowed=allowed)
    assert damage(found) == {"lost": 1, "lost_allowed": 3}, "the oldest is too old"


def test_a_lost_commit_before_one_that_is_there_is_never_allowed() -> None:
    clients = [[ACKNOWLEDGED] * 10]
    allowed = Allowed(killed_ns=10 * SECOND, window_ns=2 * SECOND)
    there = [(0, seq) for seq in range(1, 11) if seq != 9]
    assert damage(judge(records(clients), rows(*there), allowed=allowed)) == {"lost_allowed": 1, "holes": 1}


def test_commits_after_the_crash_make_no_hole() -> None:
    clients = [[ACKNOWLEDGED] * 10]
    allowed = Allowed(killed_ns=8 * SECOND, window_ns=2 * SECOND)
    there = [(0, seq) for seq in (*range(1, 8), 9, 10)]
    assert damage(judge(records(clients), rows(*there), allowed=allowed)) == {"lost_allowed": 1}


def test_what_was_settled_stays() -> None:
    clients = [[ACKNOWLEDGED, SENT, SENT, ACKNOWLEDGED]]
    settled, upto = rows((0, 1), (0, 2)), np.array([3])
    whole = judge(records(clients), rows((0, 1), (0, 2), (0, 4)), settled, upto)
    assert damage(whole) == {}
    assert (whole.acknowledged, whole.unknown) == (1, 0), "what is settled is not counted again"
    assert damage(judge(records(clients), rows((0, 1), (0, 4)), settled, upto)) == {"lost": 1}
    came = judge(records(clients), rows((0, 1), (0, 2), (0, 3), (0, 4)), settled, upto)
    assert damage(came) == {"phantom": 1}, "it was not there at the verification before"


@given(clients_of, st.data())
def test_judging_in_steps_counts_the_same(clients: list[list[int]], data: st.DataObject) -> None:
    present = [
        *pairs_of(clients, ACKNOWLEDGED),
        *(p for p in pairs_of(clients, SENT) if data.draw(st.booleans())),
    ]
    upto = [data.draw(st.integers(0, len(states))) for states in clients]
    all_records, all_rows = records(clients), rows(*present)
    early = rows(*[(client, seq) for client, seq in present if seq <= upto[client]])
    one = judge(all_records.upto(upto), early)
    two = judge(all_records, all_rows, early, np.array(upto))
    whole = judge(all_records, all_rows)
    for name in ("acknowledged", "lost", "unknown", "unknown_present"):
        assert getattr(one, name) + getattr(two, name) == getattr(whole, name)
    assert one.is_whole
    assert two.is_whole


def ledger(path: Path, client: int, states: list[int], spare: int = 3) -> None:
    header = b"LSLEDGER" + np.array([1, client], "<u4").tobytes() + np.array([9], "<u8").tobytes() + bytes(40)
    body = b"".join(
        bytes([state, 0, 0, 0]) + np.array([crc_of(client, seq)], "<u4").tobytes() + seq.to_bytes(8, "little")
        for seq, state in enumerate(states, 1)
    )
    path.write_bytes(header + body + bytes(16 * spare))


def test_ledgers_are_read_in_the_order_of_clients(tmp_path: Path) -> None:
    for client in range(11):
        ledger(tmp_path / f"client-{client}.ledger", client, [ACKNOWLEDGED] * client)
    found = read_ledgers(tmp_path)
    assert found.last(11) == list(range(11))
    assert found.seq[found.client == 10].tolist() == list(range(1, 11))
    assert found.upto([0, 1, 1]).last(11) == [0, 1, 1, *[0] * 8]


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LoadstoneError, match="has no ledgers"):
        read_ledgers(tmp_path)
    (tmp_path / "client-0.ledger").write_bytes(b"short")
    with pytest.raises(LoadstoneError, match="not the ledger of client 0"):
        read_ledgers(tmp_path)
    ledger(tmp_path / "client-0.ledger", 1, [SENT])
    with pytest.raises(LoadstoneError, match="not the ledger of client 0"):
        read_ledgers(tmp_path)


def test_rows_come_as_copy_sends_them(tmp_path: Path) -> None:
    row = np.zeros(2, np.dtype([("n", ">i2"), ("a", ">i4"), ("client", ">i4"), ("b", ">i4"), ("seq", ">i8"),
                                ("c", ">i4"), ("crc", ">i8")]))  # fmt: skip
    row["n"], row["a"], row["b"], row["c"] = 3, 4, 8, 8
    row["client"], row["seq"], row["crc"] = (1, 0), (5, 6), (2**32 - 1, 7)
    data = b"PGCOPY\n\xff\r\n\0" + bytes(8) + row.tobytes() + b"\xff\xff"
    found = Rows.of_copy(data)
    assert (found.client.tolist(), found.seq.tolist(), found.crc.tolist()) == ([0, 1], [6, 5], [7, 2**32 - 1])
    found.save(tmp_path / "rows.npz")
    assert Rows.load(tmp_path / "rows.npz").same_as(found)
    with pytest.raises(LoadstoneError, match="not sent whole"):
        Rows.of_copy(data[:-1])
    with pytest.raises(LoadstoneError, match="not ours"):
        Rows.of_copy(data[:-3] + b"\xff\xff")
