"""The options of `pgbench -i` and the statements that they lead to, without a server."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone import _core
from loadstone.personalities import pgbench
from loadstone.personalities.pgbench.initialization import schema
from loadstone.personalities.pgbench.initialization.progress import CopyProgress
from loadstone.personalities.pgbench.initialization.rows import CHUNK_ROWS, Chunks, StoppedError
from loadstone.personalities.pgbench.initialization.settings import InitSettings
from loadstone.personalities.pgbench.options import parse

PEER = shutil.which("pgbench")
NOT_INIT = "pgbench: error: some of the specified options cannot be used in initialization (-i) mode\n"
NOT_BENCHMARKING = "pgbench: error: some of the specified options cannot be used in benchmarking mode\n"
NO_PARTITIONS = "pgbench: error: --partition-method requires greater than zero --partitions\n"
METHOD = 'pgbench: error: invalid partition method, expecting "range" or "hash", got: "list"\n'
STEP = 'pgbench: detail: Allowed step characters are: "dtgGvpf".\n'

REFUSED = {
    "-i -F 9": "pgbench: error: -F/--fillfactor must be in range 10..100\n",
    "-i -F 101": "pgbench: error: -F/--fillfactor must be in range 10..100\n",
    "-i -F many": 'pgbench: error: invalid value "many" for option -F/--fillfactor\n',
    "-i -s 0": "pgbench: error: -s/--scale must be in range 1..2147483647\n",
    "-i -s 2147483648": "pgbench: error: -s/--scale must be in range 1..2147483647\n",
    "-i --partitions=-1": "pgbench: error: --partitions must be in range 0..2147483647\n",
    "-i --partition-method=list --partitions=2": METHOD,
    "-i --partition-method=hash": NO_PARTITIONS,
    "-i --init-steps=dta": f'pgbench: error: unrecognized initialization step "a"\n{STEP}',
    "-I ''": "pgbench: error: no initialization steps specified\n",
    "-I dt": NOT_BENCHMARKING,
    "--foreign-keys": NOT_BENCHMARKING,
    "--tablespace=t": NOT_BENCHMARKING,
    "-i -c 2": NOT_INIT,
    "-i -t 5": NOT_INIT,
    "-i -l": NOT_INIT,
    "-i --random-seed=4": NOT_INIT,
    "-i a b": 'pgbench: error: too many command-line arguments (first is "b")\n'
    'pgbench: hint: Try "pgbench --help" for more information.\n',
}
"""Arguments -> what pgbench 15 says of them."""


def run(*arguments: str) -> tuple[int, str, str]:
    out: list[str] = []
    err: list[str] = []
    code = pgbench.main(arguments, out.append, err.append)
    return code, "".join(out), "".join(err)


def settings(*arguments: str) -> InitSettings:
    return parse(["-i", *arguments], {}).init


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_pgbench_refuses_is_refused_in_its_words(arguments: str) -> None:
    code, out, err = run(*shlex.split(arguments))
    # pgbench tells of a seed that it was given.
    assert (code, out) == (1, "")
    assert re.sub(r"^pgbench: setting random seed to \d+\n", "", err) == REFUSED[arguments]


@pytest.mark.parametrize("arguments", REFUSED)
def test_pgbench_itself_says_the_same(arguments: str) -> None:
    if PEER is None:
        pytest.skip("pgbench is not installed: its words cannot be compared with ours")
    peer = subprocess.run([PEER, *shlex.split(arguments)], capture_output=True, text=True, check=False)
    assert re.sub(r"^pgbench: setting random seed to \d+\n", "", peer.stderr) == REFUSED[arguments]
    assert (peer.returncode, peer.stdout) == (1, "")


def test_an_output_folder_is_of_no_use_to_initialization() -> None:
    assert run("-i", "--out=there") == (1, "", NOT_INIT)


def test_options_choose_the_steps() -> None:
    assert settings().steps_to_do(vacuum=True) == "dtgvp"
    assert settings().steps_to_do(vacuum=False) == "dtgp"
    assert settings("--foreign-keys").steps_to_do(vacuum=True) == "dtgvpf"
    assert settings("--foreign-keys", "-I", "d f p").steps_to_do(vacuum=True) == "dfp"
    assert settings("-I", "vtv g").steps_to_do(vacuum=False) == "tg"


def test_accounts_are_partitioned_where_a_number_of_partitions_is_given() -> None:
    assert settings("--partitions=0").method is None
    assert settings("--partitions=2").method == "range"
    assert settings("--partitions=2", "--partition-method=HASH").method == "hash"


@given(st.integers(1, 30_000), st.integers(1, 40))
def test_ranges_cover_every_number_once(scale: int, partitions: int) -> None:
    made = list(schema.create_partitions(InitSettings(partitions=partitions), scale))
    bounds = [re.search(r"from \((\w+)\) to \((\w+)\)", statement) for statement in made]
    edges = [found.groups() for found in bounds if found]
    assert len(edges) == partitions
    assert (edges[0][0], edges[-1][1]) == ("minvalue", "maxvalue")
    assert [end for _, end in edges[:-1]] == [begin for begin, _ in edges[1:]]
    held = list(schema.range_partitions(InitSettings(partitions=partitions), scale))
    assert [f"create table {name}" for name, _ in held] == [s.partition("\n")[0] for s in made]
    assert [rows.stop for _, rows in held[:-1]] == [rows.start for _, rows in held[1:]]
    assert (held[0][1].start, held[-1][1].stop) == (0, 100_000 * scale)
    for (_, end), (_, rows) in zip(edges[:-1], held, strict=False):
        assert not rows or rows.stop < int(end)
    for (begin, _), (_, rows) in zip(edges[1:], held[1:], strict=True):
        assert not rows or rows.start + 1 == int(begin)


def test_a_name_of_a_tablespace_is_quoted() -> None:
    made = InitSettings(tablespace='a"b', index_tablespace="c d")
    assert all(s.endswith(' tablespace "a""b"') for s in schema.create_tables(made, 1, 150_000))
    assert all(s.endswith(' using index tablespace "c d"') for s in schema.primary_keys(made))


def test_a_partitioned_table_is_not_unlogged_where_the_server_refuses_it() -> None:
    made = InitSettings(unlogged=True, partitions=2)
    assert all(s.startswith("create table") for s in schema.create_tables(made, 1, 180_000))
    plain = InitSettings(unlogged=True)
    assert all(s.startswith("create unlogged") for s in schema.create_tables(plain, 1, 180_000))
    assert all(s.startswith("create unlogged") for s in schema.create_tables(made, 1, 170_000))
    assert all(s.startswith("create unlogged") for s in schema.create_partitions(made, 1))


@given(
    st.sampled_from(sorted(schema.ROWS_PER_BRANCH)),
    st.integers(0, 200_000),
    st.integers(0, 3 * CHUNK_ROWS),
    st.integers(1, 3),
)
def test_chunks_together_are_all_rows_whoever_takes_them(
    table: str, first: int, rows: int, takers: int
) -> None:
    counted: list[int] = []
    chunks = Chunks(table, range(first, first + rows), counted.append, threading.Event())
    taken: list[bytes] = []
    waiting = [iter(chunks) for _ in range(takers)]
    while waiting:
        for taker in list(waiting):
            chunk = next(taker, None)
            taken.append(chunk or b"")
            if chunk is None:
                waiting.remove(taker)
    assert b"".join(taken) == _core.pgbench_rows(table, first, rows)
    assert sum(counted) == rows


def test_chunks_end_for_all_when_one_is_stopped() -> None:
    stopped = threading.Event()
    taker = iter(Chunks("pgbench_accounts", range(3 * CHUNK_ROWS), lambda _: None, stopped))
    next(taker)
    stopped.set()
    with pytest.raises(StoppedError):
        next(taker)


@pytest.mark.parametrize(("quiet", "lines"), [(False, [100_000, 200_000]), (True, [250_000])])
def test_progress_is_shown_every_100000_rows_or_at_the_end(*, quiet: bool, lines: list[int]) -> None:
    shown: list[str] = []
    progress = CopyProgress(250_000, shown.append, quiet=quiet, terminal=False)
    for _ in range(50):
        progress.advance(5000)
    found = [re.fullmatch(r"(\d+) of 250000 tuples \((\d+)%\) done \(elapsed .*\)\n", line) for line in shown]
    assert [int(match.group(1)) for match in found if match] == lines
    assert all(match and int(match.group(2)) == int(match.group(1)) * 100 // 250_000 for match in found)


@pytest.mark.parametrize(("total", "lines"), [(20, 0), (200, 1)])
def test_since_17_progress_names_the_table_and_small_ones_have_a_line_at_their_end(
    total: int, lines: int
) -> None:
    shown: list[str] = []
    progress = CopyProgress(total, shown.append, quiet=True, terminal=False, table="pgbench_tellers")
    progress.advance(total)
    assert len(shown) == lines
    assert all(
        f"{total} of {total} tuples (100%) of pgbench_tellers done (elapsed " in line for line in shown
    )


def test_on_a_terminal_each_line_covers_the_one_before() -> None:
    shown: list[str] = []
    with CopyProgress(200_000, shown.append, quiet=False, terminal=True) as progress:
        progress.advance(100_000)
        progress.advance(100_000)
    assert all(line.endswith("\r") and "\n" not in line for line in shown)
    assert len(shown[1]) >= len(shown[0].rstrip())
    assert shown[2].strip() == ""
