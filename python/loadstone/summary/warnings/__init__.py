"""What a reader must know before believing a figure: warnings by their subjects, each with what to do."""

from loadstone.summary.warnings.loads import judge_disks
from loadstone.summary.warnings.phases import ceiling, judge_phase
from loadstone.summary.warnings.queries import judge_imports, judge_plain_queries, judge_widths
from loadstone.summary.warnings.runs import judge_run, judge_target

__all__ = [
    "ceiling",
    "judge_disks",
    "judge_imports",
    "judge_phase",
    "judge_plain_queries",
    "judge_run",
    "judge_target",
    "judge_widths",
]
