"""What Loadstone is asked to do through the fault proxy, and how its counts are held against the server's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.fault_proxy import CONTROL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np
    import psycopg

TIMEOUT_S = 1
MANY_ROWS = 20_000
WITNESS = "create schema witness; create table witness.t (id int)"
SCRIPTS = {
    "single": "insert into witness.t values (1);\n",
    "block": "begin;\ninsert into witness.t values (1);\nend;\n",
    "pipeline": "\\startpipeline\ninsert into witness.t values (1);\nselect 1;\n\\endpipeline\n",
}
HEAD = 'id = "faulty"\ntitle = "Faulty"\nversion = "1"\nwhy = "A test."\n'
DRIVE = """
[[phase]]
id = "{id}"
kind = "script"
title = "{id}"
setup = ["create table own_{id} as select 1 as one"]
scripts = ["script.pgbench"]
clients = 2
duration_s = 0.7
timeout_s = {timeout_s}
mode = "{mode}"
reconnect = {reconnect}
{pace}
rows_per_transaction = 1
row_check = {{ count = "select count(*) from witness.t" }}
checks = [{{ name = "own", sql = "select one from own_{id}", expected = "1" }}]
"""
LOAD = """
[[phase]]
id = "load"
kind = "load"
title = "load"
method = "{method}"
batch_rows = 1000
timeout_s = 3
workers = 2
step_rows = 10000
[phase.data]
set = "import"
rows = {rows}
[phase.table]
name = "loaded"
indexes = "1"
"""
ASK = """
[[phase]]
id = "ask"
kind = "queries"
title = "ask"
setup = ["create table asked as select i, i % 7 as k from generate_series(1, 1000) as i"]
[phase.queries]
table = "asked"
timeout_s = 1
{how}
statements = [
  {{ name = "sum", sql = "select k, sum(i) from asked group by k" }},
  {{ name = "rows", sql = "select i, k from asked order by i" }},
]
"""


@dataclass
class Ran:
    """What a command has left."""

    code: int | None
    """None: it did not end in time, and was killed."""
    seconds: float
    folder: Path
    """Where it ran; its results are in `out` there."""

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text(errors="replace")

    def json(self, path: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / "out" / path).read_text()))

    def drives(self, kind: str) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob(f"out/targets/*/phases/*-{kind}/drive.json")):
            yield json.loads(path.read_text())


class Workload:
    """What Loadstone is asked to do, and how what it said of it is held against the server."""

    name = ""
    keeps = False
    """Whether the schema stays, so that the judge can count in it."""
    reach = CONTROL
    """Up to which byte of a connection faults are planned: about as many as most of them carry."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, *choices: str) -> str:
        return str(self.rng.choice(list(choices)))

    def scenario(self) -> str:
        raise NotImplementedError

    def arguments(self, folder: Path, url: str) -> list[str]:
        home = folder / "faulty"
        home.mkdir()
        (home / "scenario.toml").write_text(HEAD + self.scenario())
        given = ["run", str(home), "--target", url, "--no-calibrate", "--out", "out"]
        return [*given, "--io", self.pick("epoll", "io_uring"), *(["--keep"] if self.keeps else [])]

    def judge(self, ran: Ran, value: Look, *, altered: bool, blind: bool) -> Iterator[str]:
        raise NotImplementedError


class Look:
    """The server itself, asked past the proxy."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def __call__(self, sql: str) -> Any:
        row = self._connection.execute(sql.encode()).fetchone()
        return row[0] if row else None


class Drives(Workload):
    """Two phases that insert rows into tables that are not Loadstone's."""

    name = "drive"

    def scenario(self) -> str:
        self.script = self.pick(*SCRIPTS)
        self.mode = self.pick("simple", "extended", "prepared") if self.script != "pipeline" else "prepared"
        self.reconnect = self.pick("true", "false")
        pace = self.pick("", 'pace = "fixed"\nrate_per_s = 200')
        self.name = f"{self.mode} {self.script}{' again' if self.reconnect == 'true' else ''}"
        given = {"timeout_s": TIMEOUT_S, "mode": self.mode, "reconnect": self.reconnect, "pace": pace}
        return "".join(DRIVE.format(id=name, **given) for name in ("first", "second"))

    def arguments(self, folder: Path, url: str) -> list[str]:
        given = super().arguments(folder, url)
        (folder / "faulty" / "script.pgbench").write_text(SCRIPTS[self.script])
        return given

    def judge(self, ran: Ran, value: Look, *, altered: bool, blind: bool) -> Iterator[str]:
        least = most = 0
        for drive in ran.drives("*"):
            counts = drive["counts"]
            if counts["scheduled"] + counts["carried"] != sum(
                counts[k] for k in ("done", "failed", "skipped", "dropped")
            ):
                yield f"the counts do not add up: {counts}"
            if ran.code == 0 and drive["lost_clients"]["count"]:
                yield f"clients were lost, and it is complete: {drive['lost_clients']}"
            least += counts["done"] + drive["warmup_counts"]["done"]
            most += drive["in_doubt"]
        most += least
        rows = value("select count(*) from witness.t")
        words = f"{rows} rows are there, {least} to {most} by drive.json"
        right = least <= rows <= most
        if not right and not altered:
            yield f"miscounted: {words}"
        elif not right and ran.code == 0:
            yield f"miscounted in silence: {words}"
        elif ran.code == 3 and right and not blind:
            yield f"a check failed: {words}"


class Loads(Workload):
    """A load in batches, by COPY or INSERT, that goes on after a lost connection."""

    keeps = True
    reach = 500_000

    def scenario(self) -> str:
        self.method = self.pick("copy_binary", "copy_text", "insert")
        self.name = f"load {self.method}"
        return LOAD.format(method=self.method, rows=MANY_ROWS)

    def judge(self, ran: Ran, value: Look, *, altered: bool, blind: bool) -> Iterator[str]:
        there = value("select to_regclass('loadstone.loaded') is not null")
        rows = value("select count(*) from loadstone.loaded") if there else 0
        if ran.code == 0 and rows != MANY_ROWS:
            yield f"{rows} rows are there and the run is complete"
        for drive in ran.drives("load"):
            committed = drive["load"]["committed"]["rows"] if drive["load"]["committed"] else 0
            if committed > rows and not altered:
                yield f"{committed} rows were committed by the account, {rows} are there"
        if ran.code == 3 and not altered and not blind:
            yield "a check failed though no byte was altered"


class Asks(Workload):
    """Queries in plain SQL, one by one or as a load."""

    def scenario(self) -> str:
        how = self.pick("warm_runs = 2", "duration_s = 0.7\nclients = 2")
        self.name = "ask" + (" load" if "duration" in how else "")
        return ASK.format(how=how)

    def judge(self, ran: Ran, value: Look, *, altered: bool, blind: bool) -> Iterator[str]:
        del value
        if ran.code == 3 and not altered and not blind:
            yield "a check failed though no byte was altered"


class Pgbench(Workload):
    """pgbench's command line."""

    def arguments(self, folder: Path, url: str) -> list[str]:
        mode = self.pick("simple", "extended", "prepared")
        self.name = f"pgbench {mode}"
        (folder / "script.sql").write_text(SCRIPTS["single"])
        how = ["-n", "-f", "script.sql", "-c", "2", "-j", "2", "-T", "1", "-M", mode]
        return ["pgbench", *how, *(["-C"] if self.pick("again", "") else []), url]

    def judge(self, ran: Ran, value: Look, *, altered: bool, blind: bool) -> Iterator[str]:
        del blind
        out = (ran.folder / "stdout").read_text()
        sign = "number of transactions actually processed: "
        if sign not in out:
            return
        processed = int(out.partition(sign)[2].split()[0].partition("/")[0])
        rows = value("select count(*) from witness.t")
        # One transaction of each client may have been in flight when its connection was lost.
        if not processed <= rows <= processed + (2 if ran.code else 0) and not altered:
            yield f"{rows} rows are there, {processed} transactions processed"


WORKLOADS: tuple[type[Workload], ...] = (Drives, Drives, Drives, Loads, Asks, Pgbench)
