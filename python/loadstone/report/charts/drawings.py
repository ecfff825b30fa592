"""Charts drawn in a process of their own: a report is written whatever becomes of the chart library."""

from __future__ import annotations

import atexit
import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import LoadstoneError
from loadstone.report.charts import Chart, chart_process
from loadstone.report.charts.library import library as kept_library

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BEGINNING_S = 120.0
EACH_S = 5.0
"""How long the drawing of a page may take: to begin with, and for each chart."""


@dataclass(frozen=True, slots=True)
class Drawings:
    """What the chart library has made for one page."""

    library: str = ""
    """Vega, Vega-Lite and Vega-Embed as one script: it draws the charts again in the browser."""
    pictures: Mapping[str, str] = field(default_factory=dict)
    """SVG by the chart's id: of all charts, or of none."""
    failure: str | None = None
    """Why there are none."""


class DrawingError(LoadstoneError):
    """The chart library has failed."""


def draw(charts: Sequence[Chart]) -> Drawings:
    """Draw all charts of a page; where that fails, say why: a page without pictures has all the figures."""
    library = ""
    try:
        with _process().limited_to(BEGINNING_S + EACH_S * len(charts)) as process:
            library = bundle()
            return Drawings(library, {chart.id: chart.svg(process.request) for chart in charts})
    except DrawingError as error:
        return Drawings(library, failure=error.message)


@cache
def bundle() -> str:
    """Return the chart library for the browser, fit to stand in a page."""
    script = kept_library(lambda: _process().request("bundle", None))
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def charts_in(content: Any) -> Iterator[Chart]:
    """Yield every chart in a page's content."""
    if isinstance(content, Chart):
        yield content
    elif isinstance(content, dict):
        yield from charts_in(list(content.values()))
    elif is_dataclass(content):
        yield from charts_in([getattr(content, part.name) for part in fields(content)])
    elif isinstance(content, (list, tuple)):
        for item in content:
            yield from charts_in(item)


class _ChartProcess:
    """The process that draws, begun at the first request and kept: it takes a second to begin."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._late = False
        atexit.register(self._end)

    @contextmanager
    def limited_to(self, seconds: float) -> Iterator[_ChartProcess]:
        """End the process when what is asked of it takes longer than this."""
        timer = threading.Timer(seconds, self._too_late)
        timer.daemon = True
        timer.start()
        try:
            yield self
        except BaseException:
            self._end()  # it may be in the middle of an answer
            raise
        finally:
            timer.cancel()

    def request(self, kind: str, what: object) -> str:
        """Return the answer to one request. Raises DrawingError."""
        process = self._begun()
        assert process.stdin is not None and process.stdout is not None  # noqa: PT018, S101 - they are pipes
        try:
            process.stdin.write(json.dumps({kind: what}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""  # it is dead
        if not line.endswith("\n"):
            raise DrawingError(self._ending(process))
        answer = json.loads(line)
        if "failed" in answer:
            failure = answer["failed"]  # no document: an answer of the chart process
            raise DrawingError(f"the chart library failed: {failure}")
        return str(answer["done"])  # no document: an answer of the chart process

    def _begun(self) -> subprocess.Popen[str]:
        if self._process is None:
            try:
                # In a session of its own: Ctrl-C and a terminal that goes away are ours to answer.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(Path(chart_process.__file__))],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    encoding="utf-8",
                    start_new_session=True,
                )
            except OSError as error:
                raise DrawingError(f"the chart library could not be started: {error.strerror}") from error
            self._late = False
        return self._process

    def _too_late(self) -> None:
        self._late = True
        if self._process is not None:
            self._process.kill()

    def _ending(self, process: subprocess.Popen[str]) -> str:
        process.kill()
        code = process.wait()
        if self._late:
            return "the chart library took too long"
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        return f"the chart library ended with {how}"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


@cache
def _process() -> _ChartProcess:
    return _ChartProcess()
