"""A load in figures: what was loaded, what it cost on each side, what it came to on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.summary.series import NS_PER_S

if TYPE_CHECKING:
    from loadstone.summary.reading import Json


def summarise_load(drive: Json | None, phase: Json) -> Json | None:
    """Return what the report says of a load beyond its rate; None for a phase that loaded nothing.

    `drive` is drive.json, `phase` the summary of the phase so far. `starved` is the share of the workers'
    time in which they waited for rows: near 1, the making of the rows was the limit and not the server.
    """
    load = (drive or {}).get("load")
    if drive is None or not load:
        return None
    seconds = max(0, drive["end_ns"] - drive["measure_ns"]) / NS_PER_S
    waited_s = ((load.get("source") or {}).get("wait_ns") or 0) / NS_PER_S
    per_unit = (phase["sizes"] or {}).get("per_unit") or {}
    return {
        "rows": load["rows"],
        "metrics": load["metrics"],
        "batches": load.get("batches"),
        "tags_rows": load.get("tags_rows"),
        "seconds": seconds,
        "method": drive.get("mode"),
        "workers": drive.get("clients"),
        "tables": [{"name": table["name"], "rows": table["rows"]} for table in load.get("tables") or []],
        "starved": waited_s / (seconds * drive["clients"]) if seconds and drive.get("clients") else None,
        "wal_bytes_per_row": per_unit.get("wal_bytes_per_row"),
        "table_bytes_per_row": per_unit.get("table_bytes_per_row"),
        "index_bytes_per_row": per_unit.get("index_bytes_per_row"),
        "compression": load.get("compression"),
        # There is no wire to an engine in our own process.
        "logical_row_bytes": load["logical_bytes"] / load["rows"]
        if load["rows"] and load.get("logical_bytes")
        else None,
        "finish_s": _finishing(load),
        "text_row_bytes": (load.get("table") or {}).get("text_row_bytes"),
        "bytes_per_row_on_the_wire": drive["bytes_sent"] / load["rows"]
        if load["rows"] and drive["bytes_sent"] is not None
        else None,
        "built": _built(load, phase["steps"], seconds),
    }


def _built(load: Json, steps: Json | None, seconds: float) -> Json | None:
    """Return what indexes made after the rows took, and rows and indexes together; None without such.

    Only together do they compare with a load into a table that had its indexes.
    """
    made = [entry for entry in load.get("indexes") or [] if entry.get("when") == "after"]
    if not made or (load.get("resumed") or {}).get("rows"):
        return None
    points = [point for point in (steps or {}).get("points") or [] if point["state"] == "complete"]
    rows_s = sum(point["seconds"] or 0 for point in points) if points else seconds
    indexes_s = sum(entry["seconds"] for entry in made)
    whole_s = rows_s + indexes_s + _finishing(load)
    return {
        "indexes": len(made),
        "rows_s": rows_s,
        "indexes_s": indexes_s,
        "whole_s": whole_s,
        "rows_per_s": load["rows"] / whole_s if whole_s else None,
    }


def _finishing(load: Json) -> float:
    """Return the seconds of the statements by which an engine itself ends a load."""
    return float(sum(entry["seconds"] for entry in load.get("after") or [] if entry.get("part_of_load")))


def with_cpu(load: Json, usage: Json | None) -> Json:
    """Add the shares of the machine that server and client used, and the client's share of the two."""
    server, client = ((usage or {}).get(name) for name in ("cpu_server", "cpu_client"))
    both = None if server is None or client is None else server + client
    return load | {
        "cpu_server": server,
        "cpu_client": client,
        "client_share": client / both if both and client is not None else None,
    }
