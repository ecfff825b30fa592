"""report.html: one self-contained page computed from summary.json, and the same figures for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from loadstone.jsonfile import read_json, write_atomic
from loadstone.report import formats
from loadstone.report.charts import bundle, config
from loadstone.report.terminal import headline_json, summary_table
from loadstone.report.view import view
from loadstone.summary import FORMAT, write_summary

if TYPE_CHECKING:
    from loadstone.report.charts import Chart

FOLDER = Path(__file__).parent
FILTERS = (
    "rate", "milliseconds", "microseconds", "size", "count", "percent", "times", "versus", "change",
    "duration",
)  # fmt: skip
MORE_FILTERS = ("moment", "interval", "digits", "variant", "rows", "thousandths", "stated", "decimal_size")

__all__ = ["headline_json", "render", "summary_table", "write_report"]


def write_report(folder: Path) -> Path:
    """Write report.html of a run folder and return its path; summary.json comes first where it is missing.

    Raises LoadstoneError when the folder is no run folder, RunFailedError when the disk refuses.
    """
    path = folder / "report.html"
    write_atomic(path, render(_summary(folder)))
    return path


def render(summary: dict[str, Any]) -> str:
    """Return the page for a summary. Everything from outside is escaped by the template engine."""
    page = _environment().get_template("template.html.j2")
    return page.render(
        **view(summary),
        # These four are files of ours or a library's; nothing in them comes from a run.
        style=Markup((FOLDER / "style.css").read_text(encoding="utf-8")),  # noqa: S704 - see above
        script=Markup((FOLDER / "script.js").read_text(encoding="utf-8")),  # noqa: S704 - see above
        library=Markup(bundle()),  # noqa: S704 - see above
        chart_config=config(),
        twice=formats.TWICE,
    )


def _summary(folder: Path) -> dict[str, Any]:
    """Return summary.json as it stands on disk, so that a page made later has the same bytes."""
    path = folder / "summary.json"
    if not path.exists() or read_json(path).get("format") != FORMAT:
        write_summary(folder)
    return read_json(path)


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(formats, name) for name in (*FILTERS, *MORE_FILTERS)}
    environment.filters["drawing"] = _drawing
    return environment


def _drawing(chart: Chart) -> Markup:
    """Draw a chart; the library escapes the text that it puts into the SVG."""
    return Markup(chart.svg())  # noqa: S704 - see above
