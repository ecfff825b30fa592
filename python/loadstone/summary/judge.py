"""Which cautions apply: every threshold of the report's warnings, in one place."""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from loadstone.summary import cautions as c
from loadstone.summary import loadcautions as load
from loadstone.summary import questioncautions as query
from loadstone.summary.damage import damage
from loadstone.summary.series import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadstone.summary.reading import Json, RunFiles

CLIENT_BUSY = 0.85
"""Share of their wall time from which the driver's threads count as the limit."""
PAUSED = 0.05
"""Share of the measured time in which our own threads were stopped, from which the client was late."""
LAG_SHARE = 0.5
"""Event-loop lag (p99) over median latency from which the client may have been late."""
CEILING_SHARE = 0.8
"""Share of the calibrated ceiling from which the client may have been the limit."""
OTHER_BUSY = 0.10
STEAL = 0.02
DRIFT = 0.10
DRIFT_P = 0.01
NS_PER_MS = 1e6
_COMPILED = re.compile(r"compiled by [^,]+")
OFTEN_WANTED = 99.9
STARVED = 0.5
"""Share of the connections' time without rows to send from which making them may have been the limit."""
CLIENT_SHARE = 0.5
"""Our share of the CPU time that server and Loadstone used in a step."""
SHORT_STEP_S = 1.0
FEWEST_COLD, FEWEST_WARM = 3, 10
"""Runs of a query from which its medians are taken as more than chance."""
SHARE_WHILE_ASKING = 0.10
"""Our share of the CPU time of server and Loadstone, from which it is in the times of single queries."""
ROUNDS_APART = 1.1
"""How much slower one round must have been than another to be worth a word."""
SLOWER = 1.2
"""How much longer than its neighbours a step with a checkpoint must have taken to be worth a word."""


def judge_run(files: RunFiles) -> Iterator[c.Caution]:
    """Say what holds for the run as a whole: its end, our build, what was noted on the way."""
    if files.state != "complete":
        yield c.RunIncomplete(state=files.state, reason=str(files.run.get("reason") or ""))
    yield from (c.FolderDamaged(text=text) for text in damage(files, files.findings))
    if not files.findings.checked:
        yield c.NoManifest()
    if _is_debug(files.environment):
        yield c.DebugBuild()
    yield from _told(files)
    builds = {build for target in files.targets if (build := _build_of(target.target))}
    if len(builds) > 1:
        yield c.MixedBuilds(builds=tuple(sorted(builds)))


def _build_of(target: Json) -> str | None:
    """Return what is known of a server's build: what it was packed as, else which compiler it names."""
    if target.get("build"):
        return str(target["build"])
    named = _COMPILED.search(str(target.get("version_text") or ""))
    return f"{target.get('label')} ({named[0]})" if named else None


def _told(files: RunFiles) -> Iterator[c.Caution]:
    """Yield what the run warned of, before it began (the machine) and while it went on, each once."""
    before = [
        note for note in files.environment.get("warnings") or [] if "debug build" not in note["message"]
    ]
    during = [
        e
        for e in files.events
        if e.get("kind") in {"warning", "note"} and e.get("level") in {"warning", "error"}
    ]
    seen = set()
    for note in [*during, *before]:
        message = str(note.get("message", ""))
        if message in seen or ("debug build" in message and _is_debug(files.environment)):
            continue
        seen.add(message)
        yield c.Noted(
            text=message,
            advice=str(note.get("hint") or ""),
            event_level=note.get("level", "warning"),
            target=note.get("target"),
            phase=note.get("phase"),
        )


def judge_target(target: Json) -> Iterator[c.Caution]:
    """Say what holds for all figures of one target: durability and the way to it."""
    for setting in target.get("durability") or []:
        if setting.get("durable") is False:
            yield c.DurabilityOff(
                setting=str(setting.get("setting")),
                value=str(setting.get("value")),
                why=str(setting.get("why") or ""),
                target=target["id"],
            )
    if target.get("authentication") in {"password", "cleartext"} and not target.get("encrypted"):
        yield c.CleartextPassword(target=target["id"])
    if _is_unencrypted(target):
        yield c.NotEncrypted(target=target["id"])


def judge_phase(phase: Json, usage: Json | None, calibration: Mapping[str, object]) -> Iterator[c.Caution]:
    """Say what holds for one phase on one target."""
    where = {"target": phase["target"], "phase": phase["folder"]}
    for check in phase["checks"]:
        if check.get("passed") is False:
            yield c.CheckFailed(
                name=str(check.get("name")),
                expected=str(check.get("expected")),
                actual=str(check.get("actual")),
                **where,
            )
    drive = phase["drive"]
    if phase["state"] not in {"complete", "skipped"}:
        reason = phase["reason"] or (drive or {}).get("reason") or ""
        yield c.PhaseIncomplete(state=_state_in_words(phase["state"]), reason=str(reason), **where)
    if drive is None:
        return
    if phase["state"] == "complete":  # else the reason says so
        yield from (c.ServiceLost(text=text, **where) for text in drive["losses"])
    yield from _judge_counts(drive, where)
    yield from _judge_client(drive, where, calibration)
    yield from _judge_samples(drive, where, wanted=phase["load"] is None and phase["asking"] is None)
    yield from _judge_machine(usage, where)
    found = drive["drift"]
    # Whether steps take longer as the table grows is what they are there to show.
    if found and not phase["steps"] and abs(found["change"]) >= DRIFT and found["p_value"] <= DRIFT_P:
        yield c.Unsteady(change=found["change"], checkpoints=(usage or {}).get("checkpoints", 0), **where)
    yield from _judge_load(phase, usage, where)


def _judge_counts(drive: Json, where: Mapping[str, str]) -> Iterator[c.Caution]:
    counts = drive["counts"]
    begun = counts["scheduled"] + (counts.get("carried") or 0)
    if drive["equation"]["holds"] is False:
        yield c.CountsDoNotAddUp(text=drive["equation"]["text"], **where)
    if not counts["done"]:
        yield c.NothingDone(**where)
    if counts["failed"]:
        worst = max(drive["errors"], key=lambda error: error.get("count", 0), default=None)
        first = f"{worst.get('sqlstate')} {worst.get('message')}" if worst else "not recorded"
        yield c.ErrorsHappened(failed=counts["failed"], scheduled=begun, first=first, **where)
    if counts["skipped"] or drive["late"] or (counts["dropped"] and _has_rate(drive)):
        yield c.WorkDropped(
            skipped=counts["skipped"],
            dropped=counts["dropped"],
            late=drive["late"],
            scheduled=begun,
            **where,
        )
    if drive["in_doubt"]:
        yield c.InDoubt(count=drive["in_doubt"], **where)
    if drive["outages"]:
        ends = [outage.get("end_ns") for outage in drive["outages"]]
        last_ns = max(drive["window_end_ns"], *(outage["start_ns"] for outage in drive["outages"]))
        starts = [outage["start_ns"] for outage in drive["outages"]]
        lengths = [(end or last_ns) - start for start, end in zip(starts, ends, strict=True)]
        longest = max(lengths) / NS_PER_S
        yield c.Outage(count=len(ends), longest_s=longest, endless=None in ends, **where)


def _judge_client(
    drive: Json, where: Mapping[str, str], calibration: Mapping[str, object]
) -> Iterator[c.Caution]:
    if drive["measured_s"] and drive["pauses_s"] >= PAUSED * drive["measured_s"]:
        yield c.ClientPaused(paused_s=drive["pauses_s"], measured_s=drive["measured_s"], **where)
    used = (drive["client_cpu"] or {}).get("utilisation")
    if used is not None and used >= CLIENT_BUSY:
        yield c.ClientWasTheLimit(utilisation=used, threads=drive["threads"] or 1, **where)
    lag = (drive["loop"] or {}).get("lag_p99_ns")
    middle = next((p["value_ns"] for p in drive["response"]["percentiles"] if p["percentile"] == 50), None)  # noqa: PLR2004
    if lag and middle and lag >= LAG_SHARE * middle:
        yield c.ClientMayHaveBeenLate(lag_p99_ms=lag / NS_PER_MS, median_ms=middle / NS_PER_MS, **where)
    top = ceiling(calibration, drive)
    tps = drive["tps"]["value"]
    if top and tps and tps >= CEILING_SHARE * top:
        yield c.NearCeiling(tps=tps, ceiling=top, **where)


def ceiling(calibration: Mapping[str, object], drive: Json) -> float | None:
    """Return the calibrated tps for the drive's protocol mode, at the nearest number of clients."""
    results = calibration.get("results")
    rows = [
        row
        for row in (results if isinstance(results, list) else [])
        if isinstance(row, dict)
        and row.get("mode") == drive["mode"]
        and row.get("tps")
        and row.get("clients")
    ]
    if not rows or not drive["clients"]:
        return None
    nearest = min(rows, key=lambda row: (abs(row["clients"] - drive["clients"]), row["clients"]))
    return float(nearest["tps"])


def _judge_samples(drive: Json, where: Mapping[str, str], *, wanted: bool) -> Iterator[c.Caution]:
    response = drive["response"]
    if response["count"] and drive["logged"] < response["count"]:
        yield c.LogIncomplete(logged=drive["logged"], counted=response["count"], **where)
    entry = next(p for p in response["percentiles"] if p["percentile"] == OFTEN_WANTED)
    if wanted and response["count"] and entry["value_ns"] is None:
        yield c.TooFewSamples(samples=drive["logged"], percentile=OFTEN_WANTED, needed=10_000, **where)


def _judge_machine(usage: Json | None, where: Mapping[str, str]) -> Iterator[c.Caution]:
    if usage is None:
        return
    # Without the server's own share (a remote one, or one of another user) "other" would blame the server.
    other = (usage["cpu_other"] or 0.0) if usage["cpu_server"] is not None else 0.0
    steal = usage["cpu_steal"] or 0.0
    if other >= OTHER_BUSY or steal >= STEAL:
        yield c.MachineWasBusy(other=other, steal=steal, **where)


def judge_disks(files: RunFiles, phases: Sequence[Json]) -> Iterator[c.Caution]:
    """Say where the results share a disk with the data of a bulk load, whose device bytes are counted."""
    places = files.environment.get("storage") or {}
    disk = (places.get("results") or {}).get("disk")
    loaded = {phase["target"] for phase in phases if phase["storage"] or phase["steps"]}
    for target in sorted(loaded):
        if disk and (places.get(f"data of {target}") or {}).get("disk") == disk:
            yield load.SharedDisk(disk=str(disk), target=target)


def _judge_load(phase: Json, usage: Json | None, where: Mapping[str, str]) -> Iterator[c.Caution]:
    starved = (phase["load"] or {}).get("starved")
    if starved is not None and starved >= STARVED:
        yield load.RowsWereTheLimit(starved=min(1.0, starved), **where)
    steps = (phase["steps"] or {}).get("points") or []
    limit = (phase["steps"] or usage or {}).get("memory_limit_bytes")
    if limit and (steps or phase["storage"]):
        yield load.MemoryLimited(limit_bytes=int(limit), **where)
    yield from _judge_steps([step for step in steps if step["state"] == "complete"], where)


def _judge_steps(steps: Sequence[Json], where: Mapping[str, str]) -> Iterator[c.Caution]:
    short = [step for step in steps if step["seconds"] < SHORT_STEP_S]
    if short and len(steps) > 1:
        yield load.ShortSteps(short=len(short), total=len(steps), seconds=SHORT_STEP_S, **where)
    shares = {step["step"]: share for step in steps if (share := _client_share(step)) is not None}
    ours = tuple(step for step, share in shares.items() if share >= CLIENT_SHARE)
    if ours:
        most = max(shares.values())
        yield load.ClientUsedMore(steps=ours, total=len(steps), share=most, **where)
    met = [at for at, step in enumerate(steps) if step["checkpoints"]]
    if not 0 < len(met) <= len(steps) / 2:
        return
    slower = median(_against_neighbours(steps, at) for at in met)
    if slower >= SLOWER:
        numbers = tuple(steps[at]["step"] for at in met)
        yield load.CheckpointsInSteps(steps=numbers, total=len(steps), slower=slower, **where)


def _client_share(step: Json) -> float | None:
    ours, servers = step["client_cpu_s"], step["server_cpu_s"]
    return ours / (ours + servers) if ours is not None and servers is not None and ours + servers else None


def _against_neighbours(steps: Sequence[Json], at: int) -> float:
    """Return the step's time per row over that of those right before and after it without a checkpoint."""
    around = (*steps[max(0, at - 1) : at], *steps[at + 1 : at + 2])
    beside = [step for step in around if not step["checkpoints"]]
    usual = [step["seconds"] / step["rows"] for step in beside if step["rows"] and step["seconds"]]
    own = steps[at]
    return own["seconds"] / own["rows"] / (sum(usual) / len(usual)) if usual and own["rows"] else 1.0


def judge_asked(asked: Sequence[Json]) -> Iterator[c.Caution]:
    """Say what holds for queries that were asked one by one, target by target."""
    for entry in asked:
        mixed = len({target["in_process"] for target in entry["targets"]}) > 1
        for target in entry["targets"]:
            where = {"target": target["target"], "phase": target["phases"][0]}
            if mixed and target["in_process"]:
                yield query.InOurProcess(target=target["target"])
            if target["caches"] and not target["caches"]["emptied"]:
                yield query.CachesNotEmptied(note=target["caches"]["note"], target=target["target"])
            share = target["client_share"]
            if share is not None and share >= SHARE_WHILE_ASKING:
                yield query.ClientWorkedWhileAsking(share=share, **where)
            yield from _judge_runs(entry, target, where)


def _judge_runs(entry: Json, target: Json, where: Mapping[str, str]) -> Iterator[c.Caution]:
    done = [question for question in target["questions"] if not question["failed"]]
    if done:
        warm = min(question["warm"]["n"] for question in done)
        cold = min(question["cold"]["n"] for question in done) if entry["cold"] else None
        if warm < FEWEST_WARM or (cold is not None and cold < FEWEST_COLD):
            yield query.FewRuns(
                cold=cold, warm=warm, fewest_cold=FEWEST_COLD, fewest_warm=FEWEST_WARM, **where
            )
    for question in target["questions"]:
        if question["failed"]:
            yield query.QuestionsFailed(name=question["name"], reason=question["failed"], **where)
        if question["plan_says_gpu"] and question["gpu"] == "CPU":
            yield query.NoGpuSeen(name=question["name"], **where)
    apart = tuple(question["name"] for question in target["questions"] if _rounds_apart(question["runs"]))
    if apart:
        yield query.RoundsDiffer(names=apart, target=target["target"])


def _rounds_apart(runs: Sequence[Json]) -> bool:
    """Whether all warm runs of one round were clearly slower than all of another."""
    rounds: dict[int, list[float]] = {}
    for run in runs:
        if run["kind"] == "warm" and run["state"] == "done":
            rounds.setdefault(run["round"], []).append(run["seconds"])
    whole = [times for times in rounds.values() if len(times) > 2]  # noqa: PLR2004 - two may fall apart by chance
    return len(whole) > 1 and max(map(min, whole)) > ROUNDS_APART * min(map(max, whole))


def judge_imports(imports: Sequence[Json]) -> Iterator[c.Caution]:
    """Say where an import did not lose to the queries beside it what it should have lost."""
    for entry in imports:
        for asked in entry["loads"]:
            alone = [other for other in entry["loads"] if _without_queries(other, asked)]
            best = max((other["rows_per_s"]["value"] or 0.0 for other in alone), default=0.0)
            rate = asked["rows_per_s"]["value"] or 0.0
            if asked["asked_beside"] and best and rate >= best:
                yield query.NotSlowerWhileAsked(rate=rate, alone=best, target=asked["target"])


def _without_queries(other: Json, asked: Json) -> bool:
    """Whether an import is the same but for the queries beside it."""
    same = all(other[name] == asked[name] for name in ("target", "workers", "rows"))
    return same and other["asked_beside"] is None


def judge_widths(concurrency: Sequence[Json]) -> Iterator[c.Caution]:
    """Say where the clients were busy between answers, so that the engine had less to do than it could."""
    for entry in concurrency:
        for target in entry["targets"]:
            busy = [point for point in target["points"] if point["client_busy_between"]]
            if busy:
                yield query.ClientBusyBetween(
                    clients=tuple(point["clients"] for point in busy),
                    in_flight=tuple(point["in_flight"] for point in busy),
                    target=target["target"],
                )


def _has_rate(drive: Json) -> bool:
    return bool((drive["pace"] or {}).get("kind", "closed") != "closed")


def _state_in_words(state: str) -> str:
    return "killed" if state == "running" else state


def _is_debug(environment: Json) -> bool:
    core = (environment.get("loadstone") or {}).get("core") or {}
    return bool(core.get("debug_build"))


def _is_unencrypted(target: Json) -> bool:
    if target.get("encrypted") is not None:
        return not target["encrypted"] and target.get("local") is False
    query = parse_qs(urlsplit(str(target.get("url") or "")).query)
    return target.get("local") is False and query.get("sslmode") == ["disable"]
