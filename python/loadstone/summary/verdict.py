"""Four questions that decide whether the figures may be used, answered in a word and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.summary import Verdict
from loadstone.summary.damage import damage_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadstone.results.documents.summary import Summary, Warning

CLIENT_KINDS = {
    "ClientWorkedWhileAsking",
    "ClientWasTheLimit",
    "ClientMayHaveBeenLate",
    "ClientPaused",
    "NearCeiling",
    "RowsWereTheLimit",
    "ClientUsedMore",
}


def verdict(summary: Summary) -> list[Verdict]:
    """Entries of {question, level: good|warning|bad|unknown, answer, detail}, always the same four."""
    damaged = damage_in(summary)
    if not damaged:
        return [_complete(summary), _checked(summary), _client(summary), _durable(summary)]
    more = f" {len(damaged) - 1} more are listed below." if len(damaged) > 1 else ""
    whole = _entry(_complete(summary).question, "bad", "Damaged", f"{damaged[0]}{more}")
    return [whole, *(_unsure(judge(summary)) for judge in (_checked, _client, _durable))]


def _unsure(entry: Verdict) -> Verdict:
    """Return an answer as far as a damaged folder gives one: nothing is good there."""
    if entry.level != "good":
        return entry
    detail = f"the folder is damaged; what is still there says: {entry.answer.lower()}, {entry.detail}"
    return msgspec.structs.replace(entry, level="unknown", answer="Not known", detail=detail)


def _entry(question: str, level: str, answer: str, detail: str) -> Verdict:
    return Verdict(question=question, level=level, answer=answer, detail=detail)


def _complete(summary: Summary) -> Verdict:
    state, skipped = summary.run.state or "killed", len(summary.skipped)
    question = "Did the run finish?"
    lost = [warning.message for warning in summary.warnings if warning.kind == "ServiceLost"]
    if state == "complete" and lost:
        return _entry(question, "bad", "Failed", lost[0])
    outages = [warning.message for warning in summary.warnings if warning.kind == "Outage"]
    if state == "complete" and outages:
        return _entry(question, "warning", "With outages", outages[0])
    if state == "complete":
        detail = (
            f"{skipped} phase{'s' if skipped > 1 else ''} skipped, with reasons below"
            if skipped
            else "every planned phase ran"
        )
        return _entry(question, "good", "Complete", detail)
    words = {"running": "Still running", "failed": "Failed"}
    level = "bad" if state == "failed" else "warning"
    return _entry(question, level, words.get(state, "Incomplete"), str(summary.run.reason or _how(state)))


def _how(state: str) -> str:
    return {"killed": "the process was killed", "interrupted": "it was interrupted"}.get(
        state, "it has not finished"
    )


def _checked(summary: Summary) -> Verdict:
    question = "Are the answers right?"
    checks = [check for phase in summary.phases for check in phase.checks]
    broken = [w for w in summary.warnings if w.kind == "CountsDoNotAddUp"]
    failed = sum(1 for check in checks if check.passed is False)
    wrong = _wrong(summary)
    if failed or broken or wrong:
        what = f"{failed} of {len(checks)} checks failed" if failed else "counts do not add up"
        if wrong:
            what = f"{wrong} answer{'s' if wrong > 1 else ''} to queries differ from the first target's"
        return _entry(question, "bad", "Wrong", what)
    if not checks:
        return _entry(question, "unknown", "Not checked", "no phase had a check")
    return _entry(question, "good", "Checked", f"{len(checks)} check{'s' if len(checks) > 1 else ''} passed")


def _wrong(summary: Summary) -> int:
    """Return how many queries gave another answer than the first target that has one."""
    return sum(
        1
        for entry in summary.plain_queries
        for target in entry.targets
        for question in target.queries
        if question.wrong
    )


def _client(summary: Summary) -> Verdict:
    question = "Was the client the limit?"
    found = [warning for warning in summary.warnings if warning.kind in CLIENT_KINDS]
    if any(warning.kind == "ClientWasTheLimit" for warning in found):
        return _entry(question, "bad", "Yes", _phases(found))
    if found:
        return _entry(question, "warning", "Perhaps", _phases(found))
    known = [p.drive.client_cpu for p in summary.phases if p.drive and p.drive.client_cpu]
    busiest = max((cpu.utilisation or 0 for cpu in known), default=None)
    shares = [t.client_share for e in summary.plain_queries for t in e.targets if t.client_share is not None]
    if busiest is None and shares:
        return _entry(
            question,
            "good",
            "No",
            f"it used at most {100 * max(shares):.0f} % of the CPU time while queries ran",
        )
    if busiest is None:
        return _entry(question, "unknown", "Unknown", "the client's CPU was not recorded")
    return _entry(question, "good", "No", f"its threads were busy at most {100 * busiest:.0f} %")


def _phases(warnings: Sequence[Warning]) -> str:
    count = len({(warning.target, warning.phase) for warning in warnings})
    return f"in {count} phase{'s' if count > 1 else ''}; see warnings"


def _durable(summary: Summary) -> Verdict:
    question = "Would the data survive a crash?"
    settings = [(t.id, s) for t in summary.targets for s in t.durability or []]
    off: dict[str, list[str]] = {}
    for target, setting in settings:
        if setting.durable is False:
            off.setdefault(f"{setting.setting} = {setting.value}", []).append(target)
    if off:
        named = sorted(one + _only_on(on, len(summary.targets)) for one, on in off.items())
        return _entry(question, "warning", "Not durable", ", ".join(named))
    if not settings:
        return _entry(question, "unknown", "Unknown", "durability settings were not recorded")
    count = len({str(s.setting) for _, s in settings})
    return _entry(question, "good", "Durable", f"all {count} relevant settings are safe")


def _only_on(targets: Sequence[str], all_targets: int) -> str:
    return "" if len(targets) == all_targets else f" on {', '.join(targets)}"
