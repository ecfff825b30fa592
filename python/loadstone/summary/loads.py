"""A load in figures: what was loaded, what it cost on each side, what it came to on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.summary import Built, LoadFigures, TableRows
from loadstone.summary.intervals import NS_PER_S

if TYPE_CHECKING:
    from loadstone.results.documents import Drive
    from loadstone.results.documents.drive import Loaded
    from loadstone.results.documents.summary import SizeFigures, StepsFigures, Usage


def summarise_load(
    drive: Drive | None, sizes: SizeFigures | None, steps: StepsFigures | None
) -> LoadFigures | None:
    """Return what the report says of a load beyond its rate; None for a phase that loaded nothing.

    `drive` is drive.json, `sizes` and `steps` are those of its phase. `starved` is the share of the workers'
    time in which they waited for rows: near 1, the making of the rows was the limit and not the server.
    """
    load = drive and drive.load
    if drive is None or not load:
        return None
    seconds = max(0, drive.end_ns - drive.measure_ns) / NS_PER_S
    waited_s = ((load.source and load.source.wait_ns) or 0) / NS_PER_S
    per_unit = sizes and sizes.per_unit
    return LoadFigures(
        rows=load.rows,
        metrics=load.metrics,
        batches=load.batches,
        tags_rows=load.tags_rows,
        seconds=seconds,
        method=drive.mode,
        workers=drive.clients,
        tables=[TableRows(name=table.name, rows=table.rows) for table in load.tables or []],
        starved=waited_s / (seconds * drive.clients) if seconds and drive.clients else None,
        wal_bytes_per_row=per_unit and per_unit.wal_bytes_per_row,
        table_bytes_per_row=per_unit and per_unit.table_bytes_per_row,
        index_bytes_per_row=per_unit and per_unit.index_bytes_per_row,
        compression=load.compression,
        # There is no wire to an engine in our own process.
        logical_row_bytes=load.logical_bytes / load.rows if load.rows and load.logical_bytes else None,
        finish_s=_finishing(load),
        text_row_bytes=(load.table and load.table.text_row_bytes),
        bytes_per_row_on_the_wire=drive.bytes_sent / load.rows
        if load.rows and drive.bytes_sent is not None
        else None,
        built=_built(load, steps, seconds),
        cpu_server=None,
        cpu_client=None,
        client_share=None,
    )


def _built(load: Loaded, steps: StepsFigures | None, seconds: float) -> Built | None:
    """Return what indexes made after the rows took, and rows and indexes together; None without such.

    Only together do they compare with a load into a table that had its indexes.
    """
    made = [entry for entry in load.indexes or [] if entry.when == "after"]
    if not made or (load.resumed and load.resumed.rows):
        return None
    points = [point for point in (steps and steps.points) or [] if point.state == "complete"]
    rows_s = sum(point.seconds or 0 for point in points) if points else seconds
    indexes_s = sum(entry.seconds for entry in made)
    whole_s = rows_s + indexes_s + _finishing(load)
    return Built(
        indexes=len(made),
        rows_s=rows_s,
        indexes_s=indexes_s,
        whole_s=whole_s,
        rows_per_s=load.rows / whole_s if whole_s else None,
    )


def _finishing(load: Loaded) -> float:
    """Return the seconds of the statements by which an engine itself ends a load."""
    return float(sum(entry.seconds for entry in load.after or [] if entry.part_of_load))


def with_cpu(load: LoadFigures, usage: Usage | None) -> LoadFigures:
    """Add the shares of the machine that server and client used, and the client's share of the two."""
    server, client = (usage.cpu_server, usage.cpu_client) if usage else (None, None)
    both = None if server is None or client is None else server + client
    share = client / both if both and client is not None else None
    return msgspec.structs.replace(load, cpu_server=server, cpu_client=client, client_share=share)
