"""`loadstone sysbench --hosts`: a script's clients on several load hosts are those of one."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.load_hosts import agents, kill_agent, kill_at, share_cluster
from support.sysbench import place, run

from loadstone.hosts.cluster import client_of
from loadstone.hosts.joint import JointDrive
from loadstone.hosts.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.sandbox import Database

pytestmark = pytest.mark.filterwarnings("default")  # what Dask and its libraries warn of is not ours
TABLE = "create table noted (at serial, client int, what text, value bigint, once bigint)"
OWN = """
local part = require("part")
sysbench.cmdline.options = { least = {"Least value", 1} }

local function connected()
   con = con or sysbench.sql.driver():connect()
   return con
end
function init() part.note(sysbench.sql.driver():connect(), -1, "init") end
function done() part.note(sysbench.sql.driver():connect(), -1, "done") end
function thread_init() part.note(connected(), sysbench.tid, "begin") end
function thread_done() part.note(connected(), sysbench.tid, "end") end
function event(id)
   assert(id == sysbench.tid)
   require("late").event(connected(), id)
end
"""
PART = """
local part = {}
function part.note(con, client, what, value, once)
   con:query(string.format("insert into noted (client, what, value, once) values (%d, '%s', %.0f, %.0f)",
                           client, what, value or 0, once or 0))
end
return part
"""
LATE = """
return { event = function(con, client)
   local value = sysbench.rand.uniform(sysbench.opt.least, 1000000000)
   require("part").note(con, client, "event", value, sysbench.rand.unique())
end }
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with client_of(Places("local", local=3)) as client:
        yield client


@pytest.fixture(autouse=True)
def _one_cluster(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    share_cluster(client, monkeypatch)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a script with modules next to it, in the working folder."""
    for name, text in (("own", OWN), ("part", PART), ("late", LATE)):
        (tmp_path / f"{name}.lua").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own.lua"


@pytest.fixture
def far(own: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return such a script, whose files are not there for load hosts."""
    texts = {path: path.read_text() for path in own.parent.glob("*.lua")}
    prepare = JointDrive.prepare

    async def without_files(joint: JointDrive, document: dict[str, Any], ceiling_of: Any) -> None:
        for path in texts:
            path.rename(path.with_suffix(".here"))
        await prepare(joint, document, ceiling_of)

    async def with_files(joint: JointDrive) -> None:
        await close(joint)
        for path in texts:
            path.with_suffix(".here").rename(path)

    close = JointDrive.close
    monkeypatch.setattr(JointDrive, "prepare", without_files)
    monkeypatch.setattr(JointDrive, "close", with_files)
    return own


def noted(database: Database) -> list[tuple[int, str, int, int]]:
    with database.connect() as connection:
        rows = connection.execute("select client, what, value, once from noted order by at").fetchall()
        connection.execute("truncate noted restart identity")
    return rows


def choices(rows: list[tuple[int, str, int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for client, what, value, _ in rows:
        if what == "event":
            found[client].append(value)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--rate=300", "--load-threads=2")])
def test_every_client_does_what_it_does_on_one_host(
    database: Database, far: Path, more: tuple[str, ...]
) -> None:
    database.execute(TABLE)
    drawn = []
    for hosts in ((), ("--hosts=local:1",), ("--hosts=local:2",), ("--hosts=local:3",)):
        code, out, err = run(
            *place(database), "--threads=7", "--events=100", "--time=0", "--rand-seed=5", "--least=2",
            *more, *hosts, str(far), "run",
        )  # fmt: skip
        assert code == 0, out + err
        assert "    total number of events:              100\n" in out
        assert "Number of threads: 7\n" in out
        assert "transactions:                        100 " in out
        assert "events (avg/stddev):           14.2857/" in out
        assert (" load hosts " in err) is bool(hosts)
        rows = noted(database)
        assert (rows[0][1], rows[-1][1]) == ("init", "done")
        for what in ("begin", "end"):
            assert sorted(client for client, done, *_ in rows if done == what) == list(range(7))
        once = [number for _, what, _, number in rows if what == "event"]
        assert (len(once), len(set(once))) == (100, 100)
        drawn.append(choices(rows))
    # Who comes first begins the next event; what a client then draws is always the same.
    longest = {client: max((found[client] for found in drawn), key=len) for client in range(7)}
    assert len({value for values in longest.values() for value in values}) > 100 - 7
    for found in drawn:
        assert all(values == longest[client][: len(values)] for client, values in found.items())
    assert agents() == []


@pytest.mark.slow
def test_intervals_figures_and_the_report_are_of_all_hosts(database: Database, own: Path) -> None:
    database.execute(TABLE)
    code, out, err = run(
        *place(database), "--threads=4", "--time=2", "--report-interval=1", "--percentiles=50",
        "--histogram", "--report=kept", "--hosts=local:2", str(own), "run",
    )  # fmt: skip
    assert code == 0, out + err
    shown = re.findall(r"^\[ (\d)s \] thds: 4 tps: (\S+) .* lat \(ms,95%\): (\S+) ", out, re.MULTILINE)
    assert shown
    assert all(float(rate) > 0 and float(latency) > 0 for _, rate, latency in shown)
    total = int(re.findall(r"total number of events: +(\d+)", out)[0])
    assert total == len([row for row in noted(database) if row[1] == "event"])
    listed = re.findall(r"^ +[\d.]+ \|.* (\d+)$", out, re.MULTILINE)
    assert sum(map(int, listed)) == total
    assert "p50 (ms): " in out
    folder = own.parent / "kept"
    assert "Load hosts" in (folder / "report.html").read_text()
    (hosts,) = folder.glob("targets/*/phases/*/hosts.json")
    assert len(list((hosts.parent / "hosts").iterdir())) == 2


def test_other_commands_run_once_and_here(database: Database) -> None:
    where = (*place(database), "--table-size=10", "--hosts=local:2")
    for command in ("prepare", "cleanup"):
        code, _, err = run(*where, "oltp_point_select", command)
        assert code == 0
        assert err.startswith(f"sysbench: '{command}' runs once, on this host: --hosts is for run\n")
        assert agents() == []


def test_a_bundled_script_needs_nothing_on_the_hosts(database: Database) -> None:
    where = (*place(database), "--table-size=100")
    run(*where, "oltp_read_only", "prepare")
    code, out, _ = run(*where, "--threads=3", "--events=30", "--hosts=local:3", "oltp_read_only", "run")
    assert code == 0
    assert "    transactions:                        30 " in out
    assert "        read:                            420\n" in out


def test_a_script_that_fails_on_one_host_ends_all(database: Database, own: Path) -> None:
    database.execute(TABLE)
    own.write_text("function event(id) if id == 3 then error('it broke') end end")
    code, out, err = run(*place(database), "--threads=4", "--time=60", "--hosts=local:2", str(own), "run")
    assert code == 1, out + err
    assert re.search(r"^FATAL: `thread_run' function failed: .*own\.lua:1: it broke", out, re.MULTILINE)
    assert "General statistics" not in out


def test_a_module_that_was_not_sent_is_named(database: Database, far: Path) -> None:
    far.write_text("function event() require('pa' .. 'rt') end")
    code, out, err = run(*place(database), "--threads=2", "--events=2", "--hosts=local:2", str(far), "run")
    assert code == 1, out + err
    assert "module 'part' not found" in out


def test_what_hosts_cannot_do_is_refused(database: Database, own: Path) -> None:
    database.execute(TABLE)
    for arguments, message in (
        (("--report-checkpoints=1",), "--hosts and --report-checkpoints exclude each other"),
        (("--threads=1",), "1 client cannot be split over 2 load hosts"),
        (("--hosts=somewhere",), "'somewhere' does not name load hosts"),
    ):
        given = ("--threads=2", "--hosts=local:2", *arguments)
        code, out, err = run(*place(database), *given, str(own), "run")
        assert code == 1
        assert message in out + err
    own.write_bytes(b"-- \xe4\nfunction event() end")
    code, out, err = run(*place(database), "--threads=2", "--hosts=local:2", str(own), "run")
    assert code == 1
    assert "own.lua cannot be sent to load hosts: it is not UTF-8 text" in out + err
    assert noted(database) == []


@pytest.mark.parametrize(
    ("name", "number", "code"),
    [
        ("_rest", -1, 1),  # it waits for the first host's init()
        ("look_ready", -1, 1),
        ("look", -1, 2),
        ("tell_first", 0, 2),  # it has waited for the others, to do done()
    ],
)
def test_a_host_that_is_killed_ends_the_run(
    database: Database,
    own: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    number: int,
    code: int,
) -> None:
    database.execute(TABLE)
    killed = kill_at(monkeypatch, JointDrive, name, partial(kill_agent, number))
    ends = "--events=4" if name == "tell_first" else "--time=60"
    found, out, err = run(*place(database), "--threads=4", ends, "--hosts=local:2", str(own), "run")
    assert killed == [name]
    assert found == code, out + err
    assert re.search(r"load host local-\d was lost", out + err)
    assert ("General statistics" in out) is (code == 2)
    assert agents() == []


def test_an_option_of_the_scripts_own_is_the_scripts(database: Database, own: Path) -> None:
    declared = "sysbench.cmdline.options = { hosts = {'Hosts', 'a'} }\n"
    own.write_text(f"{declared}function event() print(sysbench.opt.hosts) end")
    code, out, _ = run(*place(database), "--events=1", "--hosts=local:2", str(own), "run")
    assert code == 0
    assert "local:2\n" in out
    assert agents() == []
