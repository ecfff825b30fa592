"""A history for Otava, which finds change points: CSV files, and the otava.yaml that names them."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import yaml

from loadstone.history.series import digest_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.history.series import Block, Point, Series

CONFIG = "otava.yaml"
COLUMNS = ("time", "commit", "run")
"""Before the metrics."""
_PLAIN = re.compile(r"[^A-Za-z0-9_=.+-]+")
_LONGEST = 120


def otava(blocks: Sequence[Block]) -> dict[str, str]:
    """Return the texts of all files by their names.

    Otava refuses an empty cell, so metrics that some runs lack are in a file of their own, with the rows of
    those that have them.
    """
    files: dict[str, str] = {}
    tests: dict[str, object] = {}
    for block in blocks:
        for series in block.series:
            for name, points, metrics in _tables(series):
                files[f"{name}.csv"] = _csv(points, metrics)
                tests[name] = _test(f"{name}.csv", series, metrics)
    files[CONFIG] = yaml.safe_dump({"tests": tests}, sort_keys=False, allow_unicode=True)
    return files


def _tables(series: Series) -> Iterator[tuple[str, list[Point], list[str]]]:
    """Yield name, rows and metrics of each file of a series."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for metric in series.metrics():
        having = tuple(id(point) for point, _ in series.having(metric))
        groups.setdefault(having, []).append(metric)
    for having, metrics in groups.items():
        parts = () if len(having) == len(series.points) else (metrics[0],)
        name = _PLAIN.sub("-", name_of(series.newest, parts).replace("/", "."))[:_LONGEST]
        digest = digest_of(series.digest, *parts)
        yield f"{name}.{digest}", [p for p in series.points if id(p) in having], metrics


def _csv(points: Sequence[Point], metrics: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *metrics])
    for point in points:
        found = [point.metric(name) for name in metrics]
        values = [repr(metric.value) for metric in found if metric is not None]
        line = point.line
        writer.writerow([line.at().isoformat(" ", "seconds"), line.commit or "", line.run, *values])
    return text.getvalue()


def _test(file: str, series: Series, metrics: Sequence[str]) -> dict[str, object]:
    newest = {name: series.having(name)[-1][1] for name in metrics}
    return {
        "type": "csv",
        "file": file,
        "time_column": COLUMNS[0],
        "attributes": list(COLUMNS[1:]),
        "metrics": {
            name: {"column": name, "direction": 1 if metric.better == "higher" else -1, "scale": 1}
            for name, metric in newest.items()
        },
        "csv_options": {"delimiter": ",", "quote_char": '"'},
    }
