"""The types of the documents of a run folder that the summary reads (meaning: docs/run-folder.md)."""

from loadstone.results.documents.base import Struct
from loadstone.results.documents.drive import (
    Drive,
    Interval,
    Probed,
    Progress,
    QueriesInTurn,
    QueriesInTurnDrive,
    QueryInTurn,
    QueryInTurnRun,
    Sent,
    Step,
    kind_of_drive,
)
from loadstone.results.documents.hosts import Hosts
from loadstone.results.documents.manifest import ManifestLine
from loadstone.results.documents.phase import Phase
from loadstone.results.documents.run import Calibration, Environment, Event, Plan, Run
from loadstone.results.documents.target import Sample, Target

__all__ = [
    "Calibration",
    "Drive",
    "Environment",
    "Event",
    "Hosts",
    "Interval",
    "ManifestLine",
    "Phase",
    "Plan",
    "Probed",
    "Progress",
    "QueriesInTurn",
    "QueriesInTurnDrive",
    "QueryInTurn",
    "QueryInTurnRun",
    "Run",
    "Sample",
    "Sent",
    "Step",
    "Struct",
    "Target",
    "kind_of_drive",
]
