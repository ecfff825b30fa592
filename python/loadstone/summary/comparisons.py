"""Phases beside each other: repeats, targets, published figures, and the values of a swept parameter."""

from __future__ import annotations

import json
import math
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

import msgspec

from loadstone.results.documents.summary import (
    Compared,
    Group,
    GroupRate,
    MedianLatencies,
    Percentile,
    RateRatio,
    Sweep,
    SweepRow,
)
from loadstone.summary.ratios import paired
from loadstone.summary.statistics import CONFIDENCE, Interval, ratio_interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadstone.results.documents.summary import DriveFigures, PhaseFigures, Rate, StoredFigures, Value

ENOUGH_REPEATS = 3
"""From here on the spread between repeats, not the one inside a repeat, says how sure a figure is."""

P99 = 99
RATES = ("tps", "rows_per_s", "metrics_per_s")
"""Figures that stand first, by the names that scenarios use for them."""

NS_PER_MS = 1e6


def group_repeats(phases: Sequence[PhaseFigures]) -> list[Group]:
    """One entry per driven phase, variant and target: the median over repeats, with each repeat kept."""
    members: dict[str, list[PhaseFigures]] = {}
    for phase in phases:
        if phase.drive:
            members.setdefault(_identity(phase, phase.target), []).append(phase)
    return [_group(group) for group in members.values()]


def compare_targets(
    groups: Sequence[Group], targets: Sequence[str], phases: Sequence[PhaseFigures] = ()
) -> None:
    """Give every group of a later target its ratio to the first target's, with its 95 % interval.

    Targets of one run take their turns in each repeat: where there are enough repeats, they are compared in
    pairs, and what slows down a whole repeat does not count. `phases` are the repeats.
    """
    if len(targets) < 2:  # noqa: PLR2004 - one target has nothing to be compared with
        return
    first = {_identity(group, ""): group for group in groups if group.target == targets[0]}
    for group in groups:
        base = first.get(_identity(group, ""))
        if base is not None and base is not group:
            ours, bases = (_by_repeat(one, phases) for one in (group, base))
            group.ratio_to_first = _paired_ratio(ours, bases) or rate_ratio(
                headline_of(group), headline_of(base)
            )


def _by_repeat(group: Group, phases: Sequence[PhaseFigures]) -> dict[tuple[int, int], float]:
    """Return the headline of each complete repeat, and round of it."""
    wanted = {(group.target, folder) for folder in group.phases}
    rates = {
        (phase.repeat, phase.round or 0): headline_rate(phase.drive, group.headline)
        for phase in phases
        if phase.drive and phase.state == "complete" and (phase.target, phase.folder) in wanted
    }
    return {repeat: rate.value for repeat, rate in rates.items() if rate and rate.value}


def headline_rate(drive: DriveFigures, headline: str) -> Rate | None:
    """Return the rate of one phase that is first, by the name that its scenario uses."""
    return {"rows_per_s": drive.rows_per_s, "metrics_per_s": drive.metrics_per_s}.get(headline) or drive.tps


def _paired_ratio(
    ours: Mapping[tuple[int, int], float], base: Mapping[tuple[int, int], float]
) -> RateRatio | None:
    """Return our rate over the base's by pairs of repeats; None with too few."""
    pairs = sorted({*ours} & {*base})
    if len(pairs) < ENOUGH_REPEATS:
        return None
    found = paired([base[repeat] for repeat in pairs], [ours[repeat] for repeat in pairs])
    low, high = (float(end) for end in found.interval(CONFIDENCE))
    value = math.exp(float(found.centre))
    return RateRatio(value=value, low=low, high=high, differs=not low <= 1 <= high, confidence=CONFIDENCE)


def compare_published(group: Group, source_cores: float | None, cores: int | None) -> list[Compared]:
    """Return the published figures beside ours; rates also per core where both numbers of cores are known."""
    return [_compared(figure, group, source_cores, cores) for figure in group.published]


def _compared(figure: Compared, group: Group, source_cores: float | None, cores: int | None) -> Compared:
    ours, value = _metric(group, figure.metric), figure.value
    row = msgspec.structs.replace(figure, measured=ours)
    row.ratio = ours / value if ours is not None and value else None
    if figure.metric in RATES and row.ratio is not None and source_cores and cores:
        row.ratio_per_core = row.ratio * source_cores / cores
    return row


def sweeps(groups: Sequence[Group], phases: Sequence[PhaseFigures]) -> list[Sweep]:
    """Return a table per swept phase and target: rate against the baseline, bytes of indexes.

    A phase swept over several parameters has one table too, each combination of their values a row.
    """
    members: dict[tuple[str | None, str | None, str], list[Group]] = {}
    for group in groups:
        if group.variant:
            members.setdefault((group.scenario, group.id, group.target), []).append(group)
    return [_sweep(rows, phases) for rows in members.values() if len(rows) > 1]


def _group(group: Sequence[PhaseFigures]) -> Group:
    head = group[0]
    drives = [phase.drive for phase in group if phase.drive]
    done = [drive.response for drive in drives]
    return Group(
        scenario=head.scenario,
        id=head.id,
        kind=head.kind,
        title=head.title,
        why=head.why,
        variant=head.variant,
        target=head.target,
        headline=head.headline,
        rows_per_transaction=head.rows_per_transaction,
        published=[
            Compared(**msgspec.structs.asdict(figure), measured=None, ratio=None) for figure in head.published
        ],
        phases=[phase.folder for phase in group],
        repeats=len(group),
        incomplete=any(phase.state != "complete" for phase in group)
        or any(drive.reconstructed for drive in drives),
        clients=drives[0].clients,
        tps=_over_repeats([drive.tps for drive in drives]),
        rows_per_s=_over_repeats([drive.rows_per_s for drive in drives]),
        metrics_per_s=_over_repeats([drive.metrics_per_s for drive in drives]),
        tps_including_connections=_median([drive.tps_including_connections for drive in drives]),
        latency=MedianLatencies(
            mean_ns=_median([latency.mean_ns for latency in done]),
            stddev_ns=_median([latency.stddev_ns for latency in done]),
            max_ns=_median([latency.max_ns for latency in done]),
            min_ns=_median([latency.min_ns for latency in done]),
        ),
        percentiles=_percentiles(drives),
        failed=sum(drive.counts.failed for drive in drives),
        done=sum(drive.counts.done for drive in drives),
        ratio_to_first=None,
    )


def _over_repeats(rates: Sequence[Rate | None]) -> GroupRate | None:
    """Return the rate of one run as it is; of several the median with min..max."""
    known = [rate for rate in rates if rate is not None and rate.value is not None]
    values = [rate.value for rate in known if rate.value is not None]
    if not known:
        return None
    if len(known) == 1:
        spread = "95 % interval" if known[0].low is not None else None
        return GroupRate(**msgspec.structs.asdict(known[0]), spread=spread)
    combined = GroupRate(
        value=median(values),
        low=min(values),
        high=max(values),
        spread=f"min..max of {len(values)} repeats",
        n=len(values),
        reason=None,
    )
    errors = [rate.relative_se for rate in known if rate.relative_se is not None]
    if len(values) >= ENOUGH_REPEATS and mean(values):
        combined.relative_se = stdev(values) / math.sqrt(len(values)) / mean(values)
        combined.degrees_of_freedom = len(values) - 1
    elif len(errors) == len(known):
        combined.relative_se = math.sqrt(mean(error**2 for error in errors) / len(known))
        combined.degrees_of_freedom = sum(rate.degrees_of_freedom or 0 for rate in known)
    return combined


def headline_of(group: Group) -> GroupRate | None:
    """Return the rate that is first."""
    return _named_rate(group, group.headline) or group.tps


def _named_rate(group: Group, name: str) -> GroupRate | None:
    return {"rows_per_s": group.rows_per_s, "metrics_per_s": group.metrics_per_s}.get(name, group.tps)


def rate_ratio(a: Rate | None, b: Rate | None) -> RateRatio | None:
    """Return one rate over another, with its interval where both have an error."""
    if not a or not b or not a.value or not b.value:
        return None
    if a.relative_se is None or b.relative_se is None:
        return RateRatio(value=a.value / b.value, low=None, high=None, differs=None)
    value, low, high = ratio_interval(_interval(a), _interval(b))
    return RateRatio(
        value=value,
        low=low,
        high=high,
        differs=not low <= 1 <= high,
        confidence=CONFIDENCE,
    )


def _interval(rate: Rate) -> Interval:
    return Interval(
        rate.value or 0.0,
        0.0,
        0.0,
        0,
        0,
        float(rate.degrees_of_freedom or 0),
        float(rate.relative_se or 0),
        method="",
    )


def _percentiles(drives: Sequence[DriveFigures]) -> list[Percentile]:
    """Per percentile the median over the repeats that support it; the reason when none does."""
    rows = []
    for entries in zip(*(drive.response.percentiles for drive in drives), strict=True):
        value = _median([entry.value_ns for entry in entries])
        reason = None if value is not None else entries[0].reason
        rows.append(Percentile(percentile=entries[0].percentile, value_ns=value, reason=reason))
    return rows


def _metric(group: Group, metric: str) -> float | None:
    if metric in RATES:
        rate = _named_rate(group, metric)
        return rate and rate.value
    latency = group.latency
    known = {
        "latency_avg": latency.mean_ns,
        "latency_stddev": latency.stddev_ns,
        "latency_max": latency.max_ns,
    }
    value = known.get(metric)
    return None if value is None else value / NS_PER_MS


def _sweep(groups: Sequence[Group], phases: Sequence[PhaseFigures]) -> Sweep:
    values: dict[str, list[Value]] = {}
    for group in groups:
        for parameter, value in group.variant.items():
            values.setdefault(parameter, []).append(value)
    swept = [name for name, found in values.items() if any(value != found[0] for value in found)]
    rows = [_sweep_row(group, swept, phases) for group in groups]
    return Sweep(
        scenario=groups[0].scenario,
        id=groups[0].id,
        kind=groups[0].kind,
        title=groups[0].title,
        target=groups[0].target,
        headline=groups[0].headline,
        parameters=swept,
        parameter=" × ".join(swept),
        fixed={name: found[0] for name, found in values.items() if name not in swept},
        rows=rows,
        baseline=_relate(rows, len(swept)),
    )


def _sweep_row(group: Group, swept: Sequence[str], phases: Sequence[PhaseFigures]) -> SweepRow:
    wanted = (group.target, group.phases[-1])
    phase = next(phase for phase in phases if (phase.target, phase.folder) == wanted)
    sizes, look = phase.sizes, _look(phase)
    per_unit = sizes and sizes.per_unit
    table_bytes, index_bytes = _held(phase)
    values = [group.variant.get(name) for name in swept]
    return SweepRow(
        values=values,
        value=" · ".join(_as_given(value) for value in values),
        rate=headline_of(group),
        p99_ns=next((p.value_ns for p in group.percentiles if p.percentile == P99), None),
        table_bytes=table_bytes,
        index_bytes=index_bytes,
        index_growth_bytes=sizes.kinds.index.growth if sizes else None,
        index_bytes_per_row=look.per_row.index if look else per_unit and per_unit.index_bytes_per_row,
        wal_bytes_per_row=per_unit and (per_unit.wal_bytes_per_row or per_unit.wal_bytes_per_transaction),
        ratio=None,
    )


def _as_given(value: Value) -> str:
    """Return a parameter's value as a user writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _look(phase: PhaseFigures) -> StoredFigures | None:
    """Return the sum of the last look at the phase's own tables; None where nobody looked."""
    return phase.storage.looks[-1].sum if phase.storage and phase.storage.looks else None


def _held(phase: PhaseFigures) -> tuple[float | None, float | None]:
    """Return the bytes of table and indexes: of the phase's own tables, else of all that the schema holds."""
    if look := _look(phase):
        return look.total_bytes - (look.index_bytes or 0), look.index_bytes
    sizes = phase.sizes
    if not sizes:
        return None, None
    return sizes.kinds.table.after, sizes.kinds.index.after


def _relate(rows: Sequence[SweepRow], parameters: int) -> str:
    """Relate every row to the one of the values "none" (or off), where there are such, else the first.

    Returns the value of that row.
    """
    wanted = [neutral([row.values[at] for row in rows]) for at in range(parameters)]
    base = next((row for row in rows if row.values == wanted), rows[0])
    for row in rows:
        if row is not base:
            row.ratio = rate_ratio(row.rate, base.rate)
    return base.value


def neutral(values: Sequence[Value]) -> Value:
    """Return the value that others are compared with: "none" (or off), where there is one, else the first."""
    return next((v for v in values if str(v).lower() in {"none", "off", "false", "0"}), values[0])


def _identity(entry: PhaseFigures | Group, target: str) -> str:
    return json.dumps([entry.scenario, entry.id, entry.variant, target], sort_keys=True)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
