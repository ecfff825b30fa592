"""One run folder, opened for a program: typed documents, and tables for notebooks and databases."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents import Environment, Run
from loadstone.results.folder import RunFolder
from loadstone.summary.stored import read_summary
from loadstone.tables.intervals import interval_table, latency_table
from loadstone.tables.phases import phase_table, query_table, resource_table, step_table

if TYPE_CHECKING:
    import os

    import pyarrow as pa

    from loadstone.results.documents import Plan
    from loadstone.results.documents.summary import Summary

TABLES = ("phases", "intervals", "latencies", "queries", "resources", "steps")


def open_run(folder: str | os.PathLike[str]) -> RunResults:
    """Open the folder of a run, also of one that was killed.

    Nothing is written. Raises loadstone.errors.LoadstoneError when the folder is none, is damaged, was
    written by a newer version, or when its run is still under way.
    """
    return RunResults(Path(folder))


class RunResults:
    """The results of a run. Documents are msgspec Structs, described in docs/run-folder.md."""

    def __init__(self, folder: Path) -> None:
        """Read run.json and the summary; anything else is read when it is asked for."""
        self.folder = folder
        self.summary: Summary = read_summary(folder)
        """summary.json: everything that the report says."""
        self._files = RunFolder.open(folder)

    def __repr__(self) -> str:
        return f"<run {self.summary.run.id} in {self.folder}: {self.summary.run.state}>"

    @property
    def run(self) -> Run:
        """run.json."""
        return msgspec.convert(self._files.run, Run)

    @cached_property
    def plan(self) -> Plan:
        """plan.json; empty when the run ended before it was written."""
        return self._files.read_plan()

    @cached_property
    def environment(self) -> Environment:
        """environment.json; empty when the run ended before it was written."""
        return msgspec.convert(self._files.read_json("environment.json") or {}, Environment)

    @cached_property
    def phases(self) -> pa.Table:
        """One row for each phase on each target: rates, latencies, costs, sizes."""
        return phase_table(self.summary)

    @cached_property
    def intervals(self) -> pa.Table:
        """One row for each second of each driven phase: what ended in it, and its response time."""
        return interval_table(self._files)

    @cached_property
    def latencies(self) -> pa.Table:
        """Histograms of the measured time: one row for each bucket with a sample in it."""
        return latency_table(self._files)

    @cached_property
    def queries(self) -> pa.Table:
        """One row for each run of each plain query that was sent one by one."""
        return query_table(self.summary)

    @cached_property
    def resources(self) -> pa.Table:
        """What machine and server did over time, at most 600 points a target."""
        return resource_table(self.summary)

    @cached_property
    def steps(self) -> pa.Table:
        """One row for each step of each load in steps."""
        return step_table(self.summary)

    def table(self, name: str) -> pa.Table:
        """Return one of `TABLES` by its name."""
        if name not in TABLES:
            raise KeyError(name)
        return getattr(self, name)
