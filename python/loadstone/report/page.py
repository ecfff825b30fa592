"""report.html written from summary.json, and what other pages in its style are made of."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loadstone.report import formats
from loadstone.report.charts import config
from loadstone.report.charts.drawings import Drawings, charts_in, draw
from loadstone.report.terminal import headline_json, summary_table
from loadstone.report.view import view
from loadstone.report.visible_summary import visible_summary
from loadstone.results.document_reader import read_json
from loadstone.results.documents.summary import Summary
from loadstone.results.json_files import write_atomic
from loadstone.summary.document import FORMAT, write_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from loadstone.report.charts import Chart
    from loadstone.report.view import Content

FOLDER = Path(__file__).parent
FILTERS = (
    "rate", "milliseconds", "microseconds", "size", "count", "percent", "times", "versus", "change",
    "duration",
)  # fmt: skip
MORE_FILTERS = (
    "moment",
    "interval",
    "digits",
    "variant",
    "rows",
    "thousandths",
    "stated",
    "decimal_size",
    "about_rate",
    "known",
    "word",
)

__all__ = ["assets", "environment", "headline_json", "render", "summary_table", "write_report"]


def write_report(folder: Path, say: Callable[[str], None] = lambda _: None) -> Path:
    """Write report.html of a run folder and return its path; summary.json comes first where it is missing.

    `say` is told of charts that could not be drawn: the page is written without them. Raises LoadstoneError
    when the folder is no run folder, RunFailedError when the disk refuses.
    """
    path = folder / "report.html"
    content = view(visible_summary(_summary(folder)))
    drawings = draw(list(charts_in(content)))
    if drawings.failure:
        say(f"The report has no charts: {drawings.failure}. `loadstone report {folder}` draws them again.")
    write_atomic(path, _page(content, drawings))
    return path


def render(summary: Summary) -> str:
    """Return the page for a summary."""
    content = view(visible_summary(summary))
    return _page(content, draw(list(charts_in(content))))


def _page(content: Content, drawings: Drawings) -> str:
    """Fill in the page. Everything from outside is escaped by the template engine."""
    page = environment(drawings).get_template("template.html.j2")
    return page.render(
        **{part.name: getattr(content, part.name) for part in fields(content)},
        **assets(drawings),
        version=content.run.loadstone,
        twice=formats.TWICE,
    )


def assets(drawings: Drawings) -> dict[str, Any]:
    """Return what every page holds: its style and scripts, and why there are no charts."""
    return {
        # These three are files of ours or a library's; nothing in them comes from a run.
        "style": Markup((FOLDER / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - see above
        "script": Markup((FOLDER / "script.js").read_text(encoding="utf-8")),  # noqa: S704 - see above
        "library": Markup(drawings.library),  # noqa: S704 - see above
        "chart_config": config(),
        "charts_failure": drawings.failure,
    }


def _summary(folder: Path) -> Summary:
    """Return summary.json as it is on disk, so that a page made later has the same bytes.

    One that is missing, of another format, or that was changed into none, is computed first.
    """
    path = folder / "summary.json"
    found = _as_summary(read_json(path)) if path.exists() else None
    if found and found.format == FORMAT:
        return found
    write_summary(folder)
    return msgspec.convert(read_json(path), Summary)


def _as_summary(document: dict[str, Any]) -> Summary | None:
    try:
        return msgspec.convert(document, Summary)
    except msgspec.ValidationError:
        return None


def environment(drawings: Drawings, *folders: Path) -> Environment:
    """Return the template engine for pages in the report's style; `folders` hold further templates."""
    made = Environment(
        loader=FileSystemLoader([FOLDER, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {name: getattr(formats, name) for name in (*FILTERS, *MORE_FILTERS)}

    def drawing(chart: Chart) -> Markup:
        """Return a chart's picture; the library escapes the text that it puts into the SVG."""
        return Markup(drawings.pictures.get(chart.id, ""))  # noqa: S704 - see above

    made.filters |= {"drawing": drawing}
    return made
