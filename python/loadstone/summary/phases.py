"""One phase on one target, in figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loadstone.model import ROUND
from loadstone.results.service import pauses_ns, service_losses, window_end_ns
from loadstone.summary.freshness import summarise_freshness
from loadstone.summary.histograms import SUPPORT, Histogram
from loadstone.summary.loads import summarise_load
from loadstone.summary.queries import summarise_queries
from loadstone.summary.questions import asked_in_turn, without_round
from loadstone.summary.series import (
    NS_PER_S,
    LatencyLog,
    interval_rates,
    measured,
    read_latencies,
    throughput_over_time,
)
from loadstone.summary.statistics import batch_means, drift
from loadstone.summary.steps import costs_per_row, stepped_rate, summarise_steps
from loadstone.summary.storage import summarise_storage
from loadstone.summary.transactions import summarise_transactions
from loadstone.summary.whileloading import summarise_late

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.summary.reading import Json, PhaseFiles

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
FEWEST_DONE = 10
"""Transactions or queries from which the intervals of a run say how much its rate scatters."""
COPIED = (
    "number",
    "id",
    "key",
    "kind",
    "title",
    "why",
    "variant",
    "repeat",
    "target",
    "scenario",
    "state",
    "reason",
)
EQUATION = "scheduled + carried over from the warm-up = done + failed + skipped + dropped"
ASKING = ("table", "rows", "clients", "draws")
OUTCOMES = ("done", "failed", "skipped", "dropped")
COUNTS = ("scheduled", "carried", *OUTCOMES)


def summarise_phase(files: PhaseFiles, origin_ns: int) -> Json:
    """Say what the report says of one phase; times in seconds since the run's origin."""
    phase = files.phase
    summary: Json = {name: phase.get(name) for name in COPIED}
    summary["folder"] = files.folder.key
    # Rounds are turns of one measurement: what tells variants apart is the rest.
    summary["variant"] = without_round(phase["variant"])
    summary["round"] = phase.get(ROUND) or phase["variant"].get(ROUND)
    summary["start_s"] = _seconds_since(origin_ns, phase.get("start_ns"))
    summary["end_s"] = _seconds_since(origin_ns, phase.get("end_ns"))
    summary["headline"] = phase.get("headline") or "tps"
    summary["rows_per_transaction"] = phase.get("rows_per_transaction")
    summary["published"] = phase.get("published") or []
    summary["checks"] = phase.get("checks") or []
    summary["setup"] = phase.get("statements") or []
    summary["drive"] = None if asked_in_turn(files) else summarise_drive(files, origin_ns)
    summary["asking"] = _asking(files)
    summary["sizes"] = summarise_sizes(phase.get("sizes"), summary["drive"], _rows_loaded(files))
    summary["steps"] = summarise_steps(files, origin_ns)
    if summary["steps"] and (summary["sizes"] or {}).get("per_unit"):
        summary["sizes"]["per_unit"] |= costs_per_row(summary["steps"])
    summary["load"] = summarise_load(files.drive, summary)
    summary["queries"] = summarise_queries(files.drive, summary["drive"])
    summary["storage"] = summarise_storage(phase, files.drive)
    begun_ns = (files.drive or {}).get("start_ns") or phase.get("start_ns") or origin_ns
    summary["transactions"] = summarise_transactions(files.drive, files.progress, begun_ns)
    summary["beside"] = _beside(files, origin_ns)
    summary["freshness"] = summarise_freshness(files.sent, files.probe)
    return summary


def _beside(files: PhaseFiles, origin_ns: int) -> Json | None:
    """Return the queries that ran while the phase loaded, and those near its end; None without such."""
    if files.beside is None or (beside := summarise_drive(files.beside, origin_ns)) is None:
        return None
    return {
        "drive": beside,
        "queries": summarise_queries(files.beside.drive, beside),
        "late": summarise_late(files.drive, files.beside.series),
    }


def _asking(files: PhaseFiles) -> Json | None:
    """Return what plain queries went round as a load, alone or beside an import; None without such."""
    drive = (
        files.drive if (files.drive or {}).get("asking") else (files.beside.drive if files.beside else None)
    )
    found = (drive or {}).get("asking")
    return {name: found.get(name) for name in ASKING} if found and "runs" not in found else None


def _rows_loaded(files: PhaseFiles) -> int | None:
    """Return the rows that the phase added, its tags left out; None where that is not known."""
    drive = files.drive
    if drive and drive.get("load"):
        return int(drive["load"]["rows"])
    each = files.phase.get("rows_per_transaction")
    if drive is None or not each:
        return None
    return int(each * (drive["counts"]["done"] + (drive.get("warmup_counts") or {}).get("done", 0)))


def summarise_drive(files: PhaseFiles, origin_ns: int) -> Json | None:
    """Return the driver's account with intervals and percentiles; None for a phase that drove nothing."""
    drive = files.drive or _reconstructed(files)
    if drive is None:
        return None
    start_ns = drive["start_ns"]
    log = read_latencies(files.folder.latency_path, files.series, start_ns)
    measured_s = max(0, drive["end_ns"] - drive["measure_ns"]) / NS_PER_S
    rates = interval_rates(files.series)
    summary: Json = {name: drive.get(name) for name in ("io", "mode", "clients", "threads", "pace", "seed")}
    summary |= {
        "reconstructed": files.drive is None,
        "state": drive.get("state"),
        "reason": drive.get("reason"),
        "start_s": (start_ns - origin_ns) / NS_PER_S,
        "measure_s": (drive["measure_ns"] - origin_ns) / NS_PER_S,
        "end_s": (drive["end_ns"] - origin_ns) / NS_PER_S,
        "measured_s": measured_s,
        "warmup_s": (drive["measure_ns"] - start_ns) / NS_PER_S,
        # Folders written before what was carried over was counted have no such key.
        "counts": dict.fromkeys(COUNTS, 0) | drive["counts"],
        "warmup_counts": drive.get("warmup_counts") or dict.fromkeys(COUNTS, 0),
        "losses": service_losses(drive),
        "window_end_ns": window_end_ns(drive),
        "pauses_s": pauses_ns(drive) / NS_PER_S,
        "equation": _equation(drive, files.series, verifiable=files.drive is not None),
        "drift": _drift(rates),
        "series": throughput_over_time(files.series, start_ns),
        "latency_series": log.over_time,
        "curve": [{"beyond": b, "value_ns": v} for b, v in _total(log, "response").curve()],
        "logged": _total(log, "response").count,
    }
    summary |= _rates(drive, files.phase.get("rows_per_transaction"), measured_s, rates)
    summary |= _loaded(drive, files, measured_s)
    summary |= _latencies(drive, log)
    summary |= _accounts(drive, measured_s)
    return summary


def summarise_sizes(sizes: Json | None, drive: Json | None, rows: int | None) -> Json | None:
    """Bytes by kind before and after, the largest relations, and growth per transaction and row."""
    if not sizes or not sizes.get("after"):
        return None
    before, after = sizes.get("before") or {}, sizes["after"]
    old = {relation["name"]: relation.get("bytes") or 0 for relation in before.get("relations") or []}
    relations = [
        {**relation, "growth_bytes": (relation.get("bytes") or 0) - old.get(relation["name"], 0)}
        for relation in after.get("relations") or []
    ]
    kinds = {
        kind: {
            "before": _kind_bytes(before, kind),
            "after": _kind_bytes(after, kind),
            "growth": _kind_bytes(after, kind) - _kind_bytes(before, kind),
        }
        for kind in ("table", "index", "toast", "other")
    }
    wal = _difference(after.get("wal_lsn_bytes"), before.get("wal_lsn_bytes"))
    return {
        "database_before": before.get("database_bytes"),
        "database_after": after.get("database_bytes"),
        "kinds": kinds,
        "wal_bytes": wal,
        "relations": relations,
        "relations_left_out": after.get("relations_left_out") or 0,
        "per_unit": _per_unit(wal, kinds, drive, rows),
    }


def latency(stats: Json, histogram: Histogram) -> Json:
    """STATS with the percentiles that the samples support; the others say why they are missing."""
    summary: Json = {name: stats.get(name) for name in ("count", "mean_ns", "stddev_ns", "min_ns", "max_ns")}
    summary["percentiles"] = [_percentile(histogram, percentile) for percentile in PERCENTILES]
    return summary


def _percentile(histogram: Histogram, percentile: float) -> Json:
    entry: Json = {"percentile": percentile, "value_ns": None, "reason": None}
    needed = round(SUPPORT / (1 - percentile / 100))
    if histogram.supports(percentile):
        entry["value_ns"] = histogram.percentile_ns(percentile)
    elif histogram.count:
        entry["reason"] = f"needs {needed:,} samples, there are {histogram.count:,}"
    else:
        entry["reason"] = "no samples"
    return entry


def _rates(drive: Json, rows: int | None, measured_s: float, rates: list[float]) -> Json:
    done = drive["counts"]["done"]
    if measured_s <= 0:
        none = _bare(None, 0, "nothing was measured")
        return {"tps": none, "tps_including_connections": None, "rows_per_s": None}
    tps = _rate(done / measured_s, rates)
    if done < FEWEST_DONE:
        # Most intervals hold none then, and look steady.
        tps = _bare(tps["value"], 0, f"only {done} done; at least {FEWEST_DONE} are needed")
    connect_s = ((drive.get("connect") or {}).get("wall_ns") or 0) / NS_PER_S
    return {
        "tps": tps,
        "tps_including_connections": done / (measured_s + connect_s),
        "rows_per_s": _scaled(tps, rows) if rows else None,
    }


def _loaded(drive: Json, files: PhaseFiles, measured_s: float) -> Json:
    """Return a load's rows and metrics per second, in place of those of a fixed number of rows."""
    load = drive.get("load")
    if not load or measured_s <= 0:
        return {"metrics_per_s": None}
    if stepped := stepped_rate(files.steps):
        return {"rows_per_s": _over_steps(*_at_rest(load, *stepped)), "metrics_per_s": None}
    return {
        f"{name}_per_s": _rate(load[name] / measured_s, interval_rates(files.series, name))
        for name in ("rows", "metrics")
    }


def _at_rest(load: Json, value: float, rates: list[float]) -> tuple[float, list[float]]:
    """Count into a rate over steps what the engine does behind them before the load is at rest."""
    finish_s = (load.get("finish_ns") or 0) / NS_PER_S
    rows = load["rows"]
    return (rows / (rows / value + finish_s) if finish_s and rows else value), rates


def _over_steps(value: float, rates: list[float]) -> Json:
    """Return a rate whose interval is left out where steps differ so much that it would say nothing."""
    rate = _rate(value, rates)
    if rate["low"] is None or rate["high"] - rate["low"] <= value:
        return rate
    return _bare(value, len(rates), "the rate changes from step to step: see their course")


def _rate(value: float, rates: list[float]) -> Json:
    interval = batch_means(rates, value)
    if isinstance(interval, str):
        return _bare(value, len(rates), interval)
    return {**asdict(interval), "reason": None}


def _bare(value: float | None, n: int, reason: str) -> Json:
    """Return a rate without an interval, and why it has none."""
    return {"value": value, "low": None, "high": None, "n": n, "reason": reason}


def _scaled(rate: Json, factor: float) -> Json:
    scaled = dict(rate)
    for name in ("value", "low", "high"):
        scaled[name] = None if rate[name] is None else rate[name] * factor
    return scaled


def _drift(rates: list[float]) -> Json | None:
    found = drift(rates)
    return None if found is None else {"change": found[0], "p_value": found[1]}


def _latencies(drive: Json, log: LatencyLog) -> Json:
    closed = (drive.get("pace") or {}).get("kind", "closed") == "closed"
    response = latency(drive["response"], _total(log, "response"))
    service = None if closed else latency(drive.get("service") or {}, _total(log, "service"))
    note = (
        "Closed loop: a transaction starts when its client is free; response and service time are the same."
        if closed
        else "Response time counts from the intended start, service time from the real start."
    )
    statements = [
        {
            **{name: statement.get(name) for name in ("script", "index", "line", "text", "failed")},
            "service": latency(
                statement.get("service") or {},
                _total(log, f"statement-{statement.get('script')}.{statement.get('index')}"),
            ),
        }
        for statement in drive.get("statements") or []
    ]
    return {"response": response, "service": service, "latency_note": note, "statements": statements}


def _accounts(drive: Json, measured_s: float) -> Json:
    """Everything that is passed on as the driver counted it, and what the client cost."""
    names = ("in_doubt", "retried", "retries", "late")
    summary: Json = {name: drive.get(name) or 0 for name in names}
    summary |= {name: drive.get(name) or [] for name in ("errors", "outages", "scripts")}
    summary |= {name: drive.get(name) for name in ("connect", "lag", "loop", "bytes_sent", "bytes_received")}
    cpu = drive.get("client_cpu")
    finished = drive["counts"]["done"] + drive["counts"]["failed"]
    if not cpu:
        return summary | {"client_cpu": None}
    spent_ns = cpu["user_ns"] + cpu["system_ns"]
    wall_ns = measured_s * NS_PER_S * (drive.get("threads") or 1)
    summary["client_cpu"] = {
        **cpu,
        "per_transaction_ns": spent_ns / finished if finished else None,
        "utilisation": spent_ns / wall_ns if wall_ns else None,
    }
    return summary


def _equation(drive: Json, series: Sequence[Json], *, verifiable: bool) -> Json:
    """Verify the counting equations of the measured window and the warm-up, and the intervals' sum."""
    if not verifiable:
        return {"holds": None, "text": "counts are rebuilt from the intervals: nothing to verify"}
    wrong = []
    # What the warm-up scheduled and had not ended goes from there into the measured window.
    for name, sign in (("counts", 1), ("warmup_counts", -1)):
        counts = drive.get(name) or {}
        begun = counts.get("scheduled", 0) + sign * counts.get("carried", 0)
        parts = [counts.get(part, 0) for part in OUTCOMES]
        if begun != sum(parts):
            terms = " + ".join(f"{count:,} {part}" for part, count in zip(OUTCOMES, parts, strict=True))
            wrong.append(f"{name}: {begun:,} scheduled, but {terms} = {sum(parts):,}")
    wrong += _against_intervals(drive, series)
    return {"holds": not wrong, "text": "; ".join(wrong) or EQUATION}


def _against_intervals(drive: Json, series: Sequence[Json]) -> list[str]:
    """Compare the rate's numerator with the intervals, of which it is the sum.

    Not of folders written before outcomes were counted where they happened, nor where writing failed.
    """
    lines = measured(series)
    if "carried" not in drive["counts"] or drive.get("output_error") or not lines:
        return []
    done = sum(line.get("done") or 0 for line in lines)
    if done == drive["counts"]["done"]:
        return []
    return [f"counts: {drive['counts']['done']:,} done, but {done:,} in the intervals of series.jsonl"]


def _reconstructed(files: PhaseFiles) -> Json | None:
    """Say what the driver would have written, from its intervals, when it was killed before it could."""
    lines = measured(files.series)
    if not files.series:
        return None
    start_ns = files.series[0]["start_ns"]
    counts = {name: sum(line.get(name) or 0 for line in lines) for name in OUTCOMES}
    log = read_latencies(files.folder.latency_path, [], start_ns)
    return {
        "state": "interrupted",
        "reason": "the process was killed before the driver wrote its account",
        "clients": max((line.get("connected") or 0 for line in files.series), default=0),
        "start_ns": start_ns,
        "measure_ns": lines[0]["start_ns"] if lines else files.series[-1]["end_ns"],
        "end_ns": files.series[-1]["end_ns"],
        "counts": {"scheduled": sum(counts.values()), "carried": 0, **counts},
        "warmup_counts": None,
        "pace": {"kind": "fixed"} if "service" in log.totals else {"kind": "closed"},
        "response": _total(log, "response").stats(),
        "service": _total(log, "service").stats(),
        "retries": sum(line.get("retries") or 0 for line in lines),
        "bytes_sent": sum(line.get("bytes_sent") or 0 for line in lines),
        "bytes_received": sum(line.get("bytes_received") or 0 for line in lines),
        "statements": [
            {"script": int(s), "index": int(i), "text": None, "service": histogram.stats()}
            for (s, i), histogram in _statement_tags(log)
        ],
    }


def _statement_tags(log: LatencyLog) -> list[tuple[tuple[str, str], Histogram]]:
    tags = []
    for tag, histogram in sorted(log.totals.items()):
        script, _, index = tag.removeprefix("statement-").partition(".")
        if script.isdigit() and index.isdigit():
            tags.append(((script, index), histogram))
    return tags


def _per_unit(wal: int | None, kinds: Mapping[str, Any], drive: Json | None, rows: int | None) -> Json | None:
    if drive is None:
        return None
    done = drive["counts"]["done"] + drive["warmup_counts"]["done"]
    if not done:
        return None
    return {
        "wal_bytes_per_transaction": None if wal is None else wal / done,
        "wal_bytes_per_row": wal / rows if rows and wal is not None else None,
        "table_bytes_per_row": kinds["table"]["growth"] / rows if rows else None,
        "index_bytes_per_row": kinds["index"]["growth"] / rows if rows else None,
    }


def _kind_bytes(sizes: Json, kind: str) -> int:
    return sum(r.get("bytes") or 0 for r in sizes.get("relations") or [] if r.get("kind") == kind)


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def _seconds_since(origin_ns: int, at_ns: int | None) -> float | None:
    return None if at_ns is None else (at_ns - origin_ns) / NS_PER_S


def _total(log: LatencyLog, tag: str) -> Histogram:
    return log.totals.get(tag) or Histogram()
