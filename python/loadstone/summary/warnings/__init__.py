"""What a reader must know before believing a figure: warnings by their subjects, each with what to do."""

from loadstone.summary.warnings.loads import disk_warnings
from loadstone.summary.warnings.phases import ceiling, phase_warnings
from loadstone.summary.warnings.queries import import_warnings, plain_query_warnings, width_warnings
from loadstone.summary.warnings.runs import run_warnings, target_warnings

__all__ = [
    "ceiling",
    "disk_warnings",
    "import_warnings",
    "phase_warnings",
    "plain_query_warnings",
    "run_warnings",
    "target_warnings",
    "width_warnings",
]
