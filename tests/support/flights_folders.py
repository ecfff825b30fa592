"""Makes run folders of plain queries out of those of runfolders.py: imports, cold and warm runs, a load."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from loadstone.results import documents
from loadstone.results.documents.drive import (
    Caches,
    ConcurrentQueries,
    Draw,
    Loaded,
    LoadedTable,
    PlainTable,
    QueriesInTurn,
    QueriesInTurnDrive,
    QueryInTurn,
    QueryInTurnRun,
    RowSource,
)
from loadstone.results.documents.phase import Check, Look, Published, Storage, StoredTable, WrittenBytes
from support.fake_monitor import Monitor, write_lines
from support.run_folders import NS, Phase, Run, Target, build, write
from support.table_load_folders import _change, _phase_folders, _rewrite, _variant

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 10_000_000
TEXT_ROW_BYTES = 400.0
QUERIES = {
    "Sql1": "select count(*) from flights",
    "Sql2": "select count(*) from flights where origin_country = 'USA'",
    "Sql3": "select count(*) as cnt, avg(distance) as dis from flights where flight_month = 10",
    "Sql4": "select origin_city, dest_city, count(*), avg(airtime) as atime from flights group by 1,2",
    "Sql5": "select origin_state, dest_state, count(*) from flights where distance < 175 group by 1, 2",
}
WARM_S = {"Sql1": 0.4, "Sql2": 0.8, "Sql3": 0.5, "Sql4": 2.0, "Sql5": 1.0}
"""Median of the warm runs on a target of speed 1; its cold runs take three times as long."""
SPREAD = (0.97, 0.99, 1.0, 1.0, 1.01, 1.02)
"""What the warm runs of a round are multiplied by, in the order in which they ran; the median is 1."""
PG = Target()
DUCK = Target(id="duckdb", label="DuckDB 2.0.0", build=None, speed=20.0, url="duckdb:")
HEAVY = Target(id="heavydb", label="HeavyDB 8.0", build=None, speed=40.0, url="heavydb://localhost")
TABLE_BYTES = {"pg18": 4_000_000_000, "duckdb": 500_000_000, "heavydb": 1_600_000_000}
PUBLISHED = {
    "MapD (GPU)": (52, 58, 57, 252, 162),
    "Vertica": (1698, 578, 153, 8567, 263),
    "PostgreSQL 9.6": (71_456, 142_894, 74_287, 1_270_628, 211_838),
}
SOURCE = {
    "title": "MapD, Vertica, PG-Strom and others on US flights",
    "author": "digoal",
    "year": 2017,
    "hardware": "4 × E5-2650 v4, 8 GB RAM, SSD, Tesla P40 24 GB, 210 M rows",
    "cores": 48,
    "url": "https://example.org/flights",
}
QPS = {1: 8.0, 10: 8.4, 20: 8.5, 50: 8.4}


@dataclass(frozen=True)
class Flights:
    """What is to be made; `failing` and `wrong` name a query on a target."""

    targets: tuple[Target, ...] = (PG, DUCK)
    rounds: int = 3
    warm_runs: int = 6
    cold: bool = True
    emptied: bool = True
    failing: tuple[str, str] | None = None
    wrong: tuple[str, str] | None = None
    prices: dict[str, float] = field(default_factory=dict)
    gpu: bool = False
    """A GPU is there, at work while the queries are asked."""
    load: bool = True
    bandwidth: bool = True


def flights(folder: Path, made: Flights | None = None) -> Path:
    """Imports, queries in rounds, and a load of one of them, as a run folder."""
    made = made or Flights()
    imports = tuple(
        Phase(
            id="import",
            title="Import",
            variant={"workers": workers},
            seconds=8 // workers,
            warmup=0,
            tps=20,
            median_ms=500.0,
        )
        for workers in (1, 2)
    )
    loads = tuple(
        Phase(
            id="concurrency",
            title="Sql5 with a random distance",
            variant={"clients": clients},
            clients=clients,
            seconds=5,
            warmup=0,
            samples_ns=(int(clients / qps * NS),) * round(qps * 10),
            sql=QUERIES["Sql5"].replace("175", ":distance"),
        )
        for clients, qps in (QPS.items() if made.load else ())
    )
    build(
        folder, Run(phases=(*imports, *loads), targets=made.targets, command=("loadstone", "run", "flights"))
    )
    for home in _phase_folders(folder):
        _give_import(home) if "import" in home.name else _give_load(home)
    for target in made.targets:
        _ask(folder, target, made)
        _change(folder / "targets" / target.id / "target.json", in_process=target.id == "duckdb")
    _rename(folder)
    _rewrite(folder / "plan.json", _sourced)
    if made.prices:
        _change(folder / "run.json", prices=made.prices)
    if made.bandwidth:
        disk = {"bytes_per_s": 2e9, "reason": None, "method": "192 MiB read in order"}
        memory = {"bytes_per_s": 20e9, "reason": None, "method": "copy on 2 thread(s)", "threads": 2}
        _change(folder / "environment.json", bandwidth={"memory": memory, "disks": {"data of pg18": disk}})
    return folder


def _sourced(plan: dict[str, Any]) -> dict[str, Any]:
    for scenario in plan["scenarios"]:
        scenario |= {
            "title": "Row, column and GPU engines",
            "source": SOURCE,
            "why": "Which engine scans fastest?",
        }
    return plan


def _rename(folder: Path) -> None:
    """Call the scenario by its name everywhere."""
    for path in (*folder.glob("*.json"), *folder.glob("targets/*/phases/*/phase.json")):
        path.write_text(path.read_text().replace("iot-feed", "flights"))


def _give_import(home: Path) -> None:
    """Make of a drive phase the import of the whole table."""
    target = home.parents[1].name
    published = [
        Published("rows_per_s", value, "rows/s", "210 M rows", name)
        for name, value in (("MapD (GPU)", 275_000), ("Vertica", 142_000))
    ]
    published += [
        Published("ratio", 2.27, ": 1", "", "MapD (GPU)"),
        Published("table_bytes", 37e9, "B", "", "MapD (GPU)"),
        Published("ratio", 13.12, ": 1", "", "Vertica"),
    ]
    table = StoredTable(
        name="flights",
        rows=ROWS,
        logical_bytes=ROWS * 250,
        heap_bytes=TABLE_BYTES[target],
        toast_bytes=0,
        index_bytes=0,
        map_bytes=0,
        indexes=[],
    )

    def load(drive: dict[str, Any]) -> dict[str, Any]:
        load = Loaded(
            rows=ROWS,
            metrics=ROWS * 56,
            batches=100,
            tables=[LoadedTable("flights", ROWS)],
            table=PlainTable("flights", row_bytes=250.0, text_row_bytes=TEXT_ROW_BYTES),
            logical_bytes=ROWS * 250,
            source=RowSource(wait_ns=0),
        )
        return {**drive, "mode": "copy_binary", "clients": int(_variant(home)["workers"]), "load": load}

    _rewrite(home / "drive.json", load)
    storage = Storage([Look("after the load", [table])], WrittenBytes(), notes=[])
    _change(home / "phase.json", kind="load", headline="rows_per_s", storage=storage, published=published)


def _give_load(home: Path) -> None:
    """Make of a drive phase a query asked by many clients."""
    clients = _variant(home)["clients"]

    def asked(drive: dict[str, Any]) -> dict[str, Any]:
        script = drive["scripts"][0]
        label = {"label": "Sql5", "rows": 1000, **{k: script[k] for k in ("counts", "service")}}
        plain_queries = ConcurrentQueries("flights", ROWS, clients, draws=[Draw("distance", 100, 3000)])
        return {**drive, "clients": clients, "queries": {"labels": [label]}, "plain_queries": plain_queries}

    _rewrite(home / "drive.json", asked)
    value = {1: 7.9, 10: 8.5, 20: 8.5, 50: 8.4}[clients]
    figure = Published("qps", value, "1/s", "210 M rows", "MapD (GPU)")
    _change(home / "phase.json", kind="queries", published=[figure], checks=[])


def _ask(folder: Path, target: Target, made: Flights) -> None:
    """Write the rounds of queries of one target, and what the monitor saw meanwhile."""
    home = folder / "targets" / target.id
    lines = [json.loads(line) for line in (home / "monitor.jsonl").read_text().splitlines()]
    clock_ns = lines[-1]["t_ns"] + 10 * NS
    number = len(list((home / "phases").iterdir()))
    monitor = Monitor(np.random.default_rng(7))
    for turn in range(1, made.rounds + 1):
        number += 1
        begun_ns = clock_ns
        runs, clock_ns = _runs(target, made, turn, clock_ns)
        key = f"{number:03d}-queries-round-{turn}"
        path = home / "phases" / key
        path.mkdir()
        write(path / "drive.json", _account(target, made, runs, (begun_ns, clock_ns)))
        write(path / "phase.json", _phase(target, made, key, turn, (begun_ns, clock_ns)))
        for t_ns in range(begun_ns, clock_ns + NS, NS):
            monitor.second(t_ns, 1.0)
        clock_ns += 10 * NS
    seen = monitor.samples
    if made.gpu:
        seen = [{**line, "gpu": [_card(at)]} for at, line in enumerate(seen)]
    write_lines(home / "monitor.jsonl", [*lines, *seen])


def _card(at: int) -> dict[str, Any]:
    """A GPU that draws 150 W, one reading a second."""
    return {
        "index": 0,
        "name": "Tesla P40",
        "utilisation": 0.9,
        "memory_used_bytes": 3 * 2**30,
        "memory_total_bytes": 24 * 2**30,
        "power_w": 150.0,
        "energy_j": 1000.0 + 150.0 * at,
    }


def _runs(target: Target, made: Flights, turn: int, clock_ns: int) -> tuple[list[QueryInTurnRun], int]:
    runs: list[QueryInTurnRun] = []
    for name in QUERIES:
        kinds: list[tuple[Literal["cold", "warm"], int, float]] = []
        if made.cold:
            kinds.append(("cold", 1, 3.0 * (1 + 0.1 * (turn - 2))))
        kinds += [("warm", at + 1, factor) for at, factor in enumerate(SPREAD[: made.warm_runs])]
        broken = False
        for kind, number, factor in kinds:
            seconds = WARM_S[name] / target.speed * factor
            end_ns = clock_ns + round(seconds * NS)
            fails = made.failing == (target.id, name) and (kind, number, turn) == ("warm", 2, 1)
            broken = broken or fails
            if fails:
                reason = "canceling statement due to statement timeout"
                run = QueryInTurnRun(name, kind, "failed", number, clock_ns, end_ns, reason=reason)
            elif broken:
                run = QueryInTurnRun(name, kind, "skipped", number)
            else:
                run = QueryInTurnRun(name, kind, "done", number, clock_ns, end_ns, seconds, rows=1)
            runs.append(run)
            clock_ns = end_ns + NS // 100
    return runs, clock_ns


def _account(
    target: Target, made: Flights, runs: list[QueryInTurnRun], window: tuple[int, int]
) -> QueriesInTurnDrive:
    note = (
        "its files were taken out of the page cache" if made.emptied else "this server is not ours to restart"
    )
    queries = [
        QueryInTurn(
            name=name,
            sql=sql,
            plan=f"Aggregate\n  ->  Seq Scan on flights ({name})",
            gpu=target.id == "heavydb" if made.gpu or target.id == "heavydb" else None,
            wrong="column cnt: sum 5, expected 6" if made.wrong == (target.id, name) else None,
        )
        for name, sql in QUERIES.items()
    ]
    plain_queries = QueriesInTurn(
        table="flights",
        rows=ROWS,
        table_bytes=TABLE_BYTES[target.id],
        cold=made.cold,
        caches=Caches(made.emptied, note) if made.cold else None,
        runs=runs,
        queries=queries,
        notes=[],
    )
    return QueriesInTurnDrive(
        plain_queries, state="complete", start_ns=window[0], end_ns=window[1], outages=[]
    )


def _phase(target: Target, made: Flights, key: str, turn: int, window: tuple[int, int]) -> documents.Phase:
    wrong = made.wrong[1] if made.wrong and made.wrong[0] == target.id else None
    name = f"{wrong} answers as on the first target"
    check = Check(name, expected="the same", actual="another", passed=False, detail="")
    return documents.Phase(
        number=int(key[:3]),
        id="queries",
        key=key,
        kind="queries",
        title="Five queries, cold and warm",
        why="From a count to a group-by over the whole table.",
        variant={"round": turn},
        round=turn,
        repeat=1,
        target=target.id,
        scenario="flights",
        state="failed" if wrong else "complete",
        reason=f"{wrong} gave another answer" if wrong else None,
        start_ns=window[0] - NS,
        end_ns=window[1] + NS // 2,
        statements=[],
        headline="tps",
        published=[
            Published(
                metric=f"{kind}_ms",
                query=query,
                system=system,
                value=values[at] * (4 if kind == "cold" else 1),
                unit="ms",
                note="210 M rows",
            )
            for kind in ("cold", "warm")
            for system, values in PUBLISHED.items()
            for at, query in enumerate(QUERIES)
        ],
        checks=[check] if wrong else [],
    )
