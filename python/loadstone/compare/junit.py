"""A comparison as JUnit's XML, which every CI server shows: one test a phase."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from loadstone.compare import texts

if TYPE_CHECKING:
    from loadstone.compare.documents import Comparison, Document, Row


def junit(document: Document) -> str:
    """Return the XML: a regression is a failure, what is not decided is skipped."""
    root = ET.Element("testsuites", name="loadstone compare")
    for comparison in document.comparisons:
        root.append(_suite(comparison))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(comparison: Comparison) -> ET.Element:
    cases = [_case(row) for row in comparison.rows if row.primary]
    return_of = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "skipped")}
    suite = ET.Element(
        "testsuite",
        name=f"{comparison.b.label} against {comparison.a.label}",
        tests=str(len(cases)),
        failures=str(return_of["failure"]),
        skipped=str(return_of["skipped"]),
        errors="0",
    )
    suite.extend(cases)
    return suite


def _case(row: Row) -> ET.Element:
    case = ET.Element("testcase", classname=str(row.scenario), name=f"{texts.phase_name(row)}: {row.metric}")
    words = f"{texts.verdict(row)}: B/A {texts.ratio(row.ratio)} ({texts.interval(row.low, row.high)})"
    message = " ".join(part for part in (words, texts.remark(row)) if part)
    if row.verdict == "worse" and row.accepted is None:
        ET.SubElement(case, "failure", message=message, type="regression")
    elif row.verdict not in ("same", "small", "better", "worse"):
        ET.SubElement(case, "skipped", message=message)
    ET.SubElement(case, "system-out").text = message
    return case
