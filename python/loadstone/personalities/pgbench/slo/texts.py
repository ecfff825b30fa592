"""What `--slo` prints below pgbench's own first lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadstone.report.formats import NONE
from loadstone.slo import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.slo.documents import Slo

_GAP = "  "


def answer_block(document: Slo, seed: int) -> Iterator[str]:
    """Yield the bounds, a line each for programs that read them, then the answer and the curve."""
    yield f"highest rate that keeps {', '.join(document.limits)}, measured by loadstone:"
    yield f"limits kept at = {_tps(document.lower)}"
    yield f"limits not kept at = {_tps(document.upper)}"
    yield f"limit that binds = {document.binds or NONE}"
    yield f"closed loop = {_tps(document.capacity)}"
    whole = sum(trial.kind == "whole" for trial in document.trials)
    yield f"number of trials: {len(document.trials)}, of which {whole} decide"
    yield f" - {texts.answer(document)}"
    yield from (f" - {note}" for note in texts.notes(document))
    yield f" - random seed: {seed}"
    rows = texts.curve(document)
    if rows:
        yield ""
        yield from _table([list(texts.HEADS), *rows])


def _tps(value: float | None) -> str:
    return f"{value:.6f} tps" if value is not None else NONE


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield lines with columns to the right; columns without any figure are left out."""
    columns = [column for column in zip(*rows, strict=True) if set(column[1:]) != {NONE}]
    widths = [max(map(len, column)) for column in columns]
    for cells in zip(*columns, strict=True):
        yield _GAP.join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
