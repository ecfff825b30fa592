"""Phases swept over several numbers: a cell for each combination, and the scalability law over clients."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from loadstone.results.documents.summary import Cell, CellRate, Grid, ScalingFigures, ScalingPoint
from loadstone.summary.scaling.law import CONFIDENCE, METHOD, fit_usl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.results.documents.summary import Group, PhaseFigures, Value

OVER = "clients"
"""The parameter over which throughput is fitted."""
FEWEST_CLIENTS = 3
"""Values of `clients` from which a phase that is swept over nothing else is shown as a grid."""
_P95, _P99 = 95, 99


def summarise_grids(groups: Sequence[Group], phases: Sequence[PhaseFigures]) -> list[Grid]:
    """Return a grid for each driven phase and target that was swept over numbers."""
    return [grid for members in _swept(groups, phases) if (grid := _grid(members)) is not None]


def summarise_scaling(grids: Sequence[Grid]) -> list[ScalingFigures]:
    """Return the law fitted over the clients, for each combination of a grid's other parameters."""
    return [entry for grid in grids if OVER in grid.parameters for entry in _fits(grid)]


def _swept(
    groups: Sequence[Group], phases: Sequence[PhaseFigures]
) -> Iterator[list[tuple[PhaseFigures, Group | None]]]:
    """Yield the variants of each phase and target: its first phase, and its group where it was driven."""
    by_variant = {_identity(group): group for group in groups}
    members: dict[tuple[str | None, str | None, str], dict[str, tuple[PhaseFigures, Group | None]]] = {}
    for phase in phases:
        if phase.kind == "script" and phase.variant:
            identity = _identity(phase)
            same = members.setdefault((phase.scenario, phase.id, phase.target), {})
            same.setdefault(identity, (phase, by_variant.get(identity)))
    for variants in members.values():
        yield list(variants.values())


def _identity(entry: PhaseFigures | Group) -> str:
    return json.dumps([entry.scenario, entry.id, entry.variant, entry.target], sort_keys=True)


def _grid(members: Sequence[tuple[PhaseFigures, Group | None]]) -> Grid | None:
    first = members[0][0]
    variants = [phase.variant for phase, _ in members]
    swept = [name for name in first.variant if len({str(v.get(name)) for v in variants}) > 1]
    numeric = [name for name in swept if all(_number(v.get(name)) is not None for v in variants)]
    clients = {str(v.get(OVER)) for v in variants} if OVER in numeric else set()
    if len(numeric) < 2 and len(clients) < FEWEST_CLIENTS:  # noqa: PLR2004 - a grid has two sides
        return None
    return Grid(
        scenario=first.scenario,
        id=first.id,
        title=first.title,
        target=first.target,
        parameters=swept,
        cells=[_cell(phase, group, swept) for phase, group in members],
    )


def _cell(phase: PhaseFigures, group: Group | None, swept: Sequence[str]) -> Cell:
    variant = {name: _plain(phase.variant.get(name)) for name in swept}
    rate = group and group.tps
    if group is None or rate is None:
        reason = phase.reason or f"the phase is {phase.state}: it measured nothing"
        return Cell(
            variant=variant, tps=None, mean_ns=None, p95_ns=None, p99_ns=None, failed=None, reason=reason
        )
    percentiles = {entry.percentile: entry.value_ns for entry in group.percentiles}
    return Cell(
        variant=variant,
        tps=CellRate(value=rate.value, low=rate.low, high=rate.high),
        mean_ns=group.latency.mean_ns,
        p95_ns=percentiles.get(_P95),
        p99_ns=percentiles.get(_P99),
        failed=group.failed,
        reason=None,
    )


def _fits(grid: Grid) -> Iterator[ScalingFigures]:
    cells: dict[str, list[Cell]] = {}
    for cell in grid.cells:
        fixed = {name: value for name, value in cell.variant.items() if name != OVER}
        cells.setdefault(json.dumps(fixed, sort_keys=True), []).append(cell)
    for same in cells.values():
        yield _fit(grid, same)


def _fit(grid: Grid, cells: Sequence[Cell]) -> ScalingFigures:
    fixed = {name: value for name, value in cells[0].variant.items() if name != OVER}
    found = [(_number(cell.variant[OVER]), cell.tps and cell.tps.value) for cell in cells]
    points = sorted((n, tps) for n, tps in found if n is not None and n >= 1 and tps)
    fitted = fit_usl([n for n, _ in points], [tps for _, tps in points])
    return ScalingFigures(
        scenario=grid.scenario,
        id=grid.id,
        title=grid.title,
        target=grid.target,
        over=OVER,
        fixed=fixed,
        points=[ScalingPoint(n=n, tps=tps) for n, tps in points],
        fit=fitted.fitted(),
        reason=fitted.reason,
        sentence=fitted.sentence,
        curve=fitted.curve_points(),
        method=METHOD,
        confidence=CONFIDENCE,
    )


def _plain(value: Value) -> Value:
    """Return numbers that were written as text as numbers."""
    number = _number(value)
    return value if number is None else number


def _number(value: Value) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    try:
        number = float(value or "")
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else number
